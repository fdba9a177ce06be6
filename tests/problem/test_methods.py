"""Krylov methods that nobody names run on GPUs: they take as many iterations as PETSc's, and options win."""

from __future__ import annotations

import numpy as np
import pytest
from mixed_meshes import plane
from petsc4py import PETSc
from petsc_options import petsc_options
from test_indefinite import WAVE, helmholtz

import petsc_hdg as fe
from petsc_hdg.problem.linear import direct_solvers, methods
from petsc_hdg.problem.newton import first_guess

SCHEMES = {"cg_gpu": 3, "hdg_gpu": 2, "sipg_gpu": 2, "poly_gpu": 1}
POISSON = {"f0": "f0[0] = -1;", "f1": "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"}
NONLINEAR = "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];"
WALL = [fe.Dirichlet("boundary", 0.0)]
WIND = {"f0": "f0[0] = -1 + c*u_x[0];", "f1": "for (d = 0; d < dim; ++d) f1[d] = u_x[d];", "constants": {"c": 0.0}}


def made(monkeypatch, backend: str, physics=None, on_gpu: bool = True, **options) -> fe.Problem:
    """A problem on a device that is taken for a GPU in the choice of solvers."""
    physics = physics or fe.Physics({"u": 1}, **POISSON, boundary=[fe.Dirichlet("boundary", 0.0)])
    mesh = fe.Mesh.box((6, 5), comm=PETSc.COMM_SELF)
    mesh = fe.agglomerate(mesh, 12) if backend == "poly_gpu" else mesh
    problem = fe.Problem(mesh, physics, backend=backend, degree=SCHEMES[backend], check_kernels=False, **options)
    monkeypatch.setattr(problem.device, "has_solvers", on_gpu)
    return problem


def method(problem) -> str:
    ksp = problem.snes.getKSP()
    return ksp.getPythonType() if ksp.getType() == "python" else ksp.getType()


@pytest.mark.full
@pytest.mark.parametrize("backend", SCHEMES)
def test_they_are_ours_and_take_as_many_iterations(monkeypatch, backend):
    found = []
    for on_gpu, expected in ((True, "petsc_hdg.CG"), (False, "cg")):
        problem = made(monkeypatch, backend, on_gpu=on_gpu)
        u = problem.solve()
        assert method(problem) == expected
        found.append((problem.linear_iterations, u.getArray()))
    (ours, one), (theirs, other) = found
    assert abs(ours - theirs) <= 1 and np.abs(one - other).max() < 1e-8 * np.abs(other).max()


@pytest.mark.parametrize("backend", [*SCHEMES, "condensed", "cells of two shapes"])
def test_kernels_of_a_first_solve_are_made_with_the_operator(backend):
    """As on a GPU, for any scheme; a solve then takes the same."""
    mesh, given = fe.Mesh.box((6, 5), comm=PETSc.COMM_SELF), {}
    if backend == "condensed":
        backend, given = "cg_gpu", {"cg_condense": True}
    elif backend not in SCHEMES:
        backend, mesh = "sipg_gpu", fe.Mesh.from_cells(**plane(3), comm=PETSc.COMM_SELF)
    mesh = fe.agglomerate(mesh, 12) if backend == "poly_gpu" else mesh
    physics = fe.Physics({"u": 1}, **POISSON | {"f1": NONLINEAR}, boundary=WALL)
    problem = fe.Problem(mesh, physics, backend=backend, degree=SCHEMES[backend], check_kernels=False, **given)
    problem.operator.make_ready()
    assert problem.solve().norm() > 0 and problem.snes.getConvergedReason() > 0


@pytest.mark.parametrize("given", [{"ksp_type": "gmres"}, {"ksp_type": "preonly", "pc_type": "lu"}])
def test_options_win(monkeypatch, given):
    with petsc_options(**given):
        problem = made(monkeypatch, "hdg_gpu")
        problem.solve()
    assert method(problem) == given["ksp_type"]


@pytest.mark.parametrize("backend", [pytest.param(b, marks=pytest.mark.full) if b == "hdg_gpu" else b for b in SCHEMES])
def test_multigrid_of_convection_is_on_the_device(monkeypatch, backend):
    """Smoothers by GMRES are fixed polynomials of twice as many steps there."""
    physics = fe.Physics({"u": 1}, "f0[0] = 40*(x[1]*u_x[0] - x[0]*u_x[1]) - 1;", POISSON["f1"], boundary=WALL)
    found = []
    for on_gpu in (True, False):
        problem = made(monkeypatch, backend, physics, on_gpu=on_gpu)
        u = problem.solve()
        found.append((problem.linear_iterations, u.getArray()))
        if on_gpu:
            context = problem.snes.getKSP().getPythonContext()
            assert method(problem) == "petsc_hdg.FGMRES" and context.preconditioner.on_device, (
                context.preconditioner.note
            )
    (ours, one), (theirs, other) = found
    assert ours <= theirs + 3 and np.abs(one - other).max() < 1e-6 * np.abs(other).max()


def test_smoothers_that_the_user_chose_are_petscs(monkeypatch):
    physics = fe.Physics({"u": 1}, "f0[0] = 40*u_x[0] - 1;", POISSON["f1"], boundary=WALL)
    with petsc_options(mg_levels_ksp_type="gmres"):
        problem = made(monkeypatch, "cg_gpu", physics)
        problem.solve()
    assert (
        "staged: multigrid smoothed by a KSP of type gmres"
        in problem.snes.getKSP().getPythonContext().preconditioner.note
    )


def test_trust_regions_have_petscs_methods(monkeypatch):
    """They look at each iterate; as the user's choice, and where Newton's method has failed."""
    physics = fe.Physics({"u": 1}, POISSON["f0"], NONLINEAR, boundary=WALL)
    with petsc_options(snes_type="newtontr"):
        problem = made(monkeypatch, "cg_gpu", physics)
        wanted = problem.solve()
    assert method(problem) in ("gmres", "fgmres") and problem.snes.getType() == "newtontr"
    problem = made(monkeypatch, "cg_gpu", physics)
    problem.solve()
    line_search, u = problem.snes, problem.create_vec()
    assert first_guess._by_another(problem, u, "a trust region", {"snes_type": "newtontr"}, 1.0) is None
    assert problem.snes is line_search and method(problem) == "petsc_hdg.FGMRES"
    assert (u - wanted).norm() < 1e-6 * wanted.norm()


def test_preconditioners_of_the_host_have_petscs(monkeypatch):
    with petsc_options(pc_type="hypre" if PETSc.Sys.hasExternalPackage("hypre") else "ilu"):
        assert not method(made(monkeypatch, "cg_gpu")).startswith("petsc_hdg")


def test_continuous_elements_with_convection_take_multigrid_of_the_device():
    """GAMG's smoothers stall there, and LU took over after 50 iterations; an option of GAMG keeps it."""
    boundary, found = [fe.Dirichlet("boundary", 0.0)], []
    physics = fe.Physics({"u": 1}, "f0[0] = 60*(x[1]*u_x[0] - x[0]*u_x[1]) - 1;", POISSON["f1"], boundary=boundary)
    for given in ({}, {"pc_gamg_threshold": 0.02}):
        with petsc_options(**given):
            problem = fe.Problem(fe.Mesh.box((24, 24), comm=PETSc.COMM_SELF), physics, degree=1, check_kernels=False)
            problem.solve()
        found.append((problem.linear_iterations, problem.direct, problem.snes.getKSP().getPC().getType()))
    assert found[0][0] <= 12 and found[0][1:] == ("", "python"), found
    assert found[1][2] in ("gamg", "lu"), found


def test_vectors_that_do_not_fit_are_the_hosts(monkeypatch):
    monkeypatch.setattr(methods, "MEMORY", 0.0)
    problem = made(monkeypatch, "sipg_gpu")
    problem.solve()
    assert method(problem) == "cg"


@pytest.mark.full
@pytest.mark.parametrize("backend", ("cg_gpu", "sipg_gpu", "hdg_gpu"))
def test_an_indefinite_matrix_gets_the_next_one(monkeypatch, backend):
    """Where the problem is too large for LU."""
    monkeypatch.setattr(direct_solvers, "most_of_failures", lambda problem: 100)
    problem = made(monkeypatch, backend, helmholtz(WAVE))
    assert problem.errors(problem.solve())["L2"] < 2e-2
    assert method(problem) == ("fgmres" if backend == "hdg_gpu" else "petsc_hdg.FGMRES")


@pytest.mark.full
@pytest.mark.parametrize("backend", ("cg_gpu", "sipg_gpu", "poly_gpu"))
def test_they_follow_a_wind_and_come_back(monkeypatch, backend):
    physics = fe.Physics({"u": 1}, **WIND, boundary=[fe.Dirichlet("boundary", 0.0)])
    problem, seen = made(monkeypatch, backend, physics), []
    for wind in (0.0, 5.0, 0.0):
        problem.set_constants(c=wind)
        problem.solve()
        seen.append(method(problem))
    assert seen == ["petsc_hdg.CG", "petsc_hdg.FGMRES", "petsc_hdg.CG"]


def test_linear_solves_follow_the_residuals_of_newtons_method():
    """As many steps to the same solution with fewer iterations, unless options say how far linear solves go."""
    law = "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];"
    physics = fe.Physics({"u": 1}, "f0[0] = -10;", law, boundary=[fe.Dirichlet("boundary", 0.0)])
    mesh, found = fe.Mesh.box((14, 14), comm=PETSc.COMM_SELF), []
    for options in ({}, {"snes_ksp_ew": "0"}, {"ksp_rtol": "1e-6"}):
        with petsc_options(**options):
            problem = fe.Problem(mesh, physics, degree=2, pmat="conforming", check_kernels=False)
            found.append((problem.solve(), problem.newton_iterations, problem.linear_iterations))
    (ours, steps, few), *others = found
    for u, same, many in others:
        assert same == steps and few <= 0.8 * many and (u - ours).norm() < 1e-7 * u.norm()
