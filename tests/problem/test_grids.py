"""Solutions as arrays: coordinates, values and cells that fit each other, on 1 and 3 ranks; meshio's and PyVista's."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import meshio
import numpy as np
import pytest
from petsc4py import PETSc
from run_grids import BACKENDS
from sample_meshes import SHAPES, box_mesh
from sample_quadratic import exact, quadratic

from petsc_hdg.errors import OptionError
from petsc_hdg.options import Options
from petsc_hdg.output import grid
from petsc_hdg.output.lagrange import vtk_nodes
from petsc_hdg.problem import Problem
from petsc_hdg.reference import ReferenceElement

SCRIPT = Path(__file__).with_name("run_grids.py")
CELLS = 24


def problem_of(cell: str = "triangle", degree: int = 2, **options) -> Problem:
    mesh = box_mesh(cell, comm=PETSc.COMM_SELF)
    return Problem(mesh, quadratic(), Options(degree=degree, check_kernels=False, **options))


def test_arrays_on_one_and_three_ranks(mpirun):
    for ranks in (1, 3):
        found = json.loads(mpirun(ranks, SCRIPT).stdout)
        assert found.keys() == set(BACKENDS)
        for backend, of in found.items():
            cells, points, last = np.array(of["own"]).T
            assert cells.sum() == CELLS and cells.min() > 0 and (last == points - 1).all()
            assert of["error"] < 1e-4 and of["whole_error"] < 1e-5 and of["area"] == pytest.approx(1.0)
            degree = 3 if backend == "hdg_gpu" else 2  # of u*
            nodes = (degree + 1) * (degree + 2) // 2
            places = (4 * degree + 1) * (3 * degree + 1)
            shared = places if backend == "cg_gpu" else CELLS * nodes
            assert of["whole"] == [shared, places, CELLS, nodes]
            assert of["ranks"] == list(range(ranks)) and of["there"] == [True] + [False] * (ranks - 1)
            assert of["middles"] < 1e-12 or degree == 3
            assert all("gather) is given as 3; give True or False" in said for said in of["refused"])


@pytest.mark.parametrize("cell", SHAPES)
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_nodes_of_meshio_are_those_of_vtk(tmp_path, cell, degree):
    """Each node is where VTK has it between the corners, cells are positive, and files of it are read back."""
    problem = problem_of(cell, degree, cg_condense=cell == "tetrahedron" and degree > 1)
    u = problem.interpolate(exact)
    mesh, element = problem.to_meshio(u), ReferenceElement(cell, 1)
    (block,) = mesh.cells
    assert block.type == grid.MESHIO[min(degree, 2)][cell]
    assert len(mesh.points) == {3: block.data.size}.get(degree, len(np.unique(mesh.points.round(9), axis=0)))
    places, corners = mesh.points[block.data], vtk_nodes(cell, 1)
    order = [int(np.abs(corners - node).sum(axis=1).argmin()) for node in element.nodes]
    expected = element.tabulate(vtk_nodes(cell, min(degree, 2)), 0)[0] @ places[:, order]
    assert places == pytest.approx(expected, abs=1e-13)
    slopes = element.tabulate(element.nodes.mean(axis=0, keepdims=True), 1)[1:, 0]
    assert (np.linalg.det(slopes @ places[:, order]) > 0).all()
    if degree > 1:
        assert mesh.point_data["u"] == pytest.approx(exact(mesh.points), abs=1e-12)
    for suffix in ("vtu", "xdmf"):
        mesh.write(tmp_path / f"u.{suffix}")
        again = meshio.read(tmp_path / f"u.{suffix}")
        assert again.point_data["u"] == pytest.approx(mesh.point_data["u"])
        assert np.array_equal(again.cells[0].data, block.data)


def test_derived_fields_may_jump_and_so_do_the_nodes():
    problem = problem_of()
    u = problem.interpolate(exact)
    problem.outputs = {"flux": "f1"}
    found = problem.to_numpy(u)
    x = found.points
    assert (
        len(x) == CELLS * 6
        and repr(found) == f"<Grid: {CELLS * 6} points, 24 triangle cells of degree 2; u, flux, rank>"
    )
    assert found.point_data["flux"] == pytest.approx(np.stack([2 * x[:, 0] + x[:, 1], x[:, 0] - 1], axis=1), abs=1e-12)
    assert len(problem.to_numpy(u, fields=()).points) == 9 * 7
    assert problem.to_meshio(u).point_data["flux"].shape == (CELLS * 6, 3)


def test_pyvista_gets_cells_types_and_data(monkeypatch):
    made = SimpleNamespace(point_data={}, cell_data={})

    def take(cells, kinds, points):
        made.cells, made.kinds, made.points = cells, kinds, points
        return made

    monkeypatch.setitem(sys.modules, "pyvista", SimpleNamespace(UnstructuredGrid=take))
    problem = problem_of("quadrilateral")
    u = problem.interpolate(exact)
    assert problem.to_pyvista(u) is made
    rows = made.cells.reshape(-1, 10)
    assert (rows[:, 0] == 9).all() and (made.kinds == 70).all() and len(made.kinds) == len(rows)
    assert made.points.shape[1] == 3 and made.point_data["u"] == pytest.approx(exact(made.points[:, :2]), abs=1e-12)
    assert made.cell_data["rank"].shape == made.kinds.shape
    monkeypatch.setitem(sys.modules, "pyvista", None)
    with pytest.raises(OptionError, match="pyvista was asked for and cannot be imported .*; pip install pyvista"):
        problem.to_pyvista(u)
