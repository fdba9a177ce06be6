"""Constants and auxiliary fields that change between solves: the answers are those of a problem made with them."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.options import BACKENDS, Options
from petsc_hdg.problem.linear import direct_solvers


def solved_or_fixed() -> fe.Physics:
    """-Δu + r (u - 1) = 0 with ∇u·n = -h (u - 1) on the left: u is 1, or, with r = h = 0, any constant."""
    return fe.Physics(
        {"u": 1},
        "f0[0] = r*(u[0] - 1);",
        "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        constants={"r": 0.0, "h": 0.0},
        boundary=[fe.Robin("left", "f0[0] = h*(u[0] - 1);")],
    )


@pytest.mark.full
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_null_space_goes_with_the_data_that_gave_it(backend):
    mesh = fe.Mesh.box((3, 3), comm=PETSc.COMM_SELF)
    problem = fe.Problem(mesh, solved_or_fixed(), Options(backend=backend, degree=1, check_kernels=False))
    found = []
    for constants in ({}, {"r": 1.0}, {"r": 0.0}, {"h": 1.0}):
        problem.set_constants(**constants)
        found.append(problem.integral("u[0]", problem.solve()))
    assert np.abs(np.array(found) - [0, 1, 0, 1]).max() < 1e-8


def test_a_null_space_of_the_users_own_stays(monkeypatch):
    """Also where it is none of the matrix, which spoils the solution of iterations."""
    monkeypatch.setattr(direct_solvers, "most_of_failures", lambda problem: 100)
    mesh = fe.Mesh.box((20, 20), comm=PETSc.COMM_SELF)
    problem = fe.Problem(mesh, solved_or_fixed(), Options(degree=1, check_kernels=False))
    problem.solve()
    given = PETSc.NullSpace().create(constant=True, comm=PETSc.COMM_SELF)
    problem.callbacks.jacobian.setNullSpace(given)
    problem.set_constants(r=1.0)
    with pytest.warns(UserWarning, match="the solution is off"):
        problem.solve()
    assert problem.callbacks.jacobian.getNullSpace().handle == given.handle


def windy() -> fe.Physics:
    return fe.Physics(
        {"u": 1},
        "f0[0] = 3 + c*u_x[0];",
        "for (d = 0; d < dim; ++d) f1[d] = a[0]*u_x[d];",
        auxiliary={"kappa": 1},
        constants={"c": 0.0},
        boundary=[fe.Dirichlet("left", 2.0)],
    )


def test_preconditioners_forget_the_data_before():
    """GAMG keeps coarse spaces: those of diffusion let a solve with a strong wind end with a residual of 5e-4."""
    values = []
    for changed in (True, False):
        mesh = fe.Mesh.box((5, 4), comm=PETSc.COMM_SELF, simplex=False)
        problem = fe.Problem(mesh, windy(), Options(degree=1, check_kernels=False))
        problem.set_auxiliary("kappa", 1.0)
        if changed:
            problem.solve()
        problem.set_auxiliary("kappa", 0.002)
        problem.set_constants(c=3.0)
        u = problem.solve()
        residual, first = problem.create_vec(), problem.create_vec()
        problem.callbacks.residual(problem.snes, u, residual)
        problem.callbacks.residual(problem.snes, problem.create_vec(), first)
        assert residual.norm() < 1e-6 * first.norm()
        values.append(u.getArray())
    assert np.array_equal(*values)
