"""Ready-made physics: each a short function that returns a Physics. What a keyword does not name goes to Physics
unchanged.
"""

from petsc_hdg.physics.library import gas
from petsc_hdg.physics.library.elliptic import elasticity, minimal_surface, neo_hookean, p_laplacian, poisson, stokes
from petsc_hdg.physics.library.laws import burgers, compressible_navier_stokes, euler, shallow_water

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
