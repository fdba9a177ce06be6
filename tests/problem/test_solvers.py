"""PETSc's solvers on our problems: several fields, Newton's order, time stepping, the user's own SNES and KSP."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import direct_solver, petsc_options
from sample_meshes import box_mesh
from sample_physics import smooth_poisson

from petsc_hdg.errors import SolveError
from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Physics, library
from petsc_hdg.problem import Problem


def test_stokes_reproduces_a_polynomial_flow():
    """Velocity (y², x²) and pressure x - 1/2 lie in the Taylor-Hood space: b = -2 + ∇p is a constant."""
    mesh = box_mesh("triangle", (4, 4), comm=PETSc.COMM_SELF)
    physics = library.stokes(
        2,
        "f0[0] = 2.0 - 1.0; f0[1] = 2.0;",
        boundary=[Dirichlet("boundary", "exact", field="velocity"), Dirichlet("left", "exact", field="pressure")],
        exact={"velocity": "u[0] = x[1]*x[1]; u[1] = x[0]*x[0];", "pressure": "u[0] = x[0] - 0.5;"},
    )
    with petsc_options(ksp_type="preonly", pc_type="svd"):
        problem = Problem(mesh, physics, Options(degree=2))
        errors = problem.errors(problem.solve())
    assert errors["L2"] < 1e-9 and errors["H1"] < 1e-8, errors


def test_stokes_of_one_degree_converges_by_hdg():
    """Velocity (sin πy, sin πx) and pressure cos πx: second order in all, though both fields are linear in cells."""
    source = "f0[{0}] = -PETSC_PI*PETSC_PI*sin(PETSC_PI*x[{1}])"
    physics = Physics(
        {"velocity": 2, "pressure": 1},
        {
            "velocity": f"{source.format(0, 1)} + PETSC_PI*sin(PETSC_PI*x[0]); {source.format(1, 0)};",
            "pressure": "f0[0] = u_x[0] + u_x[3];",
        },
        {"velocity": "for (d = 0; d < 4; ++d) f1[d] = u_x[d] - (d % 3 == 0 ? u[2] : 0.0);"},
        boundary=[Dirichlet("boundary", "exact", field="velocity")],
        exact={
            "velocity": "u[0] = sin(PETSC_PI*x[1]); u[1] = sin(PETSC_PI*x[0]);",
            "pressure": "u[0] = cos(PETSC_PI*x[0]);",
        },
    )
    errors = []
    with petsc_options(ksp_type="preonly", pc_type="svd"):
        for faces in (3, 6):
            mesh = box_mesh("triangle", (faces, faces), comm=PETSc.COMM_SELF)
            problem = Problem(mesh, physics, Options(degree=1, backend="hdg_gpu"))
            errors.append(problem.errors(problem.solve())["L2"])
    assert errors[1] < 0.3 * errors[0] < 0.05, errors


def test_driven_stokes_has_both_fields():
    """The pressure is free up to a constant: the singular value decomposition takes the smallest one."""
    mesh = box_mesh("quadrilateral", (3, 3), comm=PETSc.COMM_SELF)
    physics = library.stokes(
        2,
        boundary=[
            Dirichlet("top", "g[0] = x[0]*(1 - x[0]); g[1] = 0.0;", field="velocity"),
            Dirichlet("boundary", 0.0, field="velocity"),
        ],
    )
    with petsc_options(ksp_type="preonly", pc_type="svd"):
        problem = Problem(mesh, physics, Options(degree=2))
        values = problem.cell_values(problem.solve())
    assert values["velocity"].shape[1:] == (9, 2) and values["pressure"].shape[1:] == (4, 1)
    assert 0.1 < np.abs(values["velocity"]).max() <= 0.26 and np.ptp(values["pressure"]) > 0.1


def test_newton_converges_quadratically_on_the_minimal_surface():
    mesh = box_mesh("triangle", (6, 6), comm=PETSc.COMM_SELF)
    physics = library.minimal_surface(boundary=[Dirichlet("boundary", "g[0] = 0.3*sin(PETSC_PI*x[0])*(1 + x[1]);")])
    with petsc_options(**direct_solver(), snes_rtol="1e-14", snes_atol="1e-14", snes_stol="0"):
        problem = Problem(mesh, physics, Options(degree=2))
        snes = problem.create_snes()
        snes.setConvergenceHistory()
        snes.solve(None, problem.create_vec())
    history = snes.getConvergenceHistory()[0]
    assert snes.getConvergedReason() > 0 and len(history) >= 4
    steps = [(a, b) for a, b in zip(history[:-1], history[1:], strict=True) if a < 0.1 and b > 1e-13]
    assert len(steps) >= 2
    for before, after in steps:
        assert after < 10 * before**2, history


HEAT = Physics(
    {"u": 1},
    "f0[0] = u_t[0] - (cos(t)*(1 + x[0]*x[1]));",
    "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    boundary=[Dirichlet("boundary", "exact")],
    exact={"u": "u[0] = sin(t)*(1 + x[0]*x[1]);"},
    name="heat",
)


@pytest.mark.parametrize("settings, order", [({"ts_type": "beuler"}, 1), ({"ts_type": "bdf", "ts_bdf_order": "2"}, 2)])
def test_heat_equation_in_time(settings, order):
    """sin(t) (1 + xy) lies in Q1, so that all of the error is the time scheme's; the boundary moves with time."""
    assert HEAT.uses_time_derivative
    mesh = box_mesh("quadrilateral", (3, 3), amplitude=0.0, comm=PETSc.COMM_SELF)
    errors = []
    for steps in (8, 16):
        with petsc_options(**settings, **direct_solver(), snes_type="ksponly", ts_adapt_type="none"):
            problem = Problem(mesh, HEAT, Options(degree=1))
            ts = PETSc.TS().create(PETSc.COMM_SELF)
            ts.setDM(problem.dm)
            problem.attach(ts)
            ts.setTime(0.0)
            ts.setTimeStep(1.0 / steps)
            ts.setMaxTime(1.0)
            ts.setExactFinalTime(PETSc.TS.ExactFinalTime.MATCHSTEP)
            ts.setFromOptions()
            u = problem.create_vec()
            ts.solve(u)
            assert ts.getTime() == pytest.approx(1.0)
            errors.append(problem.errors(u, t=1.0)["L2"])
            ts.destroy()
    found = np.log2(errors[0] / errors[1])
    assert order - 0.25 < found < order + 0.5, (found, errors)
    assert errors[1] < {1: 2e-2, 2: 1e-3}[order], errors


def test_a_steady_solve_of_a_physics_with_rates_takes_them_as_zero():
    problem = Problem(box_mesh("quadrilateral", (3, 3), comm=PETSc.COMM_SELF), HEAT, Options(degree=1))
    u, f = problem.solve(), problem.create_vec()
    assert u.norm() > 1e-2
    problem.callbacks.residual(None, u, f)
    assert f.norm() < 1e-9


def test_the_users_own_snes():
    mesh = box_mesh("triangle", comm=PETSc.COMM_SELF)
    problem = Problem(mesh, smooth_poisson(), Options(degree=2))
    snes = PETSc.SNES().create(PETSc.COMM_SELF)
    problem.attach(snes)
    snes.getKSP().setType("cg")
    snes.getKSP().getPC().setType("jacobi")
    snes.getKSP().setTolerances(rtol=1e-12)
    u = problem.create_vec()
    snes.solve(None, u)
    assert snes.getConvergedReason() > 0
    assert problem.errors(u)["L2"] < 1e-3


def test_the_users_own_ksp():
    """Matrices and right-hand side of a linear problem, by the callbacks, in a plain KSP."""
    mesh = box_mesh("tetrahedron", comm=PETSc.COMM_SELF)
    problem = Problem(mesh, smooth_poisson(), Options(degree=2, pmat="aij"))
    calls, u, b = problem.callbacks, problem.create_vec(), problem.create_vec()
    calls.residual(None, u, b)
    calls.linearize(None, u, calls.jacobian, calls.assembled.mat)
    b.scale(-1)
    solutions = []
    for amat in (calls.jacobian, calls.assembled.mat):
        ksp = PETSc.KSP().create(PETSc.COMM_SELF)
        ksp.setOperators(amat, calls.assembled.mat)
        ksp.setType("cg")
        ksp.getPC().setType("jacobi")
        ksp.setTolerances(rtol=1e-13)
        x = problem.create_vec()
        ksp.solve(b, x)
        solutions.append(x.getArray().copy())
    np.testing.assert_allclose(solutions[0], solutions[1], atol=1e-10)
    np.testing.assert_allclose(problem.solve().getArray(), solutions[0], atol=1e-8)


def test_a_solver_that_fails_is_an_error():
    problem = Problem(box_mesh("triangle", comm=PETSc.COMM_SELF), smooth_poisson(), Options(degree=2))
    with petsc_options(ksp_type="cg", ksp_max_it="1", pc_type="none"):
        with pytest.raises(SolveError, match="stopped without a solution: DIVERGED_.* after 1 iteration;"):
            problem.solve()


def test_matrix_free_only():
    with petsc_options(ksp_type="cg", ksp_rtol="1e-12"):
        problem = Problem(box_mesh("triangle", comm=PETSc.COMM_SELF), smooth_poisson(), Options(degree=2, pmat="none"))
        assert problem.callbacks.assembled is None
        plain = problem.errors(problem.solve())["L2"]
        other = Problem(problem.mesh, smooth_poisson(), Options(degree=2))
        assert other.errors(other.solve())["L2"] == pytest.approx(plain, rel=1e-6)
        mat = problem.callbacks.jacobian
        x, y = mat.createVecs()
        x.setArray(np.cos(np.arange(x.getLocalSize())))
        mat.multTranspose(x, y)
        assert (y - mat * x).norm() < 1e-12 * y.norm()


def test_changed_constants_and_auxiliary_fields_take_effect():
    physics = library.poisson(boundary=[Dirichlet("boundary", 0.0)])
    problem = Problem(box_mesh("triangle", comm=PETSc.COMM_SELF), physics, Options(degree=2))
    with petsc_options(ksp_rtol="1e-12"):
        once = problem.solve().norm()
        problem.set_constants(kappa=4.0)
        assert problem.solve().norm() == pytest.approx(once / 4, rel=1e-9)
        problem.set_constants({"kappa": 2.0})
        assert problem.solve().norm() == pytest.approx(once / 2, rel=1e-9)
