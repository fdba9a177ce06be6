"""Schemes: how a physics on a mesh becomes numbering, tables and kernel specs. A new scheme is one line here."""

from typing import Any

from .base import Discretization
from .cell_field import CellField
from .cg.scheme import ContinuousGalerkin
from .condensed.cg import CondensedCG
from .condensed.hdg import HybridizedDG
from .condensed.scheme import CondensedDiscretization
from .poly.scheme import PolytopicDG
from .sipg.scheme import InteriorPenalty

SCHEMES = {"cg_gpu": ContinuousGalerkin, "hdg_gpu": HybridizedDG, "sipg_gpu": InteriorPenalty, "poly_gpu": PolytopicDG}


def scheme(options) -> type[Any]:
    """The class that `-fe_backend` and `-cg_condense` choose."""
    return CondensedCG if options.backend == "cg_gpu" and options.cg_condense else SCHEMES[options.backend]


__all__ = [
    "SCHEMES",
    "CellField",
    "CondensedCG",
    "CondensedDiscretization",
    "ContinuousGalerkin",
    "Discretization",
    "HybridizedDG",
    "InteriorPenalty",
    "PolytopicDG",
    "scheme",
]
