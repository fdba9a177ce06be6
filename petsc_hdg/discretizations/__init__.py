"""Schemes: how a physics on a mesh becomes numbering, tables and kernel specs. A new scheme is one line here."""

from typing import Any

from ..lookup import lookup

SCHEMES = {
    "cg_gpu": "ContinuousGalerkin",
    "hdg_gpu": "HybridizedDG",
    "sipg_gpu": "InteriorPenalty",
    "poly_gpu": "PolytopicDG",
}
_PUBLIC = {
    "CellField": "dofmap",
    "CondensedCG": "condensed.cg",
    "CondensedDiscretization": "condensed.scheme",
    "ContinuousGalerkin": "cg.scheme",
    "Discretization": "base",
    "HybridizedDG": "condensed.hdg",
    "InteriorPenalty": "sipg.scheme",
    "PolytopicDG": "poly.scheme",
}


def scheme(options) -> type[Any]:
    """The class that `-fe_backend` and `-cg_condense` choose."""
    is_condensed = options.backend == "cg_gpu" and options.cg_condense
    return __getattr__("CondensedCG" if is_condensed else SCHEMES[options.backend])


__all__ = ["SCHEMES", "scheme", *_PUBLIC]
__getattr__, __dir__ = lookup(__name__, _PUBLIC)
