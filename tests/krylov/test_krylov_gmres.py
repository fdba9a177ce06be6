"""GMRES and flexible GMRES on the device: iterates of PETSc's, restarts, both sides, monitors, and ways to stop."""

from __future__ import annotations

import numpy as np
import pytest
from krylov_systems import CONVECTION, both, constants_are_left_out, laplacian, solved, system, wave
from petsc4py import PETSc

from petsc_hdg.errors import OptionError, our_error

Reason = PETSc.KSP.ConvergedReason
PAIR = {"ours": "GMRES", "theirs": "gmres"}
FLEXIBLE = {"ours": "FGMRES", "theirs": "fgmres"}


@pytest.fixture(scope="module", params=["sipg_gpu", "hdg_gpu", "cg_gpu"])
def made(request):
    return system(request.param, physics=CONVECTION)


@pytest.mark.parametrize("restart", [3, 17, 30])
@pytest.mark.parametrize("method", ["left", "right", "flexible"])
def test_iterates(made, method, restart):
    problem, b = made
    given = {"pc_type": "jacobi", "ksp_gmres_restart": restart, "ksp_max_it": 40}
    if method != "flexible":
        given["ksp_pc_side"] = method
    done = both(problem.callbacks.jacobian, b, **(FLEXIBLE if method == "flexible" else PAIR), **given)
    assert done.iterations > 20


@pytest.mark.parametrize("method", ["left", "right", "flexible"])
def test_first_guess_and_staged_preconditioners(method):
    mat = laplacian(convection=0.7)
    guess = wave(mat)
    guess.scale(0.3)
    given = FLEXIBLE if method == "flexible" else {**PAIR, "ksp_pc_side": method}
    both(mat, wave(mat), guess, pc_type="jacobi", ksp_gmres_restart=4, **given)
    both(mat, wave(mat), pc_type="sor", **given)
    both(mat, wave(mat), pc_type="none", **given)  # as many steps as unknowns


@pytest.mark.parametrize("method", ["left", "right", "flexible"])
def test_monitors_see_the_solution(method):
    problem, b = system("sipg_gpu", physics=CONVECTION)
    seen = {}

    def watch(ksp, its, norm):
        seen.setdefault(ksp.getType() == "python", []).append((its, norm, ksp.buildResidual().norm()))

    given = FLEXIBLE if method == "flexible" else {**PAIR, "ksp_pc_side": method}
    both(
        problem.callbacks.jacobian, b, setting=lambda ksp: ksp.setMonitor(watch), pc_type="jacobi", ksp_max_it=12,
        ksp_gmres_restart=5, **given,
    )  # fmt: skip
    assert len(seen[True]) == len(seen[False]) > 12
    last = seen[True].pop(), seen[False].pop()  # PETSc 3.26 shows monitors the last correction twice
    assert np.allclose(seen[True], seen[False], rtol=1e-7) and np.allclose(last[0][:2], last[1][:2], rtol=1e-7)
    assert last[0][2] < seen[True][-1][2] and (method == "left" or abs(last[0][2] - last[0][1]) < 1e-9)


@pytest.mark.parametrize("pair", [PAIR, FLEXIBLE], ids=["gmres", "fgmres"])
def test_ways_to_stop(pair):
    mat = laplacian(convection=0.7)
    assert both(mat, wave(mat), **pair, pc_type="jacobi", ksp_max_it=3).reason == Reason.DIVERGED_MAX_IT
    assert both(mat, wave(mat), **pair, pc_type="jacobi", ksp_atol=1e-1).reason == Reason.CONVERGED_ATOL
    given = {"pc_type": "jacobi", "ksp_norm_type": "none", "ksp_max_it": 4, "ksp_convergence_test": "skip"}
    assert both(mat, wave(mat), **pair, **given).iterations == 4
    b = wave(mat)
    b.set(0.0)
    assert both(mat, b, **pair, pc_type="jacobi").reason == Reason.CONVERGED_ATOL
    b.set(np.nan)
    assert solved(pair["ours"], mat, b, pc_type="jacobi").reason == Reason.DIVERGED_NANORINF


def test_null_space():
    assert constants_are_left_out(PAIR)


def test_bad_options():
    mat = laplacian()
    with pytest.raises((OptionError, PETSc.Error)) as caught:
        solved("GMRES", mat, wave(mat), ksp_gmres_restart="many")
    assert "'many'; it takes one whole number, not below 0" in str(our_error(caught.value))


@pytest.mark.parametrize("method, convection", [("CG", 0.0), ("GMRES", 0.7), ("FGMRES", 0.7)])
def test_solves_with_the_transpose(method, convection):
    """As adjoints in time ask for, by PETSc's method of the kind."""
    mat = laplacian(convection=convection)
    done, b, x = solved(method, mat, wave(mat), pc_type="jacobi"), wave(mat), mat.createVecLeft()
    done.ksp.solveTranspose(b, x)
    residual = mat.createVecRight()
    mat.multTranspose(x, residual)
    residual.axpy(-1.0, b)
    assert done.ksp.getConvergedReason() > 0 and done.ksp.getIterationNumber() > 1
    assert residual.norm() < 1e-4 * b.norm()
