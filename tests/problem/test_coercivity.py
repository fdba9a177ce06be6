"""What few products tell of interior penalty's matrix: whether it is symmetric, whether the penalty suffices."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from petsc4py import PETSc
from sample_meshes import SHAPES, box_mesh
from sample_physics import smooth_poisson

from petsc_hdg.operators.spectrum import asymmetry, extreme_eigenvalues
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem


def problem_of(cell, faces, degree: int, **options) -> Problem:
    mesh = box_mesh(cell, faces, comm=PETSc.COMM_SELF)
    options = {"sipg_kernel": "split", "check_kernels": False, **options}
    return Problem(mesh, smooth_poisson(), Options(backend="sipg_gpu", degree=degree, **options))


@pytest.mark.parametrize("theta, symmetric", [(1, True), (0, False), (-1, False)])
def test_symmetry(theta, symmetric):
    problem = problem_of("triangle", (6, 6), 2, sipg_theta=theta)
    u = problem.solve()
    assert (asymmetry(problem.callbacks.jacobian) < 1e-10) == symmetric
    assert problem.snes.getKSP().getType() == ("cg" if symmetric else "fgmres")
    assert problem.errors(u)["L2"] < 2e-3


@pytest.mark.parametrize("symmetric", [True, False])
def test_extreme_eigenvalues(symmetric):
    """Of a small matrix, in as many steps as it has rows, beside LAPACK's."""
    random = np.random.default_rng(3)
    a = random.standard_normal((12, 12))
    a = a @ a.T + (0 if symmetric else 0.5 * (a - a.T))
    scaling = np.diag(a) ** -0.5
    exact = np.linalg.eigvalsh(scaling[:, None] * (a + a.T) / 2 * scaling)
    mat = PETSc.Mat().createDense((12, 12), array=np.ascontiguousarray(a), comm=PETSc.COMM_SELF)
    mat.assemble()
    assert extreme_eigenvalues(mat, symmetric, 12) == pytest.approx((exact[0], exact[-1]), rel=1e-8)
    low, high = extreme_eigenvalues(mat, symmetric, 5)
    assert exact[0] <= low < high <= exact[-1]


@pytest.mark.full
@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize("cell", SHAPES)
def test_coercivity(cell, degree):
    """Silent for the automatic penalty on a distorted mesh; a warning for a tenth of it."""
    faces = (6, 6) if cell in ("triangle", "quadrilateral") else (3, 3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem = problem_of(cell, faces, degree, sipg_check_coercivity=True)
        problem.solve()
    assert 0 < problem.eigenvalues[0] < 0.5 < problem.eigenvalues[1] < 10
    small = problem_of(cell, faces, degree, sipg_check_coercivity=True, sipg_penalty_scale=0.1)
    calls, zero = small.callbacks, small.create_vec()
    with pytest.warns(UserWarning, match=r"-sipg_penalty_scale 0.1 is too small .* raise the scale"):
        calls.linearize(None, zero, calls.jacobian, calls.jacobian)
    assert small.eigenvalues[0] < -1e-3


def test_the_nonsymmetric_method_needs_no_penalty():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem = problem_of("triangle", (6, 6), 2, sipg_check_coercivity=True, sipg_penalty_scale=0.1, sipg_theta=-1)
        problem.solve()
    assert problem.eigenvalues[0] > 0


def test_the_view_tells_the_estimate(capfd):
    problem = problem_of("triangle", (6, 6), 2, sipg_check_coercivity=True, view=True)
    problem.solve()
    assert f"coercivity: eigenvalues of the Jacobian over its diagonal from {problem.eigenvalues[0]:.3e}" in (
        capfd.readouterr().out
    )
