"""Chebyshev's iteration on the device: PETSc's iterates with given bounds and with its own estimates of them."""

from __future__ import annotations

import numpy as np
import pytest
from krylov_systems import both, laplacian, solved, system, wave
from petsc4py import PETSc

from petsc_hdg.errors import OptionError, our_error

Reason = PETSc.KSP.ConvergedReason
PAIR = {"ours": "Chebyshev", "theirs": "chebyshev"}


@pytest.fixture(scope="module", params=["sipg_gpu", "hdg_gpu", "cg_gpu"])
def made(request):
    return system(request.param)


@pytest.mark.parametrize("norm", ["preconditioned", "unpreconditioned"])
def test_iterates(made, norm):
    problem, b = made
    given = {"pc_type": "jacobi", "ksp_norm_type": norm, "ksp_max_it": 20}
    done = both(problem.callbacks.jacobian, b, **PAIR, **given)
    assert done.reason == Reason.DIVERGED_MAX_IT and done.iterations == 20
    lower, upper = done.ksp.getPythonContext().bounds
    assert 0 < lower < upper < 10


@pytest.mark.parametrize("options", [
    {"ksp_chebyshev_eigenvalues": "0.05,3"},
    {"ksp_chebyshev_esteig": "0.2,0.1,0,1.2", "ksp_chebyshev_esteig_steps": 5},
    {"ksp_norm_type": "none"},
    {"pc_type": "icc"},
    {"pc_type": "none"},
    {"ksp_max_it": 1},
    {"ksp_max_it": 0},
    {"ksp_rtol": 1e-1},
    {"ksp_atol": 1e-1},
])  # fmt: skip
@pytest.mark.parametrize("guessed", [False, True])
def test_options(options, guessed):
    mat = laplacian(singular=False)
    both(mat, wave(mat), wave(mat) if guessed else None, **PAIR, **{"pc_type": "jacobi", "ksp_max_it": 9, **options})


def test_null_space():
    mat = laplacian(singular=True)
    constants = PETSc.NullSpace().create(constant=True, comm=mat.comm)
    mat.setNullSpace(constants)
    mat.setTransposeNullSpace(constants)
    given = {"ksp_chebyshev_eigenvalues": "0.05,2.1", "pc_type": "jacobi"}
    done = both(mat, wave(mat), **PAIR, **given)
    assert done.reason == Reason.CONVERGED_RTOL and abs(done.x.sum()) < 1e-8


def test_monitors_see_the_solution():
    problem, b = system("sipg_gpu")
    seen = {}

    def watch(ksp, its, norm):
        seen.setdefault(ksp.getType(), []).append((its, norm, ksp.buildResidual().norm()))

    given = {"pc_type": "jacobi", "ksp_max_it": 7, "ksp_norm_type": "unpreconditioned"}
    solved("Chebyshev", problem.callbacks.jacobian, b, setting=lambda ksp: ksp.setMonitor(watch), **given)
    its, norms, residuals = np.array(seen["python"]).T
    assert its.tolist() == list(range(8)) and np.allclose(norms, residuals, rtol=1e-9)


@pytest.mark.parametrize("value", ["3,1", "1", "a,b"])
def test_bad_bounds(value):
    mat = laplacian()
    with pytest.raises((OptionError, PETSc.Error)) as caught:
        solved("Chebyshev", mat, wave(mat), ksp_chebyshev_eigenvalues=value)
    assert "-tried_ksp_chebyshev_eigenvalues is" in str(our_error(caught.value))
