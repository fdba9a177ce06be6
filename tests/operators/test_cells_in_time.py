"""Cells with a state in time: kernels in the shapes of a GPU give residuals and steps as those of one thread."""

from __future__ import annotations

import numpy as np
import pytest

import petsc_hdg as fe
from petsc_hdg.device import Arrays, Device
from petsc_hdg.discretizations import HybridizedDG
from petsc_hdg.discretizations.condensed.launch_shapes import ThreadShape, WarpShape
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.operators import CondensedInTime, create_operator

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


def residual_and_step(physics, degree: int, is_gpu: bool, **attributes):
    """Residual, condensed right-hand side, product of the trace, recovered interior; the same of the matrix' products,
    and of its transpose; the launch shape."""
    options = fe.Options(backend="hdg_gpu", degree=degree, pmat="none", hdg_share=False)
    mesh = fe.Mesh.box((3, 2))
    disc = HybridizedDG(mesh, physics, options, DeviceLimits(48 * 1024, 1024, is_gpu))
    for name, value in attributes.items():
        setattr(disc, name, value)
    arrays = Arrays(Device.select("any"))
    operator = create_operator(disc, arrays)
    assert isinstance(operator, CondensedInTime)
    operator.compile()
    count, size = disc.dofmap.num_owned, operator.state_size
    x, rate = (arrays.to_device(values) for values in (np.linspace(0.1, 1, size), np.cos(np.arange(size))))
    residual, state = arrays.zeros(size), arrays.zeros(size)
    right_side, product = arrays.zeros(count), arrays.zeros(count)
    operator.residual(x, residual, 0.5, rate)
    operator.linearize(x, 0.5, rate, 3.0)
    operator.eliminate(right_side)
    operator.action(x, product)
    operator.recover_step(right_side, state)
    found = [(residual, size), (right_side, count), (product, count)]
    found = [*(arrays.to_host(buffer, n) for buffer, n in found), arrays.to_host(state, size)[count:]]
    for transposed in (False, True):
        operator.products.multiply(rate, state, transposed)
        operator.products.eliminate(rate, right_side, transposed)
        found += [arrays.to_host(state, size), arrays.to_host(right_side, count)]
        operator.products.recover(rate, right_side, state, transposed)
        found.append(arrays.to_host(state, size))
    return found, disc.shape_of("condense")


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
