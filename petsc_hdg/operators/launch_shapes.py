"""Launch shapes of kernels that read an operator's vectors, tried on vectors of ones."""

from __future__ import annotations

import numpy as np

from ..device import Kernel, fastest
from .verdict import vector_of


def fastest_on_ones(operator, specs, run) -> Kernel:
    """The kernel among specs of one in several launch shapes that suits the operator's device (see device.fastest).

    run(kernel, out, state=, rate=, du=, t=) launches one of them over all cells; out: a buffer of owned values.
    """
    where = {}

    def launch(kernel):
        if not where:  # vectors are made where there is something to measure
            vector = vector_of(operator, np.ones(operator.dofmap.num_owned + operator.dofmap.num_tail))
            where.update(state=vector, rate=vector, du=vector, t=0.0)
            where["out"] = operator.arrays.zeros(max(1, operator.dofmap.num_owned))
        run(kernel, **where)

    return fastest(specs, operator.device, launch)
