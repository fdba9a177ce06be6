"""Products by stored entries: they are those of the kernels, at the state of the last linearization or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.operators import AssembledMatrix
from petsc_hdg.problem import matrices

LAW = "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*(1 + x[0])*u_x[d] + u[0];"
PHYSICS = fe.Physics({"u": 1}, "f0[0] = u[0]*u[0]*u[0] - 1;", LAW, boundary=[fe.Dirichlet("left", "x[1]")])
SCHEMES = [("cg_gpu", 2, "conforming"), ("cg_gpu", 1, "aij"), ("sipg_gpu", 1, "conforming"), ("sipg_gpu", 2, "aij")]


def made(backend: str, degree: int, pmat: str, comm=PETSc.COMM_SELF, **settings) -> fe.Problem:
    mesh = fe.Mesh.box((5, 4), simplex=True, comm=comm)
    return fe.Problem(mesh, PHYSICS, backend=backend, degree=degree, pmat=pmat, **settings)


def agree(backend: str, degree: int, pmat: str, comm=PETSc.COMM_SELF) -> None:
    """Products, transposed ones and diagonals at a state, and solutions."""
    found = []
    for products in ("auto", "kernels"):
        problem = made(backend, degree, pmat, comm, products=products)
        assert problem.stores == (products == "auto") == ("stored entries" in problem.view())
        calls, state, y = problem.callbacks, problem.create_vec(), problem.create_vec()
        first, last = state.getOwnershipRange()
        state.setArray(np.sin(np.arange(first, last)))
        calls.linearize(None, state, calls.jacobian, calls.preconditioning)
        found.append([calls.jacobian.getDiagonal()])
        for work in (calls.jacobian.mult, calls.jacobian.multTranspose):
            work(state, y)
            found[-1].append(y.copy())
        found[-1].append(problem.solve())
        found[-1][-1].scale(1e-6)  # the solver's tolerance
    for ours, theirs in zip(*found, strict=True):
        assert (ours - theirs).norm() < 1e-12 * max(1.0, theirs.norm())


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch):
    monkeypatch.setattr(matrices, "FEW", 0)
    monkeypatch.setattr(matrices, "LEAST", 0.0)


@pytest.mark.parametrize("backend, degree, pmat", SCHEMES)
def test_products_are_those_of_kernels(backend, degree, pmat):
    agree(backend, degree, pmat)


def test_ranks_agree(mpirun):
    mpirun(2, Path(__file__))


def test_a_new_linearization_is_never_missed():
    """Of others than the callbacks, which fill no matrix: kernels do the products then."""
    problem = made("cg_gpu", 2, "conforming")
    calls, state, y = problem.callbacks, problem.create_vec(), problem.create_vec()
    calls.linearize(None, state, calls.jacobian, calls.preconditioning)
    x = problem.interpolate(lambda x: x[..., 0])
    calls.jacobian.mult(x, y)
    with problem.access.read(x) as u:
        problem.operator.linearize(u)
    other = y.duplicate()
    calls.jacobian.mult(x, other)
    assert (other - y).norm() > 0.1 * y.norm()
    calls.linearize(None, x, calls.jacobian, calls.preconditioning)
    calls.jacobian.mult(x, y)
    assert (other - y).norm() < 1e-13 * y.norm()


@pytest.mark.parametrize("pmat", ["aij", "conforming"])
def test_a_linearization_fills_a_matrix_once(pmat, monkeypatch):
    """That of preconditioners and that of products may be one."""
    problem, filled, fill = made("cg_gpu", 2, pmat), [], AssembledMatrix._set_values
    calls, state = problem.callbacks, problem.create_vec()
    monkeypatch.setattr(AssembledMatrix, "_set_values", lambda matrix: filled.append(matrix) or fill(matrix))
    calls.linearize(None, state, calls.jacobian, calls.preconditioning)
    assert filled.count(calls.stored) == 1 and len(filled) == len(set(filled))


def test_kernels_for_constant_coefficients_stay():
    poisson = fe.Physics({"u": 1}, "-1", "u_x[d]", boundary=[fe.Dirichlet("boundary", 0.0)])
    assert not fe.Problem(fe.Mesh.box((4, 4)), poisson, backend="sipg_gpu", degree=2).stores


def test_many_cores_take_kernels(monkeypatch):
    monkeypatch.setattr(matrices, "LEAST", 1e9)
    assert not made("cg_gpu", 2, "conforming").stores


if __name__ == "__main__":
    matrices.FEW, matrices.LEAST = 0, 0.0
    for case in SCHEMES:
        agree(*case, comm=MPI.COMM_WORLD)
