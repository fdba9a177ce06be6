"""Device operators of a discretization, and the contexts through which PETSc calls them."""

from ..discretizations import CondensedDiscretization
from .assembled import AssembledMatrix
from .callbacks import Callbacks
from .cg import CGOperator
from .condensed import CondensedOperator
from .matfree import JacobianContext
from .trace_matrix import FacetBlockJacobi, TraceMatrix


def create_operator(discretization, arrays):
    """The device operator of a discretization, by its scheme."""
    kind = CondensedOperator if isinstance(discretization, CondensedDiscretization) else CGOperator
    return kind(discretization, arrays)


__all__ = [
    "AssembledMatrix",
    "CGOperator",
    "Callbacks",
    "CondensedOperator",
    "FacetBlockJacobi",
    "JacobianContext",
    "TraceMatrix",
    "create_operator",
]
