"""Device operators of a discretization, and the contexts through which PETSc calls them."""

from ..discretizations import CondensedDiscretization, InteriorPenalty, PolytopicDG
from .assembled import AssembledMatrix
from .callbacks import Callbacks
from .cell_elimination import CellElimination, StateMatrix
from .cell_jacobi import CellBlockJacobi
from .cg import CGOperator
from .condensed import CondensedOperator
from .condensed_in_time import CondensedInTime
from .conforming import ConformingSubspace
from .joint import JointState
from .matfree import JacobianContext
from .poly import PolytopicOperator
from .poly_levels import AgglomerateLevels
from .sipg import SIPGOperator
from .trace_matrix import FacetBlockJacobi, TraceMatrix


def create_operator(discretization, arrays):
    """The device operator of a discretization, by its scheme."""
    kinds = {
        CondensedDiscretization: CondensedOperator,
        InteriorPenalty: SIPGOperator,
        PolytopicDG: PolytopicOperator,
    }
    kind = next((kinds[scheme] for scheme in kinds if isinstance(discretization, scheme)), CGOperator)
    if kind is CondensedOperator and discretization.in_time:
        kind = CondensedInTime
    return kind(discretization, arrays)


__all__ = [
    "AgglomerateLevels",
    "AssembledMatrix",
    "CGOperator",
    "Callbacks",
    "CellBlockJacobi",
    "CellElimination",
    "CondensedInTime",
    "CondensedOperator",
    "ConformingSubspace",
    "FacetBlockJacobi",
    "JacobianContext",
    "JointState",
    "PolytopicOperator",
    "SIPGOperator",
    "StateMatrix",
    "TraceMatrix",
    "create_operator",
]
