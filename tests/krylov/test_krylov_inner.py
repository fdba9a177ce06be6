"""Solvers of ours as preconditioners: Chebyshev's polynomial within CG, GMRES within FGMRES, on the device."""

from __future__ import annotations

import pytest
from krylov_systems import both, system
from petsc4py import PETSc
from petsc_options import petsc_options

Reason = PETSc.KSP.ConvergedReason
POLYNOMIAL = {
    "ksp_ksp_type": "python", "ksp_ksp_python_type": "petsc_hdg.Chebyshev", "ksp_ksp_max_it": 3,
    "ksp_ksp_norm_type": "none", "ksp_pc_type": "jacobi",
}  # fmt: skip


@pytest.fixture(scope="module", params=["sipg_gpu", "hdg_gpu"])
def made(request):
    return system(request.param)


def test_a_polynomial_by_pcksp(made):
    problem, b = made
    done = both(problem.callbacks.jacobian, b, pc_type="ksp", ksp_rtol=1e-8, **POLYNOMIAL)
    context = done.ksp.getPythonContext()
    assert context.preconditioner.on_device and context.preconditioner.note == "by petsc_hdg.Chebyshev, on the device"
    plain = both(problem.callbacks.jacobian, b, pc_type="jacobi", ksp_rtol=1e-8)
    assert done.iterations < 0.6 * plain.iterations


def test_a_polynomial_by_its_own_pc(made, capfd):
    problem, b = made
    given = {"pc_type": "python", "pc_python_type": "petsc_hdg.ChebyshevPC", "ksp_rtol": 1e-8, "ksp_view": ""}
    with petsc_options(tried_chebyshev_ksp_max_it="5"):
        five = both(problem.callbacks.jacobian, b, **given)
    three = both(problem.callbacks.jacobian, b, **given)
    assert five.iterations < three.iterations
    assert "eigenvalues between" in capfd.readouterr().out
    pcksp = both(problem.callbacks.jacobian, b, pc_type="ksp", ksp_rtol=1e-8, **POLYNOMIAL)
    assert pcksp.iterations == three.iterations


def test_gmres_within_fgmres(made):
    problem, b = made
    inner = {"ksp_ksp_type": "python", "ksp_ksp_python_type": "petsc_hdg.GMRES", "ksp_ksp_max_it": 5}
    given = {"pc_type": "ksp", "ksp_pc_type": "jacobi", "ksp_rtol": 1e-8, **inner}
    done = both(problem.callbacks.jacobian, b, ours="FGMRES", theirs="fgmres", **given)
    assert done.reason == Reason.CONVERGED_RTOL and done.ksp.getPythonContext().operation.on_device
