"""Problems of few unknowns, and coarse levels of few nodes: default solvers leave out levels that make no sense."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.problem.linear import coarse_solvers, direct_solvers, preconditioners

SCRIPT = Path(__file__).with_name("run_small_problems.py")
ELASTICITY = """
    PetscInt i, j; PetscReal mu = 1/2.8, lambda = 0.4/(1.4*0.2), trace = u_x[0] + u_x[dim + 1] + u_x[2*dim + 2];
    for (i = 0; i < dim; ++i) {
      for (j = 0; j < dim; ++j) f1[i*dim + j] = mu*(u_x[i*dim + j] + u_x[j*dim + i]);
      f1[i*dim + i] += lambda*trace;
    }
"""


def test_few_unknowns_are_solved_directly_on_any_ranks(mpirun):
    one, three = (json.loads(mpirun(ranks, SCRIPT).stdout) for ranks in (1, 3))
    for (unknowns, iterations, residual, mean), (*_, wrong, same) in zip(one, three, strict=True):
        assert unknowns < direct_solvers.FEW and iterations <= 1 and max(residual, wrong) < 1e-13
        assert same == pytest.approx(mean, rel=1e-9)


def block(**options) -> fe.Problem:
    """A clamped elastic cube of 27 hexahedra of degree 2: 24 unknowns on the vertices, in 4 aggregates of 6 modes."""
    body = fe.Physics(
        {"u": 3}, "f0[0] = 0.0; f0[1] = 0.0; f0[2] = 1.0;", ELASTICITY, boundary=[fe.Dirichlet("boundary", [0.0] * 3)]
    )
    mesh = fe.Mesh.box((3, 3, 3), simplex=False, comm=PETSc.COMM_SELF)
    return fe.Problem(mesh, body, degree=2, check_kernels=False, **options)


def test_levels_with_as_many_unknowns_as_the_next_finer_one(monkeypatch):
    """The cycle of GAMG is symmetric and definite although its interpolation is square."""
    monkeypatch.setattr(direct_solvers, "FEW", 0)
    with petsc_options(mg_coarse_pc_gamg_coarse_eq_limit="1"):
        problem = block()
        problem.solve()
    coarse = problem.snes.getKSP().getPC().getMGCoarseSolve()
    sizes = coarse.getPC().getMGInterpolation(coarse.getPC().getMGLevels() - 1).getSize()
    assert sizes[0] == sizes[1] == 24, "the premise"
    assert problem.snes.getKSP().getType() == "cg" and problem.linear_iterations <= 10
    inverse, (x, y) = np.empty(sizes), coarse.getOperators()[0].createVecs()
    for column, unit in enumerate(np.eye(24)):
        x.setArray(unit)
        coarse.getPC().apply(x, y)
        inverse[:, column] = y.getArray()
    assert np.abs(inverse - inverse.T).max() < 1e-12 * np.abs(inverse).max()
    assert np.linalg.eigvalsh(inverse)[0] > 0


def test_small_coarse_levels_are_solved_directly():
    problem = block()
    problem.solve()
    assert problem.snes.getKSP().getPC().getMGCoarseSolve().getPC().getType() == "lu"
    assert problem.linear_iterations <= 8


def test_conjugate_gradients_that_stall_go_on_by_another_method(monkeypatch):
    """As with a cycle that is not symmetric: its restrictions are a hundred times the transposed interpolations."""

    def spoil(pc: PETSc.PC) -> None:
        for level in range(1, pc.getMGLevels()):
            restriction = pc.getMGInterpolation(level).transpose(PETSc.Mat())
            restriction.scale(100.0)
            pc.setMGRestriction(level, restriction)

    monkeypatch.setattr(direct_solvers, "FEW", 0)
    monkeypatch.setattr(coarse_solvers, "_transpose_square", spoil)
    monkeypatch.setattr(preconditioners, "MOST_ITERATIONS", 20)
    with petsc_options(mg_coarse_pc_gamg_coarse_eq_limit="1", ksp_max_it="20"):
        problem = block()
        u, f = problem.solve(), problem.create_vec()
    problem.callbacks.residual(None, u, f)
    assert problem.snes.getKSP().getType() == "fgmres" and f.norm() < 1e-8
