"""The physics contract: PETSc's pointwise functions as text, checked, differentiated, interpreted and written as device text.

Imports numpy, pycparser, sympy and petsc_hdg.errors only.
"""

from petsc_hdg.physics.conditions import Dirichlet, Neumann, Robin
from petsc_hdg.physics.interpret import Interpreter
from petsc_hdg.physics.layout import Auxiliary, Field
from petsc_hdg.physics.pointwise import Physics
from petsc_hdg.physics.source import CFile
from petsc_hdg.physics.symbols import Symbols, manufactured

__all__ = ["Auxiliary", "CFile", "Dirichlet", "Field", "Interpreter", "Neumann", "Physics", "Robin", "Symbols", "manufactured"]
