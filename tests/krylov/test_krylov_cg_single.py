"""Conjugate gradients with one sum over ranks an iteration: iterates of PETSc's with -ksp_cg_single_reduction."""

from __future__ import annotations

import numpy as np
import pytest
from krylov_systems import LEVELS, agree, both, laplacian, laplacian_2d, solved, system, wave
from petsc4py import PETSc
from petsc_options import petsc_options

from petsc_hdg.errors import OptionError, our_error
from petsc_hdg.krylov.cg import PairSteps, SingleSteps
from petsc_hdg.krylov.multigrid import MirroredMultigrid

Reason = PETSc.KSP.ConvergedReason
SINGLE = {"ksp_cg_single_reduction": ""}


def single(mat, b, guess=None, setting=None, **options):
    """Solve by PETSc and by ours, both with one sum, and compare; returns what ours did."""
    done = both(mat, b, guess, setting, **SINGLE, **options)
    assert isinstance(done.ksp.getPythonContext()._kept, SingleSteps)
    return done


@pytest.fixture(scope="module", params=["sipg_gpu", "hdg_gpu"])
def made(request):
    """A system, and how far iterates are those of exact arithmetic."""
    return *system(request.param), 1e-3 if request.param == "sipg_gpu" else 1e-8


@pytest.mark.parametrize("norm", ["preconditioned", "unpreconditioned", "natural"])
@pytest.mark.parametrize("pc", ["none", "jacobi"])
def test_iterates(made, pc, norm):
    problem, b, rtol = made
    done = single(problem.callbacks.jacobian, b, ksp_norm_type=norm, pc_type=pc, ksp_rtol=rtol)
    assert done.iterations > 10 and done.reason == Reason.CONVERGED_RTOL
    assert done.ksp.getPythonContext()._kept.runs_ahead


PRECONDITIONERS = {"gamg": LEVELS, "sor": {"pc_sor_symmetric": ""}}


@pytest.mark.parametrize("norm", ["preconditioned", "unpreconditioned", "natural"])
@pytest.mark.parametrize("pc", PRECONDITIONERS)
def test_preconditioners_of_their_own_vector(monkeypatch, pc, norm):
    """z beside r: multigrid mirrored on the device, and a preconditioner that PETSc applies."""
    monkeypatch.setattr(MirroredMultigrid, "join", lambda *sizes: None)  # by which small levels are no longer PETSc's
    mat = laplacian_2d(30)
    done = single(mat, wave(mat), pc_type=pc, ksp_norm_type=norm, ksp_rtol=1e-8, **PRECONDITIONERS[pc])
    context = done.ksp.getPythonContext()
    assert context.preconditioner.on_device == context._kept.runs_ahead == (pc == "gamg") and done.iterations > 5


def test_products_that_sum():
    """z·s comes from the product where that can sum it, and iterates stay."""
    problem, b = system("hdg_gpu", hdg_trace_mat="symmetric")
    done = single(problem.callbacks.jacobian, b, pc_type="jacobi", ksp_rtol=1e-8)
    steps = done.ksp.getPythonContext()._kept
    assert steps.num_parts > 0 and steps.parts is not None


@pytest.mark.parametrize("options, reason", [
    ({"ksp_max_it": 3}, Reason.DIVERGED_MAX_IT),
    ({"ksp_max_it": 3, "ksp_norm_type": "none", "ksp_convergence_test": "skip"}, Reason.CONVERGED_ITS),
    ({"ksp_atol": 1e-2}, Reason.CONVERGED_ATOL),
    ({"ksp_rtol": 1e-2}, Reason.CONVERGED_RTOL),
    ({"ksp_divtol": 0.7, "ksp_rtol": 0.1}, Reason.DIVERGED_DTOL),
])  # fmt: skip
@pytest.mark.parametrize("pc", ["jacobi", "icc"])
def test_ways_to_stop(pc, options, reason):
    """The solution is that of the norm that ended the solve, also where the next step has begun."""
    problem, b = system("cg_gpu", pmat="aij")
    assert single(problem.callbacks.matrices[-1], b, **{"pc_type": pc, **options}).reason == reason


def test_indefinite_and_zero():
    mat = laplacian(diagonal=0.3)
    assert single(mat, wave(mat), pc_type="none").reason == Reason.DIVERGED_INDEFINITE_MAT
    mat = laplacian()
    b = wave(mat)
    b.set(0.0)
    assert single(mat, b, pc_type="jacobi").reason == Reason.CONVERGED_ATOL
    b.set(np.nan)
    assert solved("CG", mat, b, pc_type="jacobi", **SINGLE).reason == Reason.DIVERGED_NANORINF
    for row in range(6):
        mat.setValue(row, row, -2.0)
    mat.assemble()
    assert single(mat, wave(mat), pc_type="jacobi").reason == Reason.DIVERGED_INDEFINITE_PC


@pytest.mark.parametrize("pc", ["jacobi", "none"])
def test_first_guess_and_monitors(made, pc):
    problem, b, _ = made
    guess, seen = b.duplicate(), {}
    guess.setArray(np.cos(np.arange(b.getLocalSize())))

    def watch(ksp, its, norm):
        seen.setdefault(ksp.getType(), []).append((its, norm, ksp.buildSolution().norm()))

    given = {"pc_type": pc, "ksp_max_it": 12, "ksp_rtol": 1e-12}
    single(problem.callbacks.jacobian, b, guess, lambda ksp: ksp.setMonitor(watch), **given)
    assert [row[0] for row in seen["python"]] == list(range(13))
    assert np.allclose(seen["python"], seen["cg"], rtol=1e-9)


@pytest.mark.parametrize("pc", ["jacobi", "icc"])
def test_null_space(pc):
    mat = laplacian(singular=True)
    space = PETSc.NullSpace().create(constant=True, comm=mat.comm)
    mat.setNullSpace(space)
    mat.setTransposeNullSpace(space)
    done = single(mat, wave(mat), pc_type=pc)
    assert done.reason > 0 and abs(done.x.sum()) < 1e-8


def test_solves_again_to_the_bit():
    problem, b = system("sipg_gpu")
    first = solved("CG", problem.callbacks.jacobian, b, pc_type="jacobi", **SINGLE)
    x = b.duplicate()
    first.ksp.solve(b, x)
    again = first.ksp.getConvergenceHistory()[len(first.history) :]
    assert np.array_equal(x.getArray(), first.x) and np.array_equal(again, first.history)


def test_devices_without_double_precision():
    problem, b = system("sipg_gpu", precision="single")
    problem.device.has_fp64 = False
    given = {"pc_type": "jacobi", "ksp_rtol": 1e-2, **SINGLE}
    pair = [solved(m, problem.callbacks.jacobian, b, **given) for m in ("CG", "cg")]
    assert pair[0].ksp.getPythonContext().vectors.arrays.precision == "single"
    agree(*pair, early=1e-3, late=1e-2)


def test_as_exact_as_with_two_sums():
    """The recursion of w and p·w costs no accuracy: the residual itself, not the recursion's, at the end of a solve."""
    problem, b = system("hdg_gpu")
    mat, product = problem.callbacks.jacobian, b.duplicate()
    counts = []
    for given in ({}, SINGLE):
        done = solved("CG", mat, b, pc_type="jacobi", ksp_rtol=1e-15, **given)
        x = b.duplicate()
        x.setArray(done.x)
        mat.mult(x, product)
        assert done.reason == Reason.CONVERGED_RTOL and (product - b).norm() < 1e-14 * b.norm()
        counts.append(done.iterations)
    assert abs(counts[0] - counts[1]) <= 1


def test_the_option(capfd):
    mat = laplacian()
    given = {"pc_type": "jacobi", "ksp_view": "", "ksp_cg_single_reduction": "false"}
    done = both(mat, wave(mat), **given)
    assert isinstance(done.ksp.getPythonContext()._kept, PairSteps)
    assert "one sum over ranks" not in capfd.readouterr().out
    single(mat, wave(mat), pc_type="jacobi", ksp_view="")
    assert "one sum over ranks an iteration" in capfd.readouterr().out
    with petsc_options(tried_ksp_cg_single_reduction="1"):
        done.ksp.setFromOptions()
    done.ksp.solve(wave(mat), mat.createVecLeft())
    assert isinstance(done.ksp.getPythonContext()._kept, SingleSteps)  # after a solve with two sums
    with pytest.raises((OptionError, PETSc.Error)) as caught:
        solved("CG", mat, wave(mat), ksp_cg_single_reduction="some")
    assert "'some'; it takes true or false" in str(our_error(caught.value))
