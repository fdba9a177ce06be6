"""Polytopic DG over fewer triangles: where quadrature is exact, the same solution to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe

pytestmark = pytest.mark.full

EXACT_BY_QUADRATURE = fe.Physics(
    {"u": 1},
    f0="f0[0] = u[0] + u_x[0] - x[0] * x[1];",
    f1="for (d = 0; d < dim; ++d) f1[d] = 2 * u_x[d];",
    boundary=[
        fe.Dirichlet("left", "g[0] = x[1];"),
        fe.Dirichlet("bottom", "g[0] = 0;"),
        fe.Neumann("top", "g[0] = 1 - x[0];"),
    ],
)


def solution(mesh: fe.Mesh) -> np.ndarray:
    """Unknowns [unknown] of the solution, by a direct solve."""
    with petsc_options(ksp_type="preonly", pc_type="lu"):
        return np.array(fe.Problem(mesh, EXACT_BY_QUADRATURE, backend="poly_gpu", degree=3).solve().getArray())


def test_same_solution_over_fewer_triangles():
    mesh = fe.agglomerate(fe.Mesh.box((12, 12), comm=PETSc.COMM_SELF), 14, degrees=lambda x: 1 + 2 * (x[:, 0] > 0.5))
    fewer = fe.fewer_cells(mesh)
    assert mesh.num_cells == 288 and fewer.num_cells < 110 and len(set(mesh.polytopes.degrees)) == 2
    both = [solution(m) for m in (mesh, fewer)]
    assert np.abs(both[0] - both[1]).max() < 1e-11 * np.abs(both[0]).max()
