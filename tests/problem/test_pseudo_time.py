"""Steady conservation laws that Newton's method does not solve: the package goes on in pseudo time."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.errors import SolveError
from petsc_hdg.physics import library
from petsc_hdg.physics.library import gas
from petsc_hdg.problem.newton import first_guess, monitors

MACH, PRESSURE = 0.3, 1 / 1.4


def nozzle(f0=None, degree: int = 2) -> tuple[fe.Problem, PETSc.Vec]:
    """A curved channel with a throat, subsonic, and a uniform flow in it."""
    box = fe.Mesh.box((12, 4), simplex=False, lower=(-1.5, 0.0), upper=(1.5, 1.0), comm=PETSc.COMM_SELF)
    mesh = box.curved(lambda x: np.stack([x[:, 0], x[:, 1] * (1 - 0.2 * np.exp(-4 * x[:, 0] ** 2))], 1))
    boundary = [
        gas.inflow("left", 1.0, [MACH, 0.0]),
        gas.pressure_outflow("right", PRESSURE),
        gas.slip_wall("boundary"),
    ]
    problem = fe.Problem(mesh, library.euler(2, f0, boundary=boundary), backend="hdg_gpu", degree=degree)
    return problem, problem.interpolate([1.0, MACH, 0.0, PRESSURE / 0.4 + MACH**2 / 2])


@pytest.mark.parametrize("f0", [None, pytest.param(gas.RATE, marks=pytest.mark.full)], ids=["steady", "with u_t"])
def test_newton_that_stands_still_is_followed_by_pseudo_time(f0, capfd):
    """From uniform flow steps gain nothing; the steady state has the mass flow of the inflow at both ends."""
    with petsc_options(fe_view=""):
        problem, guess = nozzle(f0)
        u = problem.solve(guess)
    assert first_guess.PSEUDO_TIME in problem.tried
    assert problem.newton_iterations < 40
    assert "  nonlinear solver: tries steps of pseudo time\n" in capfd.readouterr().out
    assert [problem.flux(name, u)[0] for name in ("left", "right")] == pytest.approx([MACH, -MACH], rel=1e-4)


@pytest.mark.parametrize("given", [{}, {"ts_max_steps": "9"}, {"snes_type": "newtonls"}, {"snes_max_it": "60"}])
def test_solvers_of_the_user_are_the_only_ones(given):
    with petsc_options(**given):
        assert first_guess.may_take_pseudo_time(nozzle(degree=1)[0]) is not bool(given)


def test_other_physics_have_no_pseudo_time():
    mesh = fe.Mesh.box((2, 2), comm=PETSc.COMM_SELF)
    physics = fe.Physics({"u": 1}, "f0[0] = u[0]*u[0]*u[0] - 1;", "for (d = 0; d < dim; ++d) f1[d] = u_x[d];")
    assert not first_guess.may_take_pseudo_time(fe.Problem(mesh, physics, backend="hdg_gpu", degree=1))


def test_steps_that_gain_nothing():
    """Ten steps by less than a fifth, the last by less than a twentieth, if something else is there to be tried."""
    watch = monitors.Watch(nozzle(degree=1)[0])
    norms = [1 - 0.01 * step for step in range(11)]
    assert not watch.is_fruitless(norms)
    watch.has_another = True
    assert watch.is_fruitless(norms)
    assert not watch.is_fruitless(norms[:-1])
    assert not watch.is_fruitless([*norms[:-1], 0.8])


def test_rates_are_added_to_a_source():
    """Of several fields, of which one has no f0."""
    physics = fe.Physics({"p": 1, "q": 2}, {"q": "f0[0] = 3; f0[1] = p;"}, {"p": "f1[0] = p; f1[1] = 0;"}).with_rates()
    assert physics.uses_time_derivative
    state, rate, flat = np.array([5.0, 0, 0]), np.array([7.0, 8, 9]), np.zeros((3, 2))
    f0, f1 = physics.interpreter(2).pw_residual(state, rate, flat, None, None, 0.0, np.zeros(2))
    assert f0.tolist() == [7, 11, 14] and f1[0].tolist() == [5, 0]
    blocks = physics.interpreter(2).g_blocks(state, rate, flat, None, None, 0.0, 10.0, np.zeros(2))
    assert blocks[0].tolist() == [[10, 0, 0], [0, 10, 0], [1, 0, 10]]


@pytest.mark.parametrize("kind", ["pseudo", "bdf"])
def test_a_start_without_residual_has_one_sentence(kind):
    """No length of a step is told, which TSPSEUDO finds from the residual, nor that shorter ones help."""
    with petsc_options(ts_type=kind):
        problem = nozzle(gas.RATE, degree=1)[0]
        told = r"^the step from t = 0 failed: the pressure is -0.\d+ .*(FNORM_NAN|NANORINF) after 0 steps$"
        with pytest.raises(SolveError, match=told):
            problem.solve_in_time(problem.interpolate([1.0, 0.5, 0.0, 0.1]), 0.1, dt=0.05)
