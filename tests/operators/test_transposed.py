"""Transposed products of matrix-free Jacobians, compared with those of the same matrices assembled."""

from __future__ import annotations

import numpy as np
import pytest
from mat_operations import product
from petsc4py import PETSc

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


def two_diffusing() -> fe.Physics:
    """Coupled fields of one degree."""
    return fe.Physics(
        {"v": 2, "p": 1},
        {"v": "f0[0] = u[1]*u_x[0]; f0[1] = u[2];", "p": "f0[0] = u_x[0] + u_x[dim + 1] + u[0]*u[2];"},
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
    problem = fe.Problem(fe.Mesh.box((3, 2), simplex=simplex), physics, check_kernels=False, **options)
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


def test_hdg_in_time_refuses_them():
    physics = fe.Physics({"u": 1}, "f0[0] = u_t[0] - 1;", DIFFUSION.format(1, 1), boundary=[SIDE])
    mat = linearized(physics, True, backend="hdg_gpu", degree=1).callbacks.jacobian
    for refused in (lambda x: product(mat, x, "multTranspose"), lambda x: mat.getDiagonal()):
        with pytest.raises((SolveError, PETSc.Error)) as raised:
            refused(mat.createVecRight())
        assert "take -fe_backend cg_gpu, sipg_gpu or poly_gpu" in str(our_error(raised.value) or raised.value)
