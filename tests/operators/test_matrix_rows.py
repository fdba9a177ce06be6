"""Rows of matrices summed on the device against PETSc's sums of the same element matrices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.operators import block_rows

CASES = [((5, 4), False, 1), ((4, 3), True, 2), ((3, 2, 2), False, 3), ((2, 2, 2), True, 1)]


@pytest.mark.parametrize("faces, simplex, components", CASES)
def test_rows_are_petscs(faces, simplex, components):
    agree(faces, simplex, components, PETSc.COMM_SELF)


def test_parts_of_ranks_are_petscs(mpirun):
    mpirun(3, Path(__file__))


def agree(faces, simplex, components, comm) -> None:
    """With convection, which is upwinded, and a natural boundary whose terms depend on u; twice."""
    flux = f"for (d = 0; d < dim*{components}; ++d) f1[d] = (1 + x[0] + u[0]*u[0])*u_x[d] + u[{components - 1}]*x[1];"
    wall = "; ".join(f"g[{c}] = x[1]" for c in range(components)) + ";"
    boundary = [fe.Dirichlet("left", wall), fe.Robin("right", "f0[0] = u[0]*u[0];")]
    physics = fe.Physics({"u": components}, "f0[0] = u[0]*u_x[0] - 1;", flux, boundary=boundary)
    mesh, found = fe.Mesh.box(faces, simplex=simplex, comm=comm), []
    for by_rows in (True, False):
        block_rows.FEW = 0 if by_rows else 1e9
        problem = fe.Problem(mesh, physics, backend="cg_gpu", degree=2, pmat="conforming")
        conforming, state = problem.callbacks.conforming, problem.create_vec()
        assert (conforming.matrix._row_sums is not None) == by_rows
        assert problem.comm.allreduce(problem.discretization.num_facets)
        for is_symmetric in (False, True):
            state.setArray(np.sin(np.arange(*state.getOwnershipRange()) + is_symmetric))
            conforming.is_symmetric = is_symmetric
            conforming.update(state)
            found.append(conforming.mat.getValuesCSR())
        found += [assembled(mesh, physics, backend) for backend in ("cg_gpu", "hdg_gpu", "sipg_gpu")]
    for ours, theirs in zip(found[:5], found[5:], strict=True):
        for pattern, expected in zip(ours[:2], theirs[:2], strict=True):
            np.testing.assert_array_equal(pattern, expected)
        np.testing.assert_allclose(ours[2], theirs[2], rtol=0, atol=1e-13 * np.abs(theirs[2]).max())
        assert np.abs(ours[2]).max() > 0.1


def assembled(mesh, physics, backend: str) -> tuple:
    """Starts, columns and values of this rank's rows of a Jacobian."""
    problem = fe.Problem(mesh, physics, backend=backend, degree=2 if backend == "cg_gpu" else 1, pmat="aij")
    state, calls = problem.create_vec(), problem.callbacks
    assert (calls.assembled._row_sums is not None) == (block_rows.FEW == 0)
    state.setArray(np.sin(np.arange(*state.getOwnershipRange())))
    calls.linearize(None, state, calls.jacobian, calls.preconditioning)
    return calls.assembled.mat.getValuesCSR()


@pytest.fixture(autouse=True)
def few():
    """The number as it is, again."""
    before = block_rows.FEW
    yield
    block_rows.FEW = before


if __name__ == "__main__":
    for case in CASES:
        agree(*case, MPI.COMM_WORLD)
