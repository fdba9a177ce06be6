"""Linear solves that end with a small preconditioned residual and a wrong solution are told of; others are not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.options import BACKENDS, Options
from petsc_hdg.problem import solution_checks
from petsc_hdg.problem.linear import kept_levels

FLUX = "for (d = 0; d < dim; ++d) f1[d] = a[0]*u_x[d];"
JUMPS = fe.Physics(
    {"u": 1}, "f0[0] = -1;", FLUX, auxiliary={"kappa": 1},
    boundary=[fe.Dirichlet("left", 0.0), fe.Dirichlet("right", 1.0)], name="jumps",
)  # fmt: skip
WINDY = fe.Physics(
    {"u": 1}, "f0[0] = 3 + c*u_x[0];", FLUX, auxiliary={"kappa": 1}, constants={"c": 0.0},
    boundary=[fe.Dirichlet("left", 2.0)], name="windy",
)  # fmt: skip


class Half:
    """A preconditioner that sees every other row."""

    def apply(self, pc, x, y) -> None:
        values = x.getArray(readonly=True).copy()
        values[::2] = 0
        y.setArray(values)


def least_error(problem, u) -> float:
    f = u.duplicate()
    problem.callbacks.residual(problem.snes, u, f)
    return solution_checks.least_error(problem, f)


def made(physics=JUMPS, kappa=1.0, **options) -> fe.Problem:
    mesh = fe.Mesh.box((5, 4), comm=PETSc.COMM_SELF, simplex=False)
    problem = fe.Problem(mesh, physics, Options(**{"degree": 1, "check_kernels": False, **options}))
    if physics.auxiliary:
        problem.set_auxiliary("kappa", kappa)
    return problem


@pytest.mark.full
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_preconditioner_that_hides_a_part_is_told(backend):
    with petsc_options(ksp_type="gmres", pc_type="python"):
        problem = made(backend=backend)
        problem.snes.getKSP().getPC().setPythonContext(Half())
        with pytest.warns(UserWarning, match=r"met -ksp_rtol 1e-10 in its own norm, .* is off by \S+ of its size"):
            u = problem.solve()
    exact = made(backend=backend)
    error = (exact.solve() - u).norm() / u.norm()
    size = problem.snes.getKSP().getSolution().norm()
    assert 1e-6 < least_error(problem, u) / size < 10 * error


@pytest.mark.full
@pytest.mark.parametrize("backend, degree, faces, rtol", [("hdg_gpu", 7, 8, 1e-12), ("cg_gpu", 2, 8, 1e-10)])
def test_the_default_tolerance_is_below_the_error_of_discretization(backend, degree, faces, rtol):
    """And the user's wins."""
    source = "f0[0] = -2*PETSC_PI*PETSC_PI*sin(PETSC_PI*x[0])*sin(PETSC_PI*x[1]);"
    exact = {"u": "u[0] = sin(PETSC_PI*x[0])*sin(PETSC_PI*x[1]);"}
    flux, boundary = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];", [fe.Dirichlet("boundary", 0.0)]
    physics = fe.Physics({"u": 1}, source, flux, boundary=boundary, exact=exact)
    mesh = fe.Mesh.box((faces, faces), comm=PETSc.COMM_SELF)
    problem = fe.Problem(mesh, physics, Options(backend=backend, degree=degree, check_kernels=False))
    found = problem.errors(problem.solve())["L2"]
    ksp = problem.snes.getKSP()
    assert ksp.getTolerances()[0] == pytest.approx(rtol)
    ksp.setTolerances(rtol=1e-14)
    assert found < 1.01 * problem.errors(problem.solve())["L2"]
    with petsc_options(ksp_rtol="1e-5"):
        assert problem.create_snes().getKSP().getTolerances()[0] == 1e-5


def test_coarse_spaces_of_other_data_are_told(monkeypatch):
    """What happened while GAMG kept those of diffusion for a strong wind: a residual of 5e-4."""
    with petsc_options(pc_type="gamg"):
        problem = made(WINDY)
        problem.solve()
        monkeypatch.setattr(kept_levels, "reset_preconditioner", lambda ksp, all_of_it: None)
        problem.set_auxiliary("kappa", 0.002)
        problem.set_constants(c=3.0)
        with pytest.warns(UserWarning, match="hides a part of the residual; "):
            problem.solve()


def test_a_jacobian_that_is_not_the_residuals_is_told():
    g3 = "for (d = 0; d < dim; ++d) g3[d*dim + d] = 1.5;"
    flux = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    boundary = [fe.Dirichlet("boundary", 0.0)]
    problem = made(fe.Physics({"u": 1}, "f0[0] = -1;", flux, boundary=boundary, jacobian={"g3": g3}))
    with pytest.warns(UserWarning, match="or the Jacobian that was given is not that of f0 and f1; "):
        problem.solve()


def test_a_preconditioner_that_hides_all_is_told(monkeypatch):
    """PETSc stops at once, by its absolute tolerance."""
    monkeypatch.setattr(Half, "apply", lambda self, pc, x, y: y.set(0.0))
    with petsc_options(ksp_type="gmres", pc_type="python"):
        problem = made()
        problem.snes.getKSP().getPC().setPythonContext(Half())
        with pytest.warns(UserWarning, match="is off by inf of its size"):
            assert problem.solve().norm() == 0


@pytest.mark.full
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("pmat", ["auto", "none"])
@pytest.mark.parametrize("pattern", ["island", "checks"])
def test_large_jumps_are_no_matter(backend, pmat, pattern):
    """The residual is 1e-8 to 1e-7 of the right-hand side, as a direct solver's is, and the error is small."""
    inside = {"island": lambda x: (np.abs(x - 0.5) < 0.25).all(-1), "checks": lambda x: np.floor(4 * x).sum(-1) % 2}
    with warnings.catch_warnings(), petsc_options(ksp_max_it="20000"):
        warnings.simplefilter("error")
        problem = made(kappa=lambda x: 1e8 ** inside[pattern](x), backend=backend, pmat=pmat, degree=2)
        u = problem.solve()
    assert least_error(problem, u) < 3e-10 * u.norm()


@pytest.mark.parametrize("pc, many", [("jacobi", 1), ("lu", 0)])
def test_one_application_of_a_preconditioner_is_told(pc, many):
    with warnings.catch_warnings(record=True) as found, petsc_options(ksp_type="preonly", pc_type=pc):
        warnings.simplefilter("always")
        made(kappa=lambda x: 1 + 5 * x[..., 1]).solve()
    said = [str(one.message) for one in found]
    assert len(said) == many and all("-ksp_type preonly applies the preconditioner (jacobi) once" in s for s in said)


def test_a_solve_that_asks_for_no_relative_tolerance_is_left_alone():
    with warnings.catch_warnings(), petsc_options(pc_type="jacobi", ksp_type="gmres", ksp_atol="1e-2"):
        warnings.simplefilter("error")
        problem = made(kappa=lambda x: 1 + 5 * x[..., 1])
        u = problem.solve()
    assert least_error(problem, u) > 1e-6 * u.norm()


@pytest.mark.parametrize("height, many", [(1.0, 0), (0.01, 1)])
def test_rounding_in_single_precision_is_told(height, many):
    """On a long strip held at one narrow end the answer has nothing of the solution."""
    mesh = fe.Mesh.box((40, 40), upper=(1.0, height), comm=PETSc.COMM_SELF)
    flux = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    physics = fe.Physics({"u": 1}, "f0[0] = -1;", flux, boundary=[fe.Dirichlet("left", 0.0)])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        u, v = (
            fe.Problem(mesh, physics, backend="hdg_gpu", degree=2, precision=precision).solve()
            for precision in ("single", "double")
        )
    said = [str(one.message) for one in found]
    assert len(said) == many and all("rounding in single precision changes the solution" in s for s in said)
    assert ((u - v).norm() < 1e-2 * v.norm()) == (not many)


@pytest.mark.parametrize("backend", ["cg_gpu", "hdg_gpu", "sipg_gpu"])
def test_newton_ends_in_single_precision(backend):
    """Rounding keeps its residual above the relative tolerance."""
    mesh = fe.Mesh.box((8, 8), comm=PETSc.COMM_SELF)
    flux = "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];"
    physics = fe.Physics({"u": 1}, "f0[0] = -1;", flux, boundary=[fe.Dirichlet("left", 0.0)])
    u, v = (fe.Problem(mesh, physics, backend=backend, degree=2, precision=one).solve() for one in ("single", "double"))
    assert 0 < (u - v).norm() < 2e-5 * v.norm()


@pytest.mark.parametrize("snes", ["newtonls", "newtontr"])
def test_a_first_guess_that_is_the_solution_is_left_alone(snes):
    """Newton's method ends before any linear solve, whose solution there is not."""
    flux = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    still = fe.Physics({"u": 1}, "f0[0] = 0.0;", flux, boundary=[fe.Dirichlet("boundary", 0.0)])
    with petsc_options(snes_type=snes):
        assert made(still).solve().norm() == 0


def test_the_right_side_of_a_singular_matrix_may_be_out_of_balance():
    """By what quadrature leaves: that part of the residual stays."""
    flux = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem = made(fe.Physics({"u": 1}, "f0[0] = x[0] - 0.501;", flux))
        u = problem.solve()
    residual = problem.create_vec()
    problem.callbacks.residual(None, u, residual)
    assert residual.norm() > 1e-5 * u.norm() and least_error(problem, u) < 1e-9 * u.norm()


def test_the_diagonal_is_kept_with_the_matrix(monkeypatch):
    problem, asked = made(pmat="none"), []
    problem.solve()
    diagonal = problem.operator.diagonal
    monkeypatch.setattr(problem.operator, "diagonal", lambda out: asked.append(diagonal(out)))
    problem.set_auxiliary("kappa", 1.0)
    problem.solve()
    assert not asked
    problem.set_auxiliary("kappa", 2.0)
    problem.solve()
    assert asked
