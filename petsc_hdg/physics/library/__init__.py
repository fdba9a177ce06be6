"""Ready-made physics: each a short function that returns a Physics. What a keyword does not name goes to Physics
unchanged.
"""

from petsc_hdg.physics.library import gas
from petsc_hdg.physics.library.elliptic import elasticity, minimal_surface, neo_hookean, p_laplacian, poisson, stokes
from petsc_hdg.physics.library.laws import burgers, compressible_navier_stokes, convection, euler, shallow_water
from petsc_hdg.physics.library.sides import outer_state, outflow, slip_wall

__all__ = [
    "burgers",
    "compressible_navier_stokes",
    "convection",
    "elasticity",
    "euler",
    "gas",
    "minimal_surface",
    "neo_hookean",
    "outer_state",
    "outflow",
    "p_laplacian",
    "poisson",
    "shallow_water",
    "slip_wall",
    "stokes",
]
