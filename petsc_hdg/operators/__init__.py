"""Device operators of a discretization, and the contexts through which PETSc calls them."""

from ..discretizations import CondensedDiscretization, ContinuousGalerkin, InteriorPenalty, PolytopicDG
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

OPERATORS = {
    ContinuousGalerkin: CGOperator,
    CondensedDiscretization: CondensedOperator,
    InteriorPenalty: SIPGOperator,
    PolytopicDG: PolytopicOperator,
}


def create_operator(discretization, arrays):
    """The device operator of a discretization, by its scheme."""
    kind = next(OPERATORS[scheme] for scheme in type(discretization).__mro__ if scheme in OPERATORS)
    return (CondensedInTime if discretization.in_time else kind)(discretization, arrays)


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
