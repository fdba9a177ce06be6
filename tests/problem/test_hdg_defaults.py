"""hdg_gpu without options: winds and states in its stabilization, cells that begin at the guess, a warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.problem import solution_checks


def problem(physics, faces: int, simplex: bool = False, degree: int = 2, **options) -> fe.Problem:
    mesh = fe.Mesh.box((faces, faces), simplex=simplex, comm=PETSc.COMM_SELF)
    return fe.Problem(mesh, physics, backend="hdg_gpu", degree=degree, check_kernels=False, **options)


@pytest.fixture
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


WAVE = "sin(PETSC_PI*x[0])*sin(PETSC_PI*x[1])"
WIND = fe.Physics(
    {"u": 1},
    f0=f"""f0[0] = u_x[0] + 0.5*u_x[1] - 0.002*PETSC_PI*PETSC_PI*{WAVE}
              - PETSC_PI*cos(PETSC_PI*x[0])*sin(PETSC_PI*x[1]) - 0.5*PETSC_PI*sin(PETSC_PI*x[0])*cos(PETSC_PI*x[1]);""",
    f1="for (d = 0; d < dim; ++d) f1[d] = 0.001*u_x[d];",
    boundary=[fe.Dirichlet("boundary", "exact")],
    exact=f"u[0] = {WAVE};",
    name="wind in f0",
)


def test_wind_in_f0(no_warning):
    """L2 5.8e-1 with the diffusivity alone."""
    one = problem(WIND, 12)
    assert one.errors(one.solve())["L2"] < 1e-4


def test_a_thin_layer(no_warning):
    """1 × 0.01, u turning by 3 across: the diffusivity is over the extent of each direction. L2 7.9e-2 with the largest
    alone."""
    exact = "sin(2*x[0] + 1)*cos(300*x[1])"
    thin = fe.Physics(
        {"u": 1},
        f0=f"f0[0] = -(4 + 300*300)*{exact};",
        f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[fe.Dirichlet("boundary", "exact")],
        exact=f"u[0] = {exact};",
    )
    mesh = fe.Mesh.box((8, 8), upper=(1.0, 0.01), comm=PETSc.COMM_SELF)
    one = fe.Problem(mesh, thin, backend="hdg_gpu", degree=1)
    assert one.errors(one.solve())["L2"] < 1e-3


def test_an_answer_without_meaning_is_told():
    """GMRES from the left finds one, by a preconditioner that hides most of the residual; the default does not."""
    one = problem(WIND, 12, hdg_tau="0.001")
    assert one.errors(one.solve())["L2"] < 1e-4
    told = pytest.warns(UserWarning, match="the jumps u - û of the field 'u' are .* as large as the solution")
    with petsc_options(ksp_type="gmres"), told:
        problem(WIND, 12, hdg_tau="0.001").solve()


STEEP = "exp(x[0] + x[1])"
GROWING = fe.Physics(
    {"u": 1},
    f0=f"f0[0] = 2*{STEEP}*(1e-6 + 6*{STEEP}*{STEEP});",
    f1="const PetscReal k = 1e-6 + u_x[0]*u_x[0] + u_x[1]*u_x[1]; for (d = 0; d < dim; ++d) f1[d] = k*u_x[d];",
    boundary=[fe.Dirichlet("boundary", "exact")],
    exact=f"u[0] = {STEEP};",
    name="diffusivity from nothing",
)


def test_diffusivity_that_vanishes_at_zero(no_warning):
    """L2 4.5e5 with the diffusivity at zero."""
    one = problem(GROWING, 4, simplex=True)
    u = one.solve()
    assert one.errors(u)["L2"] < 2e-2 and one.errors(u)["star"] < 1e-3
    tau = one.operator.stabilization.values()[:, : one.mesh.num_cells]
    assert 0 < tau.min() < tau.max() / 3
    again = one.solve(u)
    assert one.newton_iterations <= 4
    np.testing.assert_allclose(again.array, u.array, rtol=1e-3)


def test_cells_begin_at_the_guess(no_warning):
    """Flux ∇u/u: no cell may be looked at with u = 0."""
    one = problem(logarithm(STEEP), 4)
    assert one.errors(one.solve(one.interpolate(1.0)))["L2"] < 3e-3


def logarithm(exact: str) -> fe.Physics:
    """Flux ∇u/u: logarithms of solutions are harmonic."""
    return fe.Physics(
        {"u": 1},
        "f0[0] = 0;",
        "for (d = 0; d < dim; ++d) f1[d] = u_x[d]/u[0];",
        boundary=[fe.Dirichlet("boundary", "exact")],
        exact=f"u[0] = {exact};",
        name="logarithm",
    )


def test_goes_on_from_continuous_elements(no_warning, monkeypatch):
    """The flux ∇u/u, whose local problems are singular on the way from u = 1 to values of 1 to 55."""
    one = problem(logarithm("exp(2*(x[0]*x[0] - x[1]*x[1] + x[0]))"), 4)
    u = one.solve(one.interpolate(1.0))
    assert one.errors(u)["L2"] < 1.2 * one.errors(one.interpolate("exact"))["L2"]
    assert one.tried[-1] == "the solution by continuous elements of first degree"
    monkeypatch.setattr(solution_checks, "TORN", 1e-6)  # no start leads to a solution that is trusted
    with pytest.warns(UserWarning, match="jumps u - û .* may be one of the discrete equations alone"):
        again = one.solve(u)
    assert len(one.tried) == 2 and (again - u).norm() < 1e-6 * u.norm()
    with petsc_options(ksp_type="gmres"), pytest.raises(fe.SolveError, match="solver stopped without a solution"):
        other = problem(one.physics, 4)  # solvers of the user's own are no other scheme's
        other.solve(other.interpolate(1.0))


EULER = """
    const PetscReal vx = u[1]/u[0], vy = u[2]/u[0], p = 0.4*(u[3] - 0.5*(u[1]*vx + u[2]*vy));
    f1[0] = -u[1];          f1[1] = -u[2];
    f1[2] = -u[1]*vx - p;   f1[3] = -u[2]*vx;
    f1[4] = -u[1]*vy;       f1[5] = -u[2]*vy - p;
    f1[6] = -(u[3] + p)*vx; f1[7] = -(u[3] + p)*vy;"""


def test_steady_euler_from_its_trace(no_warning):
    """Entropy waves along a uniform wind, from the exact trace with 5 % of noise."""
    density = "const PetscReal r = 1 + 0.2*sin(3*(0.5*x[0] - x[1]));"
    exact = f"{density} u[0] = r; u[1] = r; u[2] = 0.5*r; u[3] = 2.5 + 0.625*r;"
    physics = fe.Physics(
        {"u": 4}, None, EULER, boundary=[fe.Dirichlet("boundary", "exact")], exact=exact, name="steady Euler"
    )
    one = problem(physics, 4)

    def at(x):
        r = 1 + 0.2 * np.sin(3 * (0.5 * x[..., 0] - x[..., 1]))
        return np.stack([r, r, 0.5 * r, 2.5 + 0.625 * r], axis=-1)

    guess = one.interpolate(at)
    guess.array *= 1 + 0.05 * np.random.default_rng(3).uniform(-1, 1, guess.local_size)
    u = one.solve(guess)
    assert one.errors(u)["L2"] < 2e-3 and one.newton_iterations <= 10
