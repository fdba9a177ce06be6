"""Device operators of a discretization, and the contexts through which PETSc calls them."""

from ..lookup import lookup

OPERATORS = {
    "MixedGalerkin": "MixedOperator",
    "MixedPenalty": "MixedPenaltyOperator",
    "ContinuousGalerkin": "CGOperator",
    "CondensedDiscretization": "CondensedOperator",
    "InteriorPenalty": "SIPGOperator",
    "PolytopicDG": "PolytopicOperator",
}
_PUBLIC = {
    "AgglomerateLevels": "poly.levels",
    "AssembledMatrix": "assembled",
    "CGOperator": "cg.operator",
    "Callbacks": "callbacks",
    "CellBlockJacobi": "block_jacobi",
    "CellElimination": "condensed.cell_elimination",
    "CondensedInTime": "condensed.in_time",
    "CondensedOperator": "condensed.operator",
    "ConformingSubspace": "conforming",
    "FacetBlockJacobi": "trace.matrix",
    "JacobianContext": "matfree",
    "JointState": "condensed.in_time",
    "MixedOperator": "cg.mixed",
    "MixedPenaltyOperator": "sipg.mixed",
    "PolytopicOperator": "poly.operator",
    "SIPGOperator": "sipg.operator",
    "StateCallbacks": "condensed.cell_elimination",
    "StateMatrix": "condensed.cell_elimination",
    "TraceMatrix": "trace.matrix",
    "kept_interior": "condensed.in_time",
    "read_interior": "condensed.in_time",
    "restore_interior": "condensed.in_time",
    "write_interior": "condensed.in_time",
}


def create_operator(discretization, arrays):
    """The device operator of a discretization, by its scheme."""
    kind = next(OPERATORS[each.__name__] for each in type(discretization).__mro__ if each.__name__ in OPERATORS)
    return __getattr__("CondensedInTime" if discretization.in_time else kind)(discretization, arrays)


__all__ = ["create_operator", *_PUBLIC]
__getattr__, __dir__ = lookup(__name__, _PUBLIC)
