"""Conjugate gradients on the device: iterates of PETSc's, with every norm, guess, null space and way to stop."""

from __future__ import annotations

import numpy as np
import pytest
from krylov_systems import agree, both, laplacian, solved, system, wave
from petsc4py import PETSc

from petsc_hdg.errors import SolveError, our_error
from petsc_hdg.krylov.preconditioners import Preconditioner

Reason = PETSc.KSP.ConvergedReason


@pytest.fixture(scope="module", params=["sipg_gpu", "hdg_gpu", "cg_gpu"])
def made(request):
    """A system, and how far iterates are those of exact arithmetic: 50 iterations of sipg_gpu, of 118 to 1e-8."""
    return *system(request.param), 1e-3 if request.param == "sipg_gpu" else 1e-8


@pytest.mark.parametrize("norm", ["preconditioned", "unpreconditioned", "natural"])
@pytest.mark.parametrize("pc", ["none", "jacobi"])
def test_iterates(made, pc, norm):
    problem, b, rtol = made
    given = {"ksp_norm_type": norm, "pc_type": pc, "ksp_rtol": rtol}
    ours, theirs = (solved(m, problem.callbacks.jacobian, b, **given) for m in ("CG", "cg"))
    assert theirs.iterations > 10 and theirs.reason == Reason.CONVERGED_RTOL
    agree(ours, theirs)


@pytest.mark.parametrize("backend, pc", [("sipg_gpu", "CellBlockJacobi"), ("hdg_gpu", "FacetBlockJacobi")])
def test_blocks(backend, pc):
    problem, b = system(backend)
    given = {"pc_type": "python", "pc_python_type": f"petsc_hdg.{pc}", "ksp_rtol": 1e-8}
    ours, theirs = (solved(m, problem.callbacks.jacobian, b, **given) for m in ("CG", "cg"))
    assert theirs.iterations > 10
    agree(ours, theirs)
    context = ours.ksp.getPythonContext()
    assert context.matrix.on_device and context.preconditioner.on_device


@pytest.mark.parametrize("looks", [False, True])
def test_no_preconditioner_after_the_last_residual(looks, monkeypatch):
    """The norm of a residual that may end the solve comes first; whoever looks at the solution then has that step's."""
    problem, b = system("hdg_gpu")
    given = {"pc_type": "python", "pc_python_type": "petsc_hdg.FacetBlockJacobi", "ksp_rtol": 1e-8}
    applied, seen, apply = [], {}, Preconditioner.apply
    monkeypatch.setattr(Preconditioner, "apply", lambda self, x, y: (applied.append(1), apply(self, x, y)))

    def look(ksp, its, norm):
        seen.setdefault(ksp.getType(), []).append(ksp.buildSolution().norm())

    watch = (lambda ksp: ksp.setMonitor(look)) if looks else None
    ours, theirs = (
        solved(m, problem.callbacks.jacobian, b, setting=watch, ksp_norm_type="unpreconditioned", **given)
        for m in ("CG", "cg")
    )
    agree(ours, theirs)
    assert len(applied) == ours.iterations
    np.testing.assert_allclose(seen.get("python", []), seen.get("cg", []), rtol=1e-7, atol=1e-14)


@pytest.mark.parametrize("pc", ["none", "jacobi", "ilu", "sor"])
def test_foreign_matrices(pc, capfd):
    given = {"pc_type": pc, **({"pc_sor_symmetric": ""} if pc == "sor" else {})}
    mat = laplacian()
    done = both(mat, wave(mat), ksp_view="", **given)
    assert done.reason == Reason.CONVERGED_RTOL
    said = capfd.readouterr().out
    assert "products on the device, by a copy of the matrix" in said
    assert ("preconditioner on the device" in said) == (pc in ("none", "jacobi"))


@pytest.mark.parametrize("backend, given", [("sipg_gpu", {}), ("hdg_gpu", {"hdg_trace_mat": "symmetric"})])
def test_products_that_sum(backend, given):
    """p·w comes from the product where that can sum it, and iterates stay."""
    problem, b = system(backend, **given)
    ours, theirs = (solved(m, problem.callbacks.jacobian, b, pc_type="jacobi", ksp_rtol=1e-4) for m in ("CG", "cg"))
    agree(ours, theirs)
    steps = ours.ksp.getPythonContext()._kept
    assert steps.num_parts > 0 and steps.parts is not None


class OfTheUser:
    """Context of a user's own shell matrix."""

    def __init__(self, mat):
        self.other = mat

    def mult(self, mat, x, y):
        self.other.mult(x, y)

    def getDiagonal(self, mat, diagonal):
        self.other.getDiagonal(diagonal)


@pytest.mark.parametrize("norm", ["preconditioned", "natural"])
def test_shell_matrices_of_the_user_are_staged(norm, capfd):
    aij = laplacian()
    mat = PETSc.Mat().createPython(aij.getSizes(), OfTheUser(aij), comm=aij.comm)
    mat.setUp()
    guess = wave(mat)
    both(mat, wave(mat), pc_type="jacobi", ksp_norm_type=norm, ksp_view="")
    assert "products by PETSc (python), staged" in capfd.readouterr().out
    both(mat, wave(mat), guess, pc_type="none", ksp_norm_type=norm, ksp_max_it=5)
    mat.destroy()


@pytest.mark.parametrize("options, reason", [
    ({"ksp_max_it": 3}, Reason.DIVERGED_MAX_IT),
    ({"ksp_max_it": 3, "ksp_converged_maxits": ""}, Reason.CONVERGED_ITS),
    ({"ksp_max_it": 3, "ksp_norm_type": "none"}, Reason.DIVERGED_MAX_IT),
    ({"ksp_max_it": 3, "ksp_norm_type": "none", "ksp_convergence_test": "skip"}, Reason.CONVERGED_ITS),
    ({"ksp_atol": 1e-2}, Reason.CONVERGED_ATOL),
    ({"ksp_rtol": 1e-2}, Reason.CONVERGED_RTOL),
    ({"ksp_divtol": 0.7, "ksp_rtol": 0.1}, Reason.DIVERGED_DTOL),
])  # fmt: skip
@pytest.mark.parametrize("backend", ["sipg_gpu", "aij"])
def test_ways_to_stop(backend, options, reason):
    if backend == "aij":
        mat = laplacian()
        b = wave(mat)
    else:
        problem, b = system(backend)
        mat = problem.callbacks.jacobian
    assert both(mat, b, **{"pc_type": "jacobi", **options}).reason == reason


def test_indefinite_matrices():
    mat = laplacian(diagonal=0.3)
    assert both(mat, wave(mat), pc_type="none").reason == Reason.DIVERGED_INDEFINITE_MAT
    mat = laplacian()
    for row in range(6):
        mat.setValue(row, row, -2.0)
    mat.assemble()
    assert both(mat, wave(mat), pc_type="jacobi").reason == Reason.DIVERGED_INDEFINITE_PC


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_a_number(bad):
    problem, b = system("sipg_gpu")
    values = b.getArray().copy()
    values[5] = bad
    b.setArray(values)
    assert solved("CG", problem.callbacks.jacobian, b, pc_type="jacobi").reason == Reason.DIVERGED_NANORINF
    assert solved("cg", problem.callbacks.jacobian, b, pc_type="jacobi").reason == Reason.DIVERGED_NANORINF


def test_zero_right_hand_side():
    problem, b = system("sipg_gpu")
    b.set(0.0)
    assert both(problem.callbacks.jacobian, b, pc_type="jacobi").reason == Reason.CONVERGED_ATOL


@pytest.mark.parametrize("pc", ["jacobi", "none"])
def test_first_guess(made, pc):
    problem, b, _ = made
    guess = b.duplicate()
    guess.setArray(np.cos(np.arange(b.getLocalSize())))
    both(problem.callbacks.jacobian, b, guess, pc_type=pc, ksp_rtol=1e-4)


@pytest.mark.parametrize("pc", ["jacobi", "none", "icc"])
@pytest.mark.parametrize("kind", ["constant", "vectors"])
def test_null_space(kind, pc):
    mat = laplacian(singular=True)
    b, ones = wave(mat), mat.createVecLeft()
    ones.set(1.0)
    ones.normalize()
    constant = kind == "constant"
    space = PETSc.NullSpace().create(constant=constant, vectors=[] if constant else [ones], comm=mat.comm)
    mat.setNullSpace(space)
    mat.setTransposeNullSpace(space)
    done = both(mat, b, pc_type=pc)
    assert done.reason > 0 and abs(done.x.sum()) < 1e-8


def test_monitors_see_the_solution():
    problem, b = system("sipg_gpu")
    seen = {}

    def watch(ksp, its, norm):
        seen.setdefault(ksp.getType(), []).append((its, norm, ksp.buildResidual().norm(), ksp.buildSolution().norm()))

    both(problem.callbacks.jacobian, b, setting=lambda ksp: ksp.setMonitor(watch), pc_type="jacobi", ksp_max_it=12)
    assert [row[0] for row in seen["python"]] == list(range(13))
    assert np.allclose(seen["python"], seen["cg"], rtol=1e-9)


def test_convergence_tests_of_the_user():
    problem, b = system("sipg_gpu")

    def enough(ksp, its, norm):
        return Reason.CONVERGED_ITS if its == 7 else 0

    done = both(problem.callbacks.jacobian, b, setting=lambda ksp: ksp.setConvergenceTest(enough), pc_type="jacobi")
    assert done.iterations == 7


def test_solves_again():
    problem, b = system("sipg_gpu")
    first = solved("CG", problem.callbacks.jacobian, b, pc_type="jacobi")
    x = b.duplicate()
    first.ksp.solve(b, x)
    assert np.array_equal(x.getArray(), first.x)
    b.scale(2.0)
    first.ksp.solve(b, x)
    assert np.allclose(x.getArray(), 2 * first.x, rtol=1e-6)


@pytest.mark.parametrize("method", ["CG", "FGMRES"])
def test_matrices_times_a_factor(method):
    """As ARKIMEX gets the mass matrix from a large shift."""
    problem, b = system("sipg_gpu")
    mat = problem.callbacks.jacobian
    mat.scale(40.0)
    for guess in (None, b):
        found = solved(method, mat, b, guess, pc_type="jacobi", ksp_rtol=1e-10)
        x, product = b.duplicate(), b.duplicate()
        x.setArray(found.x)
        mat.mult(x, product)
        assert found.reason > 0 and (product - b).norm() < 1e-8 * b.norm()


def test_single_precision_operators():
    problem, b = system("sipg_gpu", precision="single")
    given = {"pc_type": "jacobi", "ksp_rtol": 1e-3}
    pair = [solved(m, problem.callbacks.jacobian, b, **given) for m in ("CG", "cg")]
    agree(*pair, early=1e-4, late=1e-3)


def test_devices_without_double_precision():
    problem, b = system("sipg_gpu", precision="single")
    problem.device.has_fp64 = False
    pair = [solved(m, problem.callbacks.jacobian, b, pc_type="jacobi", ksp_rtol=1e-2) for m in ("CG", "cg")]
    assert pair[0].ksp.getPythonContext().vectors.arrays.precision == "single"
    agree(*pair, early=1e-3, late=1e-2)


def swapping() -> PETSc.Mat:
    """A singular matrix, with which a factorization fails."""
    mat = PETSc.Mat().createAIJ((3, 3), nnz=3, comm=PETSc.COMM_SELF)
    mat.setValues([0, 1, 2], [0, 1, 2], [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    mat.assemble()
    return mat


FAILURES = {"lu": Reason.DIVERGED_PCSETUP_FAILED, "jacobi": Reason.DIVERGED_INDEFINITE_MAT}


@pytest.mark.parametrize("pc, reason", FAILURES.items())
def test_preconditioners_that_fail(pc, reason):
    mat = swapping()
    done, theirs = (solved(m, mat, wave(mat), pc_type=pc) for m in ("CG", "cg"))
    assert done.reason == theirs.reason == reason and done.iterations == theirs.iterations


def test_bad_uses():
    mat = laplacian()
    done = solved("Chebyshev", mat, wave(mat), pc_type="jacobi")
    with pytest.raises((SolveError, PETSc.Error)) as caught:
        done.ksp.solveTranspose(wave(mat), mat.createVecLeft())
    assert "not with its transpose" in str(our_error(caught.value))
    with pytest.raises((SolveError, PETSc.Error)) as caught:
        solved("CG", mat, wave(mat), ksp_monitor_solution="")
    assert "use -ksp_monitor or -ksp_monitor_true_residual" in str(our_error(caught.value))
    with pytest.raises(PETSc.Error, match="does not support preconditioner side RIGHT"):
        solved("CG", mat, wave(mat), ksp_pc_side="right")
