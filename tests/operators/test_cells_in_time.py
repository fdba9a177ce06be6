"""Cells with a state in time: kernels in the shapes of a GPU give residuals and steps as those of one thread."""

from __future__ import annotations

import numpy as np
import pytest
from condensed_runs import residual_and_step
from petsc4py import PETSc
from petsc_options import direct_solver, petsc_options

import petsc_hdg as fe
from petsc_hdg.discretizations.condensed.launch_shapes import ThreadShape, WarpShape
from petsc_hdg.operators.condensed.in_time import StateProducts

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


def test_newton_condenses_once(monkeypatch):
    """The residual at a linearization is eliminated with the matrix. Other right-hand sides, as of a Jacobian that
    is kept for two steps, and those without U are eliminated for themselves."""
    solve, solved = StateProducts._solve_cells, []
    monkeypatch.setattr(StateProducts, "_solve_cells", lambda *given: (solved.append(1), solve(*given)))
    options = {"backend": "hdg_gpu", "degree": 2, "check_kernels": False}
    physics, found = fe.Physics({"u": 1}, **NONLINEAR), {}
    for keep, lag in ((False, 1), (True, 1), (True, 2)):
        problem = fe.Problem(fe.Mesh.box((3, 2), comm=PETSc.COMM_SELF), physics, hdg_keep=keep, **options)
        with petsc_options(snes_lag_jacobian=lag, snes_rtol=1e-12, **direct_solver()):
            u = problem.solve_in_time(problem.interpolate(1.0), 0.2, dt=0.1)
        found[keep, lag] = u.array.copy(), problem.newton_iterations, len(solved)
        solved.clear()
    plain, kept, lagged = found.values()
    assert plain[2] == 2 * plain[1] > 4 and kept[1:] == (plain[1], 0) and 0 < lagged[2] < 2 * lagged[1]
    for values in (kept[0], lagged[0]):
        np.testing.assert_allclose(values, plain[0], rtol=1e-10)
