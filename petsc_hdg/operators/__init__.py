"""Device operators of a discretization, and the contexts through which PETSc calls them."""

from .assembled import AssembledMatrix
from .callbacks import Callbacks
from .cg import CGOperator
from .matfree import JacobianContext

OPERATORS = {"cg_gpu": CGOperator}


def create_operator(discretization, arrays):
    """The device operator of a discretization, by its scheme."""
    return OPERATORS[discretization.name](discretization, arrays)


__all__ = ["AssembledMatrix", "CGOperator", "Callbacks", "JacobianContext", "create_operator"]
