"""The physics contract: PETSc's pointwise functions as text, checked, differentiated, interpreted and written as
device text.

Imports numpy, pycparser, sympy and petsc_hdg.errors only.
"""

from typing import Any

from petsc_hdg.physics.interpreter.interpret import Interpreter
from petsc_hdg.physics.layout import Auxiliary, BoundaryFlux, Dirichlet, Field, Neumann, Robin
from petsc_hdg.physics.pointwise import Physics
from petsc_hdg.physics.text.source import CFile

__all__ = [
    "Auxiliary",
    "BoundaryFlux",
    "CFile",
    "Dirichlet",
    "Field",
    "Interpreter",
    "Neumann",
    "Physics",
    "Robin",
    "Symbols",
    "manufactured",
]


def __getattr__(name: str) -> Any:
    """Symbols and manufactured, loaded when first asked for: they need sympy, which takes a while."""
    if name in ("Symbols", "manufactured"):
        from petsc_hdg.physics import symbols

        return getattr(symbols, name)
    raise AttributeError(f"module 'petsc_hdg.physics' has no attribute '{name}'")
