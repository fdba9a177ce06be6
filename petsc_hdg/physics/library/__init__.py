"""Ready-made physics: each a short function that returns a Physics. What a keyword does not name goes to Physics
unchanged.
"""

from petsc_hdg.physics.library.elasticity import elasticity
from petsc_hdg.physics.library.minimal_surface import minimal_surface
from petsc_hdg.physics.library.neo_hookean import neo_hookean
from petsc_hdg.physics.library.p_laplacian import p_laplacian
from petsc_hdg.physics.library.poisson import poisson
from petsc_hdg.physics.library.stokes import stokes

__all__ = ["elasticity", "minimal_surface", "neo_hookean", "p_laplacian", "poisson", "stokes"]
