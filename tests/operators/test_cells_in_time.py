"""Cells with a state in time: kernels in the shapes of a GPU give residuals and steps as those of one thread."""

from __future__ import annotations

import numpy as np
import pytest
from condensed_runs import residual_and_step

import petsc_hdg as fe
from petsc_hdg.discretizations.condensed.launch_shapes import ThreadShape, WarpShape

LINEAR = {
    "f0": "f0[0] = 2*u_t[0] - t;",
    "f1": "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    "boundary": [fe.Dirichlet("left", "g[0] = x[1] + t;"), fe.Neumann("right", "g[0] = t;")],
}
NONLINEAR = LINEAR | {"f0": "f0[0] = (1 + u[0]*u[0])*u_t[0] - t;"}
# physics, degree, attributes of the discretization on a GPU, kind of launch shape of `condense` (None: tiles)
CASES = {
    "threads": (LINEAR, 1, {}, ThreadShape),
    "warps, summed matrices": (LINEAR, 2, {"uses_threads": False, "uses_warps": True}, WarpShape),
    "nonlinear": (NONLINEAR, 2, {}, None),
}


@pytest.mark.full("nonlinear")
@pytest.mark.parametrize("case", CASES)
def test_shapes_of_a_gpu(case):
    functions, degree, attributes, kind = CASES[case]
    physics = fe.Physics({"u": 1}, **functions)
    single, _ = residual_and_step(physics, degree, False)
    group, shape = residual_and_step(physics, degree, True, **attributes)
    assert isinstance(shape, kind or type(shape)) and (kind or not isinstance(shape, ThreadShape | WarpShape)), shape
    for one, other in zip(single, group, strict=True):
        assert np.abs(one).max() > 1e-3
        assert np.abs(one - other).max() <= 1e-11 * np.abs(one).max()
