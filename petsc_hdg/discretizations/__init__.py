"""Schemes: how a physics on a mesh becomes numbering, tables and kernel specs. A new scheme is one line here."""

from .base import Discretization
from .cell_field import CellField
from .cg import ContinuousGalerkin

SCHEMES = {"cg_gpu": ContinuousGalerkin}

__all__ = ["SCHEMES", "CellField", "ContinuousGalerkin", "Discretization"]
