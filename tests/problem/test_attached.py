"""Solvers of the user's own (`problem.attach`): matrices and defaults do not depend on what came before."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_meshes import box_mesh
from sample_physics import smooth_poisson
from sample_time import HEAT, problem_in_time, start

from petsc_hdg.options import Options
from petsc_hdg.problem import Problem


def made(backend: str = "cg_gpu", degree: int = 2) -> Problem:
    options = Options(backend=backend, degree=degree, check_kernels=False)
    return Problem(box_mesh("triangle", (10, 10), comm=PETSc.COMM_SELF), smooth_poisson(), options)


def attached(problem: Problem) -> PETSc.SNES:
    snes = PETSc.SNES().create(PETSc.COMM_SELF)
    problem.attach(snes)
    return snes


def finest(ksp: PETSc.KSP) -> PETSc.Mat:
    """What multigrid smooths its finest level by."""
    pc = ksp.getPC()
    return pc.getMGSmoother(pc.getMGLevels() - 1).getOperators()[0]


@pytest.mark.parametrize("backend, degree", [("cg_gpu", 1), ("cg_gpu", 2), ("hdg_gpu", 2)])
def test_the_assembled_matrix_smooths_wherever_there_is_one(backend, degree):
    """By defaults, by the user's -pc_type and in a solver of the user's own; -pc_use_amat has the last word."""
    for own, given in ((False, {}), (False, {"pc_use_amat": "1"}), (True, {}), (True, {"pc_use_amat": "1"})):
        with petsc_options(pc_type="gamg", **given):
            problem = made(backend, degree)
            snes, u = attached(problem) if own else problem.snes, problem.create_vec()
            if own:
                snes.setFromOptions()
            snes.solve(None, u)
        assert snes.getConvergedReason() > 0
        assert (finest(snes.getKSP()) == problem.callbacks.assembled.mat) != bool(given), (own, given)


@pytest.mark.parametrize("backend, method", [("cg_gpu", "gmres"), ("hdg_gpu", "cg"), ("sipg_gpu", "cg")])
@pytest.mark.parametrize("before", [False, True])
def test_attach_is_the_same_whatever_came_before(backend, method, before):
    """A matrix for any PC where the scheme assembles one, levels else; and the problem's own solver goes on."""
    problem = made(backend)
    expected = problem.solve() if before else None
    snes, u = attached(problem), problem.create_vec()
    pc = snes.getKSP().getPC()
    assert (snes.getKSP().getType() or "gmres") == method
    assert pc.getType() == ("mg" if backend == "sipg_gpu" else "gamg")
    if backend != "sipg_gpu":
        assert snes.getJacobian()[1] == problem.callbacks.assembled.mat
        pc.setType("lu")
    snes.getKSP().setTolerances(rtol=1e-12)
    snes.solve(None, u)
    assert snes.getConvergedReason() > 0
    again = problem.solve()
    for other in filter(None, (expected, again)):
        assert (u - other).norm() < 1e-8 * u.norm()


def test_types_of_the_user_stay():
    problem, snes = made(), PETSc.SNES().create(PETSc.COMM_SELF)
    snes.getKSP().setType("bcgs")
    snes.getKSP().getPC().setType("jacobi")
    snes.getKSP().setTolerances(rtol=1e-7)
    problem.attach(snes)
    ksp = snes.getKSP()
    assert (ksp.getType(), ksp.getPC().getType(), ksp.getTolerances()[0]) == ("bcgs", "jacobi", 1e-7)


def test_a_pc_that_the_user_gives_the_problems_solver_finds_a_matrix():
    problem = made()
    expected = problem.solve()
    problem.snes.getKSP().getPC().setType("lu")
    assert (problem.solve() - expected).norm() < 1e-8 * expected.norm()


@pytest.mark.parametrize("method", ["beuler", "bdf", "theta", "alpha", "arkimex", "rosw"])
def test_the_users_own_ts_with_hybridizable_dg(method):
    """PETSc's line search (bt) asks for one product, alpha scales residuals; rosw has but one linear solve a stage."""
    if method == "arkimex" and hasattr(PETSc.TS.Type, "DIRK"):
        pytest.skip("this ARKIMEX begins with the mass matrix, which hdg_gpu does not have")
    problem, ends = problem_in_time(HEAT, backend="hdg_gpu"), []
    for own in (True, False):
        with petsc_options(ts_type=method, ts_adapt_type="none"):
            if not own:
                ends.append(problem.solve_in_time(start(problem), 0.5, 0.1))
                continue
            ts = PETSc.TS().create(PETSc.COMM_SELF)
            problem.attach(ts)
            ts.setTimeStep(0.1)
            ts.setMaxTime(0.5)
            ts.setExactFinalTime(PETSc.TS.ExactFinalTime.MATCHSTEP)
            ts.setFromOptions()
            ends.append(start(problem))
            ts.solve(ends[0])
            assert ts.getConvergedReason() > 0
            ts.destroy()
    assert np.abs(ends[0].getArray() - ends[1].getArray()).max() < 1e-9
