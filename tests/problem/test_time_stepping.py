"""Runs in time by PETSc's TS: orders of its methods with all schemes, what is kept between steps, hooks, failures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_space_time import blobs, moving, moving_at_start, problem_of
from sample_space_time import nonlinear as nonlinear_rates
from sample_time import HEAT, HEATED, NONLINEAR, VARYING, final_error, problem_in_time, start

from petsc_hdg import Mesh, Problem
from petsc_hdg.errors import OptionError, PhysicsError, SolveError
from petsc_hdg.physics import Dirichlet, Physics, Robin

SCRIPT = Path(__file__).with_name("run_time.py")
SHIFTED = Physics(
    {"u": 1},
    "f0[0] = u_t[0] - sin(3*(t + since));",
    "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    constants={"since": 0.0},
    boundary=[Dirichlet("boundary", "g[0] = 0;")],
)
MOVING, RATES = moving(), nonlinear_rates()
TIGHT = {"ksp_rtol": "1e-12", "snes_rtol": "1e-11"}
# method: options, order, largest error with 16 steps
METHODS = {
    "beuler": ({"ts_type": "beuler"}, 1, 3e-3),
    "cn": ({"ts_type": "cn"}, 2, 3e-4),
    "theta": ({"ts_type": "theta", "ts_theta_theta": "0.5"}, 2, 3e-4),
    "bdf2": ({"ts_type": "bdf"}, 2, 1e-3),
    "bdf3": ({"ts_type": "bdf", "ts_bdf_order": "3"}, 3, 2e-4),
    "arkimex": ({"ts_type": "arkimex", "ts_arkimex_type": "3"}, 2, 3e-4),  # PETSc 3.18 starts it with first order
}


def orders(problem, settings: dict, begin=start, steps=(8, 16), t0: float = 0.2):
    """Order of convergence in time, and the last error."""
    with petsc_options(**settings, **TIGHT):
        coarse, fine = (final_error(problem, n, begin, t0) for n in steps)
    return np.log2(coarse / fine), fine


@pytest.mark.parametrize("backend", ["sipg_gpu", "hdg_gpu", "poly_gpu"])
def test_waves(backend):
    """u_t = v, v_t = Δu. By `sipg_gpu` conjugate gradients and GMRES both fail, and LU is the third run; `hdg_gpu` has
    the stabilization of u with the flux of u, and another form an order less, which it tells; that of `poly_gpu` is
    not symmetric where rates are seen, and iterations of other steps than the first need to know."""
    S, w = "sin(PETSC_PI*x[0])*sin(PETSC_PI*x[1])", "sqrt(2.0)*PETSC_PI"
    given = {
        "boundary": [Dirichlet("boundary", 0.0, field="u")],
        "exact": {"u": f"cos({w}*t)*{S}", "v": f"-{w}*sin({w}*t)*{S}"},
    }
    rate = "u_t - v" if backend == "sipg_gpu" else "v - u_t"
    waves = Physics({"u": 1, "v": 1}, {"u": "v_t", "v": rate}, {"u": "u_x[d]"}, **given)
    cells, degree, settings = (8, 3, {"ts_type": "cn"}) if backend == "poly_gpu" else (4, 2, {})
    problem = Problem(Mesh.box((cells,) * 2, simplex=True), waves, backend=backend, degree=degree)
    with petsc_options(**settings):
        u = problem.solve_in_time(problem.interpolate("exact", 0.0), 0.1, 0.01)
    assert problem.errors(u)["L2"] < 0.07  # 0.054 and 0.039; 0.009 and 0.007 on 8²
    if backend == "hdg_gpu":
        other = Physics({"u": 1, "v": 1}, {"u": "u_t - v", "v": "v_t"}, {"v": "u_x[d]"}, **given)
        with pytest.warns(UserWarning, match="an order less accurate; exchange the two equations"):
            Problem(problem.mesh, other, backend=backend, degree=2)


@pytest.mark.parametrize("backend", ["sipg_gpu", "poly_gpu"])
def test_data_that_only_other_equations_see(backend):
    """u_t + div q = 0, q_t / 10 + q + ∇u = 0, u = 0 on the boundary: gradients of u are in the equation of q."""
    S = "sin(PETSC_PI*x[0])*sin(PETSC_PI*x[1])"
    f0 = {"u": "u_t + q_x[0][0] + q_x[1][1]", "q": "0.1*q_t[c] + q[c] + u_x[c]"}
    physics = Physics({"u": 1, "q": 2}, f0, boundary=[Dirichlet("boundary", 0.0, field="u")])
    problem = Problem(Mesh.box((6, 6)), physics, backend=backend, degree=2)
    start = problem.interpolate({"u": lambda x: np.prod(np.sin(np.pi * x), axis=-1), "q": 0.0})
    u = problem.solve_in_time(start, 0.2, 0.01)
    rate = np.sqrt(20 * np.pi**2 - 25)
    exact = np.exp(-1) * (np.cos(0.2 * rate) + 5 / rate * np.sin(0.2 * rate))
    assert problem.integral(f"4*u*{S}", u) == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("backend", ["cg_gpu", "poly_gpu"])
def test_a_step_is_tried_by_secants(backend):
    """Latent heat under a sudden temperature: line search by shorter steps leads nowhere in the first time step."""
    capacity = "(1 + 15*exp(-100*(T - 0.5)*(T - 0.5)))*T_t"
    physics = Physics({"T": 1}, capacity, "T_x[d]", boundary=[Dirichlet("left", 1.0)])
    problem = Problem(Mesh.box((16, 4)), physics, backend=backend, degree=2)
    u = problem.solve_in_time(problem.create_vec(), 0.04, 0.01)
    assert problem.time_steps == 4 and np.isfinite(u.norm())
    with petsc_options(snes_linesearch_type="bt"), pytest.raises(SolveError, match="; shorter steps may help$"):
        problem.solve_in_time(problem.create_vec(), 0.04, 0.01)


@pytest.mark.full
@pytest.mark.parametrize("method", METHODS)
def test_orders_in_time(method, record_property):
    settings, order, most = METHODS[method]
    found, error = orders(problem_in_time(VARYING), settings)
    record_property("order", found)
    assert found > order - 0.3 and 1e-9 < error < most, (found, error)


def test_states_know_their_time():
    """Where t is left out: of a run's end, of its monitor, of `interpolate`; others are of time 0."""
    problem, seen = problem_in_time(VARYING), []
    u = problem.solve_in_time(
        start(problem, 0.2), 0.6, 0.1, 0.2, lambda t, u: seen.append((t, problem.errors(u)["L2"]))
    )
    assert problem.errors(u) == problem.errors(u, problem.time) and problem.errors(u)["L2"] < 1e-3
    assert max(error for _, error in seen) < 1e-3 and len(seen) == 4
    assert problem.flux("left", u)[0] == problem.flux("left", u, 0.6)[0] != problem.flux("left", u, 0.0)[0]
    assert problem.at(u, [[0.0, 0.5]])["u"].item() == pytest.approx(np.sin(0.6), rel=1e-12), "on an essential side"
    assert problem.errors(problem.interpolate("exact", 0.7))["L2"] < 1e-3
    assert problem.errors(u.copy()) == problem.errors(u, 0.0)


DECAYING = Physics(  # u_tt is largest at the start, and nothing smooths the error of the first steps
    {"u": 1},
    "f0[0] = u_t[0] + u[0]*u[0];",
    "for (d = 0; d < dim; ++d) f1[d] = 0.001*u_x[d];",
    boundary=[Dirichlet("left", "exact")],
    exact="u[0] = 1/(1 + t);",
)
HIGH = [
    ("cg_gpu", DECAYING, 3, 2e-5),
    ("hdg_gpu", DECAYING, 4, 5e-7),
    pytest.param("sipg_gpu", HEAT, 5, 1e-10, marks=pytest.mark.full),
]


@pytest.mark.full("hdg_gpu", "sipg_gpu")
@pytest.mark.parametrize("backend, physics, order, most", [*HIGH, ("cg_gpu", DECAYING, 6, 1e-8)])
def test_bdf_begins_with_its_order(backend, physics, order, most):
    """Of solutions with u_tt at the start, and Dirichlet data that move."""
    problem = problem_in_time(physics, backend=backend)
    t0 = 0.0 if physics is DECAYING else 0.2
    with petsc_options(ts_type="bdf", ts_bdf_order=str(order), ksp_rtol="1e-13", snes_rtol="1e-12"):
        coarse, fine = (final_error(problem, n, lambda p, t: p.interpolate("exact", t), t0) for n in (20, 40))
    assert np.log2(coarse / fine) > order - 0.7 and fine < most, (coarse, fine)


@pytest.mark.parametrize("method", ["cn", "rosw", "arkimex", "dirk"])
def test_right_sides_that_are_no_residuals(method):
    """hdg_gpu eliminates the cells of any right-hand side, which these methods have, and scales its matrix."""
    if method == "dirk" and not hasattr(PETSc.TS.Type, "DIRK"):
        pytest.skip("this PETSc has no DIRK")
    found, error = orders(problem_in_time(HEAT, backend="hdg_gpu"), {"ts_type": method}, steps=(4, 8))
    assert found > 1.7 and error < 2e-3, (found, error)


@pytest.mark.parametrize("method", ["bdf2", "arkimex", "dirk"])
def test_no_time_is_special(method):
    """A source of t + since: from 0 on with since = 1 as from 1 on with since = 0, where ARKIMEX finds its slope."""
    settings, found = METHODS.get(method, [{"ts_type": method}])[0], []
    if method == "dirk" and not hasattr(PETSc.TS.Type, "DIRK"):
        pytest.skip("this PETSc has no DIRK")
    problem = problem_in_time(SHIFTED)
    for t0 in (0.0, 1.0):
        problem.set_constants(since=1 - t0)
        with petsc_options(**settings, **TIGHT):
            found.append(problem.solve_in_time(problem.create_vec(), t0 + 0.2, 0.05, t0))
    assert (found[0] - found[1]).norm() < 1e-10 * found[0].norm()
    problem.set_constants(since=0.0)
    with petsc_options(**settings, **TIGHT):
        other = problem.solve_in_time(problem.create_vec(), 0.2, 0.05)
    assert (found[0] - other).norm() > 0.1 * found[0].norm()


@pytest.mark.parametrize("backend", [pytest.param("cg_gpu", marks=pytest.mark.full), "hdg_gpu"])
def test_newton_in_time(backend):
    found, error = orders(problem_in_time(NONLINEAR, backend=backend), {"ts_type": "bdf"})
    assert 1.7 < found < 2.6 and 1e-6 < error < 1e-3, (found, error)


@pytest.mark.full("sipg_gpu")
@pytest.mark.parametrize("backend", ["cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu"])
def test_all_schemes_in_time(backend, record_property):
    """All schemes hold the solution, so that they err alike: wind, diffusion and Dirichlet data depend on t."""
    problem = problem_of(MOVING, blobs if backend == "poly_gpu" else None, 2, faces=3, backend=backend)
    problem.set_constants(cubic=1.0, rich=1.0)
    found, error = orders(problem, {"ts_type": "bdf"}, lambda p, t: p.interpolate(moving_at_start), t0=0.0)
    record_property("order", found)
    assert 1.7 < found < 2.6 and 1e-4 < error < 5e-2, (found, error)


@pytest.mark.full
def test_nonlinear_polytopes_without_a_matrix():
    """Products of the shell alone, shift included, solve what factors of the assembled matrix solve."""
    runs = []
    for pmat, pc in (("none", "jacobi"), ("aij", "lu")):
        problem = problem_of(RATES, blobs, 2, faces=4, pmat=pmat)
        with petsc_options(ts_type="bdf", pc_type=pc, ksp_gmres_restart="200", **TIGHT):
            u = problem.solve_in_time(problem.create_vec(), 0.3, 0.1)
        runs.append(u.getArray())
    assert 0 < np.abs(runs[0] - runs[1]).max() < 1e-7 < np.ptp(runs[1])


@pytest.mark.full
@pytest.mark.parametrize("physics, most", [(HEAT, 4), (VARYING, 100)], ids=["steady", "varying"])
def test_the_matrix_is_kept_while_it_does_not_change(physics, most):
    """Steps of one length have one shift (BDF begins with others); what reads t is found anew in each step."""
    problem, counts = problem_in_time(physics), []
    linearize = problem.operator.linearize
    problem.operator.linearize = lambda *args: counts.append(linearize(*args))
    final_error(problem, 40)
    assert len(counts) <= most and len(counts) >= (2 if physics is HEAT else 40), len(counts)
    before = len(counts)
    problem.set_constants(k=2.0)
    final_error(problem, 4)
    assert len(counts) > before, "other constants, another matrix"


def test_a_steady_solve_between_runs_changes_nothing():
    problem = problem_in_time(HEAT)
    first = problem.solve_in_time(start(problem), 0.5, 0.1)
    problem.solve()
    again = problem.solve_in_time(start(problem), 0.5, 0.1)
    assert np.array_equal(first.getArray(), again.getArray()), "bitwise"


def test_monitors_and_functions_after_each_step():
    problem, said, seen = problem_in_time(HEAT), [], []
    problem.after_step.append(lambda ts: seen.append((ts.getStepNumber(), ts.getTime(), ts.getSolution().norm())))
    u = problem.solve_in_time(start(problem), 0.4, 0.1, monitor=lambda t, v: said.append((t, v.norm())))
    assert [step for step, _, _ in seen] == [1, 2, 3, 4] and np.allclose([t for t, _ in said], [0.1, 0.2, 0.3, 0.4])
    assert said[-1][1] == seen[-1][2] == u.norm() and len(problem.after_step) == 1


def test_the_users_own_ts():
    problem = problem_in_time(HEAT)
    steps = []
    problem.after_step.append(lambda ts: steps.append(ts.getTime()))
    ts = PETSc.TS().create(PETSc.COMM_SELF)
    problem.attach(ts)
    ts.setType("theta")
    ts.setTimeStep(0.125)
    ts.setMaxTime(0.5)
    ts.setExactFinalTime(PETSc.TS.ExactFinalTime.MATCHSTEP)
    u = start(problem)
    ts.solve(u)
    assert len(steps) == 4 and problem.errors(u, 0.5)["L2"] < 2e-2
    ts.destroy()


def test_options_have_the_last_word():
    with petsc_options(ts_type="beuler", ts_dt="0.25", ts_max_time="0.75"):
        problem = problem_in_time(HEAT)
        problem.solve_in_time(start(problem), 2.0, 0.1)
    assert problem.time == 0.75 and problem.time_steps == 3


@pytest.mark.skipif(hasattr(PETSc.TS.Type, "DIRK"), reason="methods of this PETSc lose no matrices")
def test_a_method_that_loses_its_matrices_makes_no_dense_one():
    with petsc_options(ts_type="arkimex"):
        problem = problem_in_time(HEAT, backend="hdg_gpu")
        mat = problem.create_ts().getDM().createMatrix()
    assert mat.getInfo()["nz_allocated"] == 0 and mat.getSize()[0] == problem.create_vec().getSize()


def test_runs_that_cannot_be():
    problem = problem_in_time(HEAT)
    for arguments, words in (((0.5, 0.1, 1.0), "from t = 1 to 0.5"), ((1.0, 0.0), "time step of 0 ")):
        with pytest.raises(OptionError, match=words):
            problem.solve_in_time(start(problem), *arguments)
    with petsc_options(ksp_max_it="1", ksp_rtol="1e-13", pc_type="none"):
        problem = problem_in_time(HEAT)
        with pytest.raises(SolveError, match="the step from t = 0 of length .* failed: the linear solver stopped"):
            problem.solve_in_time(start(problem), 1.0, 0.1)


@pytest.mark.parametrize("backend", ["poly_gpu", "sipg_gpu"])
def test_another_solver_in_a_later_step(backend):
    """u_t = v, v_t = Δu: conjugate gradients, or levels, fail after the first step. The run goes on from there by LU; a
    standing wave turns over, and each step is seen once."""
    terms = {"u": "v_t", "v": "u_t - v"}, {"u": "u_x[d]"}
    physics = Physics({"u": 1, "v": 1}, *terms, boundary=[Dirichlet("boundary", 0.0, field="u")])
    problem, times = Problem(Mesh.box((10, 10), comm=PETSc.COMM_SELF), physics, backend=backend, degree=2), []
    u0 = problem.interpolate({"u": lambda x: np.sin(np.pi * x[..., 0]) * np.sin(np.pi * x[..., 1])})
    with petsc_options(ts_type="cn"):
        u = problem.solve_in_time(u0, 0.5**0.5, 0.5**0.5 / 20, monitor=lambda t, u: times.append(t))
    np.testing.assert_allclose(times, np.linspace(0, 0.5**0.5, 21)[1:])
    assert (problem.direct or problem.indefinite) and problem.time_steps == 20 and 17 < problem.linear_iterations < 400
    assert problem.field("u", u).at([[0.5, 0.5]])[0, 0] == pytest.approx(-1, abs=1e-3)


# Explicit methods -----------------------------------------------------------------------------------------------------

EXPLICIT = {"euler": ({}, 1), "rk": ({"ts_rk_type": "3bs"}, 3), "ssp": ({}, 2)}
EXPLICIT_RUNS = [("cg_gpu", HEATED), ("sipg_gpu", HEATED), ("poly_gpu", VARYING)]


@pytest.mark.full
@pytest.mark.parametrize(("backend", "physics"), EXPLICIT_RUNS, ids=lambda one: getattr(one, "name", one))
def test_orders_of_explicit_methods(backend, physics, record_property):
    degree = 2 if backend == "poly_gpu" else 1  # so that the space holds x y
    problem = problem_in_time(physics, faces=(2, 2), backend=backend, degree=degree)
    for method, (options, order) in EXPLICIT.items():
        with petsc_options(ts_type=method, **options):
            coarse, fine = (final_error(problem, n, t0=0.2, t1=0.25) for n in (50, 100))
        record_property(method, np.log2(coarse / fine))
        assert order - 0.15 < np.log2(coarse / fine) < order + 0.5 and 1e-12 < fine < 1e-4, (method, coarse, fine)


def test_a_mass_matrix_that_stays_is_found_once():
    """The residual is nonlinear, and M is not: one linearization for the run, another one for other data."""
    problem, counts = problem_in_time(NONLINEAR, faces=(2, 2), backend="sipg_gpu", degree=1), []
    linearize = problem.operator.linearize
    problem.operator.linearize = lambda *args: counts.append(linearize(*args))
    with petsc_options(ts_type="rk"):
        final_error(problem, 20, t1=0.21)
    assert len(counts) == 1 and problem.linear_iterations == 20 * 3 + 1


def test_a_preconditioner_of_the_mass_matrix():
    """One that is given belongs to iterations; one application of it would be another mass matrix."""
    errors = []
    for options in ({}, {"mass_pc_type": "jacobi"}):
        problem = problem_of(HEATED, None, 1, faces=2, backend="sipg_gpu")
        with petsc_options(ts_type="euler", **options):
            errors.append(final_error(problem, 20, t0=0.2, t1=0.21))
    assert errors[1] == pytest.approx(errors[0], rel=1e-6)


def test_an_explicit_ts_of_the_users_own():
    problem = problem_in_time(HEAT, faces=(2, 2), degree=1)
    ts = PETSc.TS().create(PETSc.COMM_SELF)
    ts.setType("rk")
    problem.attach(ts)
    ts.setTimeStep(0.005)
    ts.setMaxTime(0.1)
    ts.setExactFinalTime(PETSc.TS.ExactFinalTime.MATCHSTEP)
    u = start(problem)
    ts.solve(u)
    assert problem.errors(u, 0.1)["L2"] < 1e-5  # PETSc chooses the steps
    ts.destroy()


def test_an_explicit_run_without_bound():
    """Steps far above the limit, and a reaction that overflows: a sentence, not nan."""
    boom = Physics({"u": 1}, "f0[0] = u_t[0] - exp(u[0]*u[0]) - 1e3;", "for (d = 0; d < dim; ++d) f1[d] = u_x[d];")
    problem = problem_in_time(boom, faces=(2, 2), degree=1)
    with petsc_options(ts_type="euler"), pytest.raises(SolveError, match="the residual at t = .* take a smaller dt"):
        problem.solve_in_time(problem.create_vec(), 1.0, 0.1)


LAPLACE = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
PAIR = {"u": "f0[0] = u_t[0] + u[1];", "p": "f0[0] = u[0];"}
# words: physics, method, scheme, error
NOT_IN_TIME = {
    "has no u_t, so that nothing changes": (Physics({"u": 1}, "f0[0] = 1;", LAPLACE), "bdf", "cg_gpu", PhysicsError),
    "those of a trace .hdg_gpu. have none: use an implicit": (HEAT, "rk", "hdg_gpu", OptionError),
    "-ts_type mprk takes a system split": (HEAT, "mprk", "cg_gpu", OptionError),
    "not affine in u_t": (Physics({"u": 1}, "f0[0] = u_t[0]*u_t[0];", LAPLACE), "ssp", "cg_gpu", PhysicsError),
    "f1 or a condition of physics 'physics' reads u_t": (
        Physics({"u": 1}, "f0[0] = u_t[0];", "for (d = 0; d < dim; ++d) f1[d] = u_x[d] + u_t[0];"),
        "euler",
        "sipg_gpu",
        PhysicsError,
    ),
    "the u_t of each component": (Physics({"u": 1, "p": 1}, PAIR, {"u": LAPLACE}), "rk", "cg_gpu", PhysicsError),
}


@pytest.mark.full
@pytest.mark.parametrize("words", NOT_IN_TIME)
def test_what_does_not_run_in_time(words):
    physics, method, backend, error = NOT_IN_TIME[words]
    with petsc_options(ts_type=method), pytest.raises(error, match=words):
        problem = problem_in_time(physics, faces=(2, 2), backend=backend)
        problem.solve_in_time(problem.create_vec(), 0.2, 0.1)


def test_ranks_agree(mpirun):
    """All schemes, linear and nonlinear: each rank compares with a run of its own."""
    assert "the same in time on 3 ranks" in mpirun(3, SCRIPT).stdout


# Cells with a state of their own --------------------------------------------------------------------------------------

WAYS = [
    {"hdg_trace_mat": "aij"},
    {"hdg_share": False},
    {"hdg_share": False, "hdg_keep": False},
    {"hdg_share": False, "hdg_tile_cells": 2},
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way))
def test_hybridizable_dg_in_any_way(way):
    """Cells that share their solvers, that keep U, or that are eliminated again: the same states."""
    runs = []
    for settings in ({}, way):
        with petsc_options(**TIGHT):
            problem = problem_in_time(HEAT, backend="hdg_gpu", **settings)
            runs.append(problem.solve_in_time(start(problem, 0.2), 0.6, 0.1, 0.2))
    assert (runs[0] - runs[1]).norm() < 1e-9 * runs[0].norm()
    assert problem.errors(runs[1], 0.6)["L2"] < 2e-3 < problem.errors(runs[1], 0.4)["L2"]


@pytest.mark.full
def test_hybridizable_dg_with_nonlinear_rates():
    """A heat capacity that depends on the solution, in two components: as cg_gpu has it, to the error of space."""
    found = []
    for backend in ("cg_gpu", "hdg_gpu"):
        problem = problem_of(RATES, None, 2, faces=4, backend=backend)
        u = problem.solve_in_time(problem.create_vec(), 0.3, 0.1)
        found.append(problem.cell_values(u, 0.3)["u"])
    assert np.sqrt(np.mean((found[0] - found[1]) ** 2)) < 1e-3 < 1e-2 < np.std(found[0])


def test_hybridizable_dg_with_rates_on_the_boundary():
    """u = (1 + t)(1 + x), with -du/dn = u_t - 3 - t at x = 1: exact by backward Euler."""
    physics = Physics(
        {"u": 1},
        "f0[0] = u_t[0] - 1 - x[0];",
        "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[Dirichlet("left", "exact"), Robin("right", "f0[0] = u_t[0] - 3 - t;")],
        exact="u[0] = (1 + t)*(1 + x[0]);",
    )
    problem = problem_of(physics, None, 1, faces=2, backend="hdg_gpu")
    u = problem.solve_in_time(problem.interpolate("exact", 0.0), 0.4, 0.2)
    assert problem.errors(u, 0.4)["L2"] < 1e-9


def test_hybridizable_dg_at_rest():
    """Without time, rates are zero: the steady solution, by the same elimination."""
    problem = problem_in_time(HEAT, backend="hdg_gpu")
    u, f = problem.solve(), problem.create_vec()
    problem.callbacks.residual(None, u, f)
    assert u.norm() > 1e-2 and f.norm() < 1e-9


DECAY = Physics({"u": 1}, "f0[0] = u_t[0] + 100*(u[0] - 0.1);", "for (d = 0; d < dim; ++d) f1[d] = sqrt(u[0])*u_x[d];")


@pytest.mark.parametrize("backend", ["cg_gpu", "hdg_gpu"])
def test_a_guess_outside_the_domain_of_the_physics(backend):
    """BDF extrapolates a fast decay to values without a root; the step is solved from the last state."""
    problem = problem_in_time(DECAY, faces=(2, 2), backend=backend)
    u = problem.interpolate(1.0)
    found = problem.solve_in_time(u, 0.4, 0.1)
    assert problem.integral("u[0]", found) == pytest.approx(0.1, abs=0.02)
    with petsc_options(ts_max_snes_failures="1"), pytest.raises(SolveError, match="from t = 0 .* DIVERGED_F.*NAN"):
        problem.solve_in_time(u, 0.4, 0.1)


REFUSED = {
    "the solver of the trace stopped after 1 iteration ": ({"ksp_max_it": "1", "pc_type": "none"}, {}, SolveError),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_hybridizable_dg_does_not_take_in_time(words):
    options, settings, error = REFUSED[words]
    with petsc_options(**options), pytest.raises(error, match=words):
        problem = problem_in_time(HEAT, backend="hdg_gpu", **settings)
        problem.solve_in_time(start(problem), 0.2, 0.1)
