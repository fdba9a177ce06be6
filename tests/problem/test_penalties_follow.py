"""A diffusivity that nearly vanishes where Newton's method begins: penalties follow the states until it converges."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from sample_meshes import box_mesh

import petsc_hdg as fe
from petsc_hdg.problem import solvers

EPS = 0.01
TORSION = 0.0736713532  # largest value of w on the unit square, -∇·∇w = 1 inside, w = 0 on its boundary


@pytest.fixture(scope="module")
def problem() -> fe.Problem:
    """-∇·((EPS + u²)∇u) = 1, so that w = EPS u + u³/3."""
    physics = fe.Physics(
        {"u": 1}, "f0[0] = -1;", f"for (d = 0; d < dim; ++d) f1[d] = ({EPS} + u[0]*u[0])*u_x[d];",
        boundary=[fe.Dirichlet("boundary", 0.0)], name="nearly degenerate",
    )  # fmt: skip
    mesh = box_mesh("triangle", (6, 6), comm=PETSc.COMM_SELF)
    return fe.Problem(mesh, physics, backend="poly_gpu", degree=2, check_kernels=False)


def test_one_run_with_penalties_of_states_before_stands_still(problem):
    problem.newton_iterations = problem.linear_iterations = 0
    problem.operator.restart()
    u = problem.create_vec()
    solvers.approach(problem, u)
    problem.solve_from(u)
    assert problem.snes.getConvergedReason() < 0


def test_converges_from_zero(problem):
    u = np.abs(problem.cell_values(problem.solve())["u"]).max()
    assert EPS * u + u**3 / 3 == pytest.approx(TORSION, rel=0.01)
