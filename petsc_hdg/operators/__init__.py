"""Device operators of a discretization, and the contexts through which PETSc calls them."""

from ..discretizations import CondensedDiscretization, InteriorPenalty, PolytopicDG
from .assembled import AssembledMatrix
from .callbacks import Callbacks
from .cell_jacobi import CellBlockJacobi
from .cg.operator import CGOperator
from .condensed.cell_elimination import CellElimination, StateMatrix
from .condensed.in_time import CondensedInTime
from .condensed.joint import JointState
from .condensed.operator import CondensedOperator
from .conforming import ConformingSubspace
from .matfree import JacobianContext
from .poly.levels import AgglomerateLevels
from .poly.operator import PolytopicOperator
from .sipg.operator import SIPGOperator
from .trace.matrix import FacetBlockJacobi, TraceMatrix


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
