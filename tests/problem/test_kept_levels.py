"""Levels of preconditioners that serve several linearizations, and those that do not."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_time import NONLINEAR, problem_in_time

import petsc_hdg as fe
from petsc_hdg.krylov import amg
from petsc_hdg.krylov.sell_matrix import SellMatrix
from petsc_hdg.operators.block_jacobi import BlockJacobi
from petsc_hdg.operators.callbacks import ALL, LEVELS, NOTHING
from petsc_hdg.options import Options
from petsc_hdg.petsc import c_library
from petsc_hdg.problem import memory_traffic
from petsc_hdg.problem.linear import direct_solvers, kept_levels

MILD = "for (d = 0; d < dim; ++d) f1[d] = (1 + k*u[0]*u[0])*u_x[d];"
STEEP = "for (d = 0; d < dim; ++d) f1[d] = (1e-3 + u_x[0]*u_x[0] + u_x[1]*u_x[1])*u_x[d];"
EACH_STEP = {"snes_lag_preconditioner": "1"}  # new levels


def problem_of(backend="cg_gpu", f1=MILD, on_device=False, **options) -> fe.Problem:
    mesh = fe.Mesh.box((6, 6), comm=PETSc.COMM_SELF)
    if backend == "poly_gpu":
        mesh = fe.agglomerate(mesh, 12)
    walls = [fe.Dirichlet("boundary", 0.0)]
    constants = {"k": 1.0, "s": 4.0} if f1 == MILD else {"s": 1.0}
    physics = fe.Physics({"u": 1}, "f0[0] = -s;", f1, constants=constants, boundary=walls)
    problem = fe.Problem(mesh, physics, Options(backend=backend, degree=2, check_kernels=False, **options))
    problem.device.has_solvers = on_device
    return problem


@pytest.fixture
def kept(monkeypatch) -> list[int]:
    """What each linearization keeps."""
    found, serve = [], kept_levels.KeptLevels.serve

    def noted(levels, *given):
        found.append(serve(levels, *given))
        return found[-1]

    monkeypatch.setattr(kept_levels.KeptLevels, "serve", noted)
    return found


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("backend", ["cg_gpu", "sipg_gpu", "hdg_gpu", "poly_gpu"])
def test_mild_changes_keep_levels(backend, on_device, kept):
    """As many steps lead to the same solution, in nearly as many iterations."""
    problem = problem_of(backend, on_device=on_device)
    u = problem.solve()
    first, steps, its = list(kept), problem.newton_iterations, problem.linear_iterations
    again = problem.solve()
    assert first[0] == NOTHING and NOTHING not in first[1:] + kept[len(first) :] and kept[len(first)] == LEVELS
    assert ALL in first
    assert f"  preconditioner: new levels in 0 of {steps} linearizations" in memory_traffic.lines(problem)
    with petsc_options(**EACH_STEP):
        other = problem_of(backend, on_device=on_device)
        expected = other.solve()
    assert kept[-1] == NOTHING
    assert steps == other.newton_iterations and its <= 1.3 * other.linear_iterations + steps
    for found in (u, again):
        found.axpy(-1.0, expected)
        assert found.norm() < 1e-6 * expected.norm()


def test_products_follow_the_state_where_all_is_kept(kept):
    """Recorded launches of a kept preconditioner smooth by the matrix as it is now."""
    problem = problem_of(on_device=True)
    problem.solve()
    assert kept[-1] == ALL
    solver, b = problem.snes.getKSP().getPythonContext(), problem.create_vec()
    multigrid = solver.preconditioner.inner
    b.setArray(np.random.default_rng(1).standard_normal(b.getLocalSize()))
    with problem.access.read(b) as given:
        results = []
        for apply in (multigrid.apply, multigrid._apply):
            out = solver.vectors.arrays.zeros(solver.vectors.count)
            apply(given, out)
            results.append(solver.vectors.arrays.to_host(out, solver.vectors.count))
    assert np.array_equal(*results) and np.abs(results[0]).max() > 0


def test_slow_steps_get_new_levels(kept):
    problem = problem_of(f1=STEEP)
    problem.solve()
    norms = problem.snes.getConvergenceHistory()[0]
    is_fast = norms[1:-1] <= kept_levels.FAST * norms[:-2]
    assert not is_fast.all()
    assert all(what == NOTHING for what, fast in zip(kept[1:], is_fast, strict=True) if not fast)


def test_other_coefficients_get_new_levels(kept):
    problem = problem_of()
    problem.solve()
    problem.set_constants(k=50.0)
    count = len(kept)
    problem.solve()
    assert kept[count] == NOTHING


@pytest.mark.parametrize("backend", ["cg_gpu", "sipg_gpu"])
def test_levels_that_do_not_serve(backend, kept, monkeypatch):
    """A linear solve by them stops, Newton's method goes on with new ones, and limits are those of before."""
    monkeypatch.setattr(kept_levels, "FAST", np.inf)
    problem = problem_of(backend)
    problem.solve()
    problem.set_constants(k=400.0, s=40.0)
    monkeypatch.setattr(problem.callbacks.kept_levels, "forget", lambda: None)  # keep those of k = 1
    count, snes = len(kept), problem.snes
    limits = snes.getKSP().getTolerances(), snes.getMaxKSPFailures()
    u = problem.solve()
    assert LEVELS in kept[count:] and NOTHING in kept[count:]
    assert (snes.getKSP().getTolerances()[1:], snes.getMaxKSPFailures()) == (limits[0][1:], limits[1])
    assert snes.getKSP().getConvergedReason() > 0 and not problem.direct
    residuals = problem.create_vec(), problem.create_vec()
    for state, residual in zip((problem.create_vec(), u), residuals, strict=True):
        problem.callbacks.residual(None, state, residual)
    assert residuals[1].norm() < 1e-6 * residuals[0].norm()


def in_time(backend: str, on_device=False) -> fe.Problem:
    problem = problem_in_time(NONLINEAR, faces=(6, 6), backend=backend, check_kernels=False)
    problem.device.has_solvers = on_device
    return problem


@pytest.fixture
def iterative(monkeypatch):
    """No LU for steps of small problems."""
    monkeypatch.setattr(direct_solvers, "IN_TIME", {})


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("backend", ["cg_gpu", "hdg_gpu"])
def test_steps_of_one_length_keep_all(backend, on_device, kept, iterative):
    problem = in_time(backend, on_device)
    u = problem.solve_in_time(problem.create_vec(), 0.1, 0.01)
    assert LEVELS in kept and kept[-6:] == 6 * [ALL]
    with petsc_options(**EACH_STEP):
        other = in_time(backend, on_device)
        expected = other.solve_in_time(other.create_vec(), 0.1, 0.01)
    u.axpy(-1.0, expected)
    assert u.norm() < 1e-6 * expected.norm()


@pytest.mark.skipif(not hasattr(PETSc.TS.Type, "DIRK"), reason="PETSc before 3.20 has no DIRK")
@pytest.mark.parametrize("backend", ["cg_gpu", "sipg_gpu"])
def test_first_slopes_by_solvers_on_the_device(backend, iterative):
    """ARKIMEX and DIRK scale the matrix after smoothers have their bounds."""
    ends = []
    for on_device in (False, True):
        problem = in_time(backend, on_device)
        with petsc_options(ts_type="dirk"):
            ends.append(problem.solve_in_time(problem.create_vec(), 0.03, 0.01).norm())
    assert ends[1] == pytest.approx(ends[0], rel=1e-6)


def test_inexact_steps_of_traces_in_time(kept, iterative, monkeypatch):
    """A linear solve that takes more iterations than new levels would stops, and its step is taken."""
    monkeypatch.setattr(kept_levels, "GROWTH", 0.3)
    problem = in_time("hdg_gpu")
    u = problem.solve_in_time(problem.create_vec(), 0.05, 0.01)
    assert ALL in kept and NOTHING in kept[2:]
    with petsc_options(**EACH_STEP):
        other = in_time("hdg_gpu")
        expected = other.solve_in_time(other.create_vec(), 0.05, 0.01)
    u.axpy(-1.0, expected)
    assert u.norm() < 1e-6 * expected.norm()


def test_one_linear_solve_is_never_stopped(kept, iterative, monkeypatch):
    """Rosenbrock methods have no Newton steps that would mend it."""
    monkeypatch.setattr(kept_levels, "GROWTH", 0.3)
    ends = []
    for options in ({}, EACH_STEP):
        problem = in_time("cg_gpu")
        with petsc_options(ts_type="rosw", **options):
            ends.append(problem.solve_in_time(problem.create_vec(), 0.05, 0.01))
    assert LEVELS in kept or ALL in kept
    ends[0].axpy(-1.0, ends[1])
    assert ends[0].norm() < 1e-7 * ends[1].norm()


def test_blocks_follow_a_matrix_that_a_solver_on_the_device_is_not_given_anew(kept, iterative, monkeypatch):
    """As that of a trace in time."""
    count, set_up = [], BlockJacobi.setUp
    monkeypatch.setattr(BlockJacobi, "setUp", lambda *given: (count.append(1), set_up(*given))[1])
    with petsc_options(**EACH_STEP):
        problem = in_time("hdg_gpu", on_device=True)
        problem.solve_in_time(problem.create_vec(), 0.03, 0.01)
    assert len(count) == len(kept) > 3


def test_runs_that_may_go_on_from_a_file_keep_none(tmp_path, kept):
    problem_of(checkpoint=str(tmp_path / "run.h5")).solve()
    assert set(kept) == {NOTHING}


def test_a_lag_of_the_user_stays(kept):
    problem = problem_of()
    snes = problem.create_snes()
    c_library.set_lag(snes, 2)
    for _ in range(2):
        u = problem.create_vec()
        snes.solve(None, u)
    assert set(kept) == {NOTHING} and c_library.lag(snes) == 2 and snes.getConvergedReason() > 0
    problem.solve()
    assert ALL in kept and c_library.lag(problem.snes) == 1


def test_a_linear_solver_of_the_user_keeps_none(kept):
    with petsc_options(pc_type="gamg", fe_pmat="aij"):
        problem_of().solve()
    assert set(kept) == {NOTHING}


@pytest.mark.parametrize("backend", ["cg_gpu", "sipg_gpu"])
def test_runs_in_time_share_aggregates_and_transfers(backend, monkeypatch):
    """The second run has another solver, and the levels of the first one with new values."""
    built, laid = [], []
    build, lay = amg._Cycle._build, SellMatrix.__init__
    monkeypatch.setattr(amg._Cycle, "_build", lambda cycle: (built.append(None), build(cycle))[1])
    monkeypatch.setattr(SellMatrix, "__init__", lambda *given: (laid.append(None), lay(*given))[1])
    problem = problem_in_time(NONLINEAR, faces=(20, 20), backend=backend, pmat="conforming")
    problem.device.has_solvers = True
    u0 = problem.interpolate("exact")
    norms = [problem.solve_in_time(u0, 0.2, 0.1).norm()]
    made = len(built), len(laid)
    norms.append(problem.solve_in_time(u0, 0.2, 0.1).norm())
    assert made[0] == 1 and made[1] and (len(built), len(laid)) == made
    assert norms[1] == pytest.approx(norms[0], rel=1e-7)
