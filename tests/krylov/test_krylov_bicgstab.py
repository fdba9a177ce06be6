"""BiCGStab on the device: iterates of PETSc's, on nonsymmetric systems, both sides, and ways to stop."""

from __future__ import annotations

import numpy as np
import pytest
from krylov_systems import CONVECTION, both, constants_are_left_out, laplacian, solved, system, wave
from petsc4py import PETSc

Reason = PETSc.KSP.ConvergedReason
PAIR = {"ours": "BiCGStab", "theirs": "bcgs"}


@pytest.fixture(scope="module", params=["sipg_gpu", "hdg_gpu", "cg_gpu"])
def made(request):
    return system(request.param, physics=CONVECTION)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("pc", ["none", "jacobi"])
def test_iterates(made, pc, side):
    problem, b = made
    given = {"pc_type": pc, "ksp_pc_side": side, "ksp_rtol": 1e-2 if pc == "none" else 1e-5}
    done = both(problem.callbacks.jacobian, b, **PAIR, **given)
    assert done.iterations > 3 and done.reason == Reason.CONVERGED_RTOL


@pytest.mark.parametrize("side", ["left", "right"])
def test_first_guess_and_staged_preconditioners(side):
    mat = laplacian(convection=0.7)
    guess = wave(mat)
    guess.scale(0.3)
    both(mat, wave(mat), guess, **PAIR, pc_type="jacobi", ksp_pc_side=side)
    both(mat, wave(mat), **PAIR, pc_type="sor", ksp_pc_side=side)


@pytest.mark.parametrize("side", ["left", "right"])
def test_monitors_see_the_solution(side):
    problem, b = system("sipg_gpu", physics=CONVECTION)
    seen = {}

    def watch(ksp, its, norm):
        seen.setdefault(ksp.getType(), []).append((its, norm, ksp.buildResidual().norm()))

    both(
        problem.callbacks.jacobian, b, setting=lambda ksp: ksp.setMonitor(watch), **PAIR, pc_type="jacobi",
        ksp_pc_side=side, ksp_max_it=8,
    )  # fmt: skip
    assert len(seen["python"]) == 9
    assert np.allclose(seen["python"], seen["bcgs"], rtol=1e-7)


def test_ways_to_stop():
    mat = laplacian(convection=0.7)
    assert both(mat, wave(mat), **PAIR, pc_type="jacobi", ksp_max_it=3).reason == Reason.DIVERGED_MAX_IT
    given = {"pc_type": "jacobi", "ksp_norm_type": "none", "ksp_max_it": 4, "ksp_convergence_test": "skip"}
    assert both(mat, wave(mat), **PAIR, **given).iterations == 4
    turned = PETSc.Mat().createAIJ((2, 2), nnz=2, comm=PETSc.COMM_SELF)
    turned.setValues([0, 1], [0, 1], [0.0, 1.0, -1.0, 0.0])
    turned.assemble()
    b = turned.createVecLeft()
    b.set(1.0)
    assert both(turned, b, **PAIR, pc_type="none").reason == Reason.DIVERGED_BREAKDOWN


def test_null_space():
    assert constants_are_left_out(PAIR)


def test_not_a_number():
    problem, b = system("sipg_gpu")
    b.setArray(np.full(b.getLocalSize(), np.nan))
    assert solved("BiCGStab", problem.callbacks.jacobian, b, pc_type="jacobi").reason == Reason.DIVERGED_NANORINF
