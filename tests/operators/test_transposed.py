"""Transposed products of matrix-free Jacobians, compared with those of the same matrices assembled."""

from __future__ import annotations

import numpy as np
import pytest
from mat_operations import product
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.errors import SolveError, our_error

DIFFUSION = "for (d = 0; d < {0}*dim; ++d) f1[d] = {1}*u_x[d];"
SIDE = fe.Dirichlet("left", 0.3)
OBLIQUE = "f1[0] = u[0]*u_x[1] - n[0]*u[0]; f1[1] = 0.3*u_x[0];"


def convection() -> fe.Physics:
    """Nonlinear, with a Robin condition whose f0 and f1 read the gradient."""
    return fe.Physics(
        {"u": 1},
        "f0[0] = u_t[0] + u[0]*u[0] + u[0]*u_x[0] - k*u_x[dim - 1];",
        "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d] + (d + 1)*u[0];",
        boundary=[SIDE, fe.Robin("right", "f0[0] = u[0]*u[0] + x[1]*u_x[1] - 0.5*u[0]*u_x[0];", f1=OBLIQUE)],
        constants={"k": 0.7},
    )


def two_fields() -> fe.Physics:
    """Coupled fields of two degrees, one with a Robin condition."""
    return fe.Physics(
        {"v": 2, "p": fe.Field(1, degree_offset=-1)},
        {"v": "f0[0] = u[1]*u_x[0]; f0[1] = u[2];", "p": "f0[0] = u_x[0] + u_x[dim + 1] + u[0]*u[2];"},
        {"v": DIFFUSION.format(2, "(1 + u[0]*u[0])") + " f1[0] -= u[2];"},
        boundary=[
            fe.Dirichlet("left", [0.0, 1.0], field="v"),
            fe.Robin("top", "f0[0] = u[1]; f0[1] = u_x[2];", field="v"),
        ],
    )


def two_diffusing(v: str = "", p: str = "") -> fe.Physics:
    """Coupled fields of one degree, with more terms of f0."""
    return fe.Physics(
        {"v": 2, "p": 1},
        {"v": f"f0[0] = u[1]*u_x[0]; f0[1] = u[2]; {v}", "p": f"f0[0] = u_x[0] + u_x[dim + 1] + u[0]*u[2]; {p}"},
        {"v": DIFFUSION.format(2, "(1 + u[0]*u[0])"), "p": "for (d = 0; d < dim; ++d) f1[d] = u_x[2*dim + d] - u[1];"},
        boundary=[
            fe.Dirichlet("left", [0.0, 1.0], field="v"),
            fe.Robin("top", "f0[0] = u[1]; f0[1] = u_x[2];", field="v"),
        ],
    )


def by_hand() -> fe.Physics:
    """The derivative written by hand, and not quite the right one, as Picard's iterations are."""
    return fe.Physics(
        {"u": 1},
        "f0[0] = u[0]*u_x[0];",
        DIFFUSION.format(1, "(1 + u[0])"),
        jacobian={("u", "u"): {"g1": "g1[0] = u[0];", "g3": "for (d = 0; d < dim; ++d) g3[d*dim + d] = 1 + u[0];"}},
        boundary=[SIDE],
    )


CASES = {
    "triangles": (convection, True, {"degree": 2}),
    "patches": (convection, True, {"degree": 1, "kernel": "patch"}),
    "lines": (convection, False, {"degree": 5, "kernel": "tensor"}),
    "thread transposition": (convection, False, {"degree": 2, "kernel": "transpose"}),
    "two fields": (two_fields, False, {"degree": 2}),
    "by hand": (by_hand, True, {"degree": 3}),
    "interior penalty": (convection, True, {"degree": 2, "backend": "sipg_gpu"}),
    "interior penalty, two fields": (two_diffusing, False, {"degree": 2, "backend": "sipg_gpu"}),
    "incomplete interior penalty": (by_hand, True, {"degree": 1, "backend": "sipg_gpu", "sipg_theta": 0}),
    "polytopes": (convection, True, {"degree": 2, "backend": "poly_gpu", "poly_agglomerates": 4}),
}


def linearized(physics, simplex: bool, **options) -> fe.Problem:
    return linearize(fe.Problem(fe.Mesh.box((3, 2), simplex=simplex), physics, check_kernels=False, **options))


def linearize(problem: fe.Problem) -> fe.Problem:
    calls, state = problem.callbacks, problem.create_vec()
    state.setArray(0.5 + 0.3 * np.sin(np.arange(state.getLocalSize())))
    if problem.physics.uses_time_derivative:
        calls.ijacobian(None, 0.2, state, state, 1.7, calls.jacobian, calls.preconditioning)
    else:
        calls.linearize(None, state, calls.jacobian, calls.preconditioning)
    return problem


@pytest.mark.parametrize("case", CASES)
def test_transposed_products(case):
    make, simplex, options = CASES[case]
    mat = linearized(make(), simplex, pmat="none", **options).callbacks.jacobian
    x, aij = mat.createVecRight(), mat.convert("aij", PETSc.Mat())
    x.setArray(np.cos(np.arange(x.getLocalSize())))
    expected = product(aij, x, "multTranspose")
    np.testing.assert_allclose(product(mat, x, "multTranspose"), expected, atol=1e-12 * np.abs(expected).max())
    assert np.abs(product(aij, x) - expected).max() > 1e-3 * np.abs(expected).max()


def difference(problem, x, shift: float, step: float = 1e-5) -> np.ndarray:
    """The residual's central difference along a vector, rates along `shift` of it, at the state of `linearized`."""
    residuals = []
    for length in (step, -step):
        state, residual = problem.create_vec(), problem.create_vec()
        state.setArray(0.5 + 0.3 * np.sin(np.arange(state.getLocalSize())))
        rate = state.copy()
        state.axpy(length, x)
        rate.axpy(shift * length, x)
        problem.callbacks.ifunction(None, 0.2, state, rate, residual)
        residuals.append(residual.getArray().copy())
    return (residuals[0] - residuals[1]) / (2 * step)


@pytest.mark.full("False")
@pytest.mark.parametrize("simplex, law", [(True, False), (False, False), (True, True)])
def test_cells_and_trace_in_time(simplex, law):
    """Products and solves with the Jacobian of hdg_gpu in time and its transpose, after residuals at other states."""
    rates = {"v": "f0[0] += u_t[0]; f0[1] += (1 + u[0]*u[0])*u_t[1] + u_t[2];", "p": "f0[0] += u_t[2];"}
    physics = conservation_law() if law else two_diffusing(**rates) if simplex else convection_in_cells()
    problem = fe.Problem(fe.Mesh.box((3, 2), simplex=simplex), physics, backend="hdg_gpu", degree=2)
    with petsc_options(ksp_rtol="1e-13"):
        ts = problem.create_ts()
    mat, x, ksp = problem.callbacks.jacobian, problem.create_vec(), ts.getSNES().getKSP()
    ksp.setOperators(mat)
    x.setArray(np.cos(np.arange(x.getLocalSize())))
    expected = difference(problem, x, 1.7)
    linearize(problem).callbacks.ifunction(None, 0.4, x, x, problem.create_vec())
    aij, size = mat.convert("aij", PETSc.Mat()), np.abs(expected).max()
    np.testing.assert_allclose(product(mat, x), expected, atol=1e-7 * size)
    turned = product(aij, x, "multTranspose")
    np.testing.assert_allclose(product(mat, x, "multTranspose"), turned, atol=1e-12 * size)
    assert np.abs(turned - expected).max() > 1e-2 * size
    for solve, name in ((ksp.solve, "mult"), (ksp.solveTranspose, "multTranspose")):
        y = x.duplicate()
        solve(x, y)
        np.testing.assert_allclose(product(aij, y, name), x.getArray(), atol=1e-10)
    residual = x.duplicate()
    problem.callbacks.ifunction(None, 0.4, x, x, residual)
    problem.callbacks.ijacobian(None, 0.4, x, x, 1.7, mat, mat)
    ksp.solve(residual, y)  # as Newton's method does
    size = np.abs(residual.getArray()).max()
    np.testing.assert_allclose(product(mat, y), residual.getArray(), atol=1e-9 * size)


def conservation_law() -> fe.Physics:
    """Two laws with a matrix of stabilization that follows the trace, and a boundary flux of all that it may read."""
    return fe.Physics(
        {"v": 1, "w": 1},
        {"v": "f0[0] = u_t[0];", "w": "f0[0] = (1 + u[0])*u_t[1] + u[0]*u_x[0];"},
        {
            "v": "for (d = 0; d < dim; ++d) f1[d] = u_x[d] - u[0]*u[0];",
            "w": "f1[0] = u_x[2]; f1[1] = u_x[3] - u[0]*u[1];",
        },
        boundary=[
            fe.Dirichlet("left", 0.3, field="v"),
            fe.BoundaryFlux("right", "b[0] = f_hat[0]*u[1] + u_in[0]; b[1] = u[1] - u_in[1]*u_in[0] + 0.3*u_x[0];"),
        ],
        stabilization="S[0] = 2 + u[1]; S[1] = 0.3*u[0]*n[0]; S[2] = 0.2; S[3] = 2 + u[0]*u[0];",
    )


def convection_in_cells() -> fe.Physics:
    """Linear, of one field."""
    f1 = "for (d = 0; d < dim; ++d) f1[d] = u_x[d] + (d + 1)*u[0];"
    boundary = [SIDE, fe.Robin("right", "f0[0] = u[0];")]
    return fe.Physics({"u": 1}, "f0[0] = (1 + x[0])*u_t[0] + u_x[0];", f1, boundary=boundary)


@pytest.mark.full("True")
@pytest.mark.parametrize("nonlinear", [False, True])
def test_adjoint_in_time_of_hdg(nonlinear):
    """TSAdjoint gives the derivative of a weighted sum of the last state along a change of the first."""
    source, tau = ("u[0]*u[0] + u_x[0]", "1.0") if nonlinear else ("u[0] + u_x[0]", "auto")
    physics = fe.Physics({"u": 1}, f"f0[0] = u_t[0] + {source};", DIFFUSION.format(1, 1), boundary=[SIDE])
    problem = fe.Problem(fe.Mesh.box((2, 2)), physics, backend="hdg_gpu", degree=1, hdg_tau=tau)
    first, direction, weights = (problem.create_vec() for _ in range(3))
    inside = slice(problem.discretization.dofmap.num_owned, None)
    for vector, function in ((first, np.cos), (direction, np.sin), (weights, np.cos)):
        vector.getArray()[inside] = function(np.arange(vector.getLocalSize())[inside])

    def run(start, adjoint=None):
        with petsc_options(ts_type="beuler", ksp_rtol="1e-13", snes_rtol="1e-12"):
            ts, u = problem.create_ts(), start.copy()
        ts.setTimeStep(0.1)
        ts.setMaxTime(0.3)
        if adjoint is not None:
            ts.setSaveTrajectory()
        ts.solve(u)
        if adjoint is not None:
            ts.setCostGradients([adjoint])
            ts.adjointSolve()
        return u

    adjoint = weights.copy()
    run(first, adjoint)
    ends = [run(first + step * direction).dot(weights) for step in (1e-4, -1e-4)]
    expected = (ends[0] - ends[1]) / 2e-4
    assert abs(expected) > 5e-3
    assert abs(adjoint.dot(direction) - expected) < 1e-6 * abs(expected)


def test_hdg_in_time_has_no_diagonal():
    physics = fe.Physics({"u": 1}, "f0[0] = u_t[0] - 1;", DIFFUSION.format(1, 1), boundary=[SIDE])
    mat = linearized(physics, True, backend="hdg_gpu", degree=1).callbacks.jacobian
    with pytest.raises((SolveError, PETSc.Error)) as raised:
        mat.getDiagonal()
    assert "use the copy that mat.convert" in str(our_error(raised.value) or raised.value)
