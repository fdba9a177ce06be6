"""A cell condensed by a group of threads, as on GPUs, gives what one thread gives."""

from __future__ import annotations

import numpy as np
import pytest
from condensed_runs import residual_and_product

import petsc_hdg as fe

LINEAR = {
    "f0": "f0[0] = -x[0];",
    "f1": "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    "boundary": [fe.Dirichlet("left", "g[0] = x[1];"), fe.Robin("right", "f0[0] = u[0] - 1;")],
}
NONLINEAR = LINEAR | {"f1": "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];"}
SYSTEM = {
    "f0": "f0[0] = -1; f0[1] = u[0]; f0[2] = x[0];",
    "f1": "PetscInt c; for (c = 0; c < 3; ++c) for (d = 0; d < dim; ++d)"
    " f1[c*dim + d] = (1 + c + x[0])*u_x[c*dim + d] + u[(c + 1)%3];",
    "boundary": [fe.Dirichlet("left", "g[0] = x[1]; g[1] = 0; g[2] = 0;")],
}
# cell, degree, physics, components, threads along rows and columns, cells of a group, tiles in global memory
CASES = [
    ("triangle", 1, LINEAR, 1, (4, 4, 4, False)),
    ("triangle", 8, LINEAR, 1, (8, 16, 1, False)),
    ("quadrilateral", 2, NONLINEAR, 1, (8, 8, 1, False)),
    ("tetrahedron", 1, SYSTEM, 3, (6, 6, 1, False)),
]


@pytest.mark.parametrize(("cell", "degree", "functions", "components", "expected"), CASES)
def test_groups_agree_with_single_threads(cell, degree, functions, components, expected):
    physics = fe.Physics({"u": components}, **functions)
    faces = (3, 3) if cell in ("triangle", "quadrilateral") else (2, 1, 1)
    mesh = fe.Mesh.box(faces, simplex=cell in ("triangle", "tetrahedron"))
    single, _ = residual_and_product(mesh, physics, degree, is_gpu=False)
    group, shape = residual_and_product(mesh, physics, degree, is_gpu=True)
    assert (shape.row_threads, shape.column_threads, shape.cells, shape.scratch) == expected
    for one, other in zip(single, group, strict=True):
        assert np.abs(one - other).max() <= 1e-12 * np.abs(one).max()
