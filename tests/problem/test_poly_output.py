"""What poly_gpu writes and draws: polytopes and degrees of the base cells, outlines of polytopes."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.image import imread
from petsc4py import PETSc
from vtu_reader import read_vtu

import petsc_hdg as fe
from petsc_hdg.mesh.polytopes import Polytopes

PHYSICS = fe.Physics(
    {"u": 1},
    f0="f0[0] = u[0] - 1;",
    f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    boundary=[fe.Dirichlet("boundary", "g[0] = 1;")],
    name="one",
)


@pytest.fixture(scope="module")
def solved():
    """A problem with four polytopes of eight triangles, the state u = 1, polytope of each cell."""
    mesh = fe.Mesh.box((4, 4), comm=PETSc.COMM_SELF)
    middle = mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells]].mean(axis=1)
    of_cell = (2 * (middle[:, 0] > 0.5) + (middle[:, 1] > 0.5)).astype(np.int32)
    mesh.polytopes = Polytopes(of_cell, 4, np.array([0, 1, 1, 0]))
    problem = fe.Problem(mesh, PHYSICS, backend="poly_gpu", degree=1, pmat="none", check_kernels=False)
    return problem, problem.interpolate(1.0), of_cell


def test_files_tell_polytopes_and_degrees(solved, tmp_path):
    problem, u, of_cell = solved
    problem.write(tmp_path / "a.vtu", u)
    found = read_vtu(tmp_path / "a.vtu")
    np.testing.assert_array_equal(found["cell_data"]["polytope"].ravel(), of_cell)
    np.testing.assert_array_equal(found["cell_data"]["degree"].ravel(), np.array([0, 1, 1, 0])[of_cell])
    assert np.abs(found["point_data"]["u"] - 1).max() < 1e-12


def test_pictures_outline_polytopes(solved, tmp_path):
    """Lines along x = 1/2 and y = 1/2, and no others: those of the base cells come with mesh_lines."""
    problem, u, _ = solved
    drawn = {}
    for name, more in {
        "none": {"cell_regions": np.zeros(32, int)},
        "outlines": {},
        "all": {"mesh_lines": True},
    }.items():
        problem.plot(tmp_path / f"{name}.png", u, contours=0, dpi=60, **more)
        drawn[name] = imread(tmp_path / f"{name}.png")[..., :3]
    changed = (drawn["outlines"] != drawn["none"]).any(axis=2)
    rows, columns = np.flatnonzero(changed.sum(axis=1) > 50), np.flatnonzero(changed.sum(axis=0) > 50)
    assert 1 <= len(rows) <= 3 and 1 <= len(columns) <= 3
    assert changed.sum() <= len(rows) * changed.shape[1] + len(columns) * changed.shape[0]
    assert (drawn["all"] != drawn["none"]).any(axis=2).sum() > 2 * changed.sum()
