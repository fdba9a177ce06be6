"""Ready-made physics: each a short function that returns a Physics. What a keyword does not name goes to Physics
unchanged.
"""

from petsc_hdg.physics.library import gas
from petsc_hdg.physics.library.burgers import burgers
from petsc_hdg.physics.library.compressible_navier_stokes import compressible_navier_stokes
from petsc_hdg.physics.library.elasticity import elasticity
from petsc_hdg.physics.library.euler import euler
from petsc_hdg.physics.library.minimal_surface import minimal_surface
from petsc_hdg.physics.library.neo_hookean import neo_hookean
from petsc_hdg.physics.library.p_laplacian import p_laplacian
from petsc_hdg.physics.library.poisson import poisson
from petsc_hdg.physics.library.shallow_water import shallow_water
from petsc_hdg.physics.library.stokes import stokes

__all__ = [
    "burgers",
    "compressible_navier_stokes",
    "elasticity",
    "euler",
    "gas",
    "minimal_surface",
    "neo_hookean",
    "p_laplacian",
    "poisson",
    "shallow_water",
    "stokes",
]
