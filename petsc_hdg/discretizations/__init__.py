"""Schemes: how a physics on a mesh becomes numbering, tables and kernel specs. A new scheme is one line here."""

from .base import Discretization
from .cell_field import CellField
from .cg import ContinuousGalerkin
from .cg_condensed import CondensedCG
from .condensed import CondensedDiscretization
from .hdg import HybridizedDG
from .poly import PolytopicDG
from .sipg import InteriorPenalty

SCHEMES = {"cg_gpu": ContinuousGalerkin, "hdg_gpu": HybridizedDG, "sipg_gpu": InteriorPenalty, "poly_gpu": PolytopicDG}


def scheme(options) -> type[Discretization]:
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
