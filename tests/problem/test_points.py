"""Values at places: exact ones of what the spaces hold, by every scheme, in straight and in curved cells."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from petsc4py import PETSc
from sample_meshes import bent, box_mesh

import petsc_hdg as fe
from petsc_hdg.errors import OptionError
from petsc_hdg.mesh import geometry as locate
from petsc_hdg.mesh.geometry import Locator
from petsc_hdg.options import BACKENDS, Options
from petsc_hdg.problem import Problem

RUN = Path(__file__).with_name("run_points.py")
CELLS = ("triangle", "quadrilateral", "tetrahedron", "hexahedron")
SLOPE = np.array([2.0, -3.0, 0.5])


def linear(dim: int) -> fe.Physics:
    """-Δu = 0 with u = 1 + SLOPE·x on the boundary."""
    given = " + ".join(["1", *(f"{SLOPE[d]}*x[{d}]" for d in range(dim))])
    flux = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    return fe.Physics({"u": 1}, None, flux, boundary=[fe.Dirichlet("boundary", f"g[0] = {given};")], name="linear")


def places(mesh: fe.Mesh, count: int = 200) -> np.ndarray:
    """Points inside of the cells, and all vertices."""
    rng, corners = np.random.default_rng(3), mesh.geometry.nodes[mesh.geometry.cell_nodes]
    weights = rng.dirichlet(np.full(corners.shape[1], 2.0), count)
    inside = np.einsum("pn,pnd->pd", weights, corners[rng.integers(len(corners), size=count)])
    return np.concatenate([inside, mesh.geometry.nodes])


TOGETHER = [(cell, "cg_gpu") for cell in CELLS] + [
    ("tetrahedron", backend) for backend in BACKENDS if backend != "cg_gpu"
]


@pytest.mark.full("sipg_gpu")
@pytest.mark.parametrize("cell, backend", TOGETHER)
def test_linear_functions_are_exact(cell, backend):
    mesh = box_mesh(cell, comm=PETSc.COMM_SELF)
    problem = Problem(mesh, linear(mesh.dim), Options(backend=backend, degree=2, check_kernels=False))
    x = places(mesh)
    found = problem.at(problem.solve(), x)["u"]
    assert found.shape == (len(x), 1)
    assert np.abs(found[:, 0] - 1 - x @ SLOPE[: mesh.dim]).max() < 1e-6


@pytest.mark.parametrize("cell", CELLS)
def test_maps_of_curved_cells_are_inverted(cell):
    """The reference coordinates of a place lead back to it; every node is in a cell."""
    mesh = bent(box_mesh(cell, comm=PETSc.COMM_SELF))
    assert mesh.geometry.degree == 2
    locator, rng = Locator(mesh), np.random.default_rng(2)
    at = rng.dirichlet(np.ones(mesh.dim + 1), (mesh.num_cells, 5))[:, :, 1:].reshape(-1, mesh.dim)
    cells = np.repeat(np.arange(mesh.num_cells), 5)
    x = np.einsum("pn,pnd->pd", locator.element.tabulate(at, 0)[0], locator.nodes[cells])
    found, where = locator.find(x)
    assert (found == cells).mean() > 0.9  # neighbours of curved cells may share places by rounding alone
    assert np.abs(where - at)[found == cells].max() < 1e-9
    assert (locator.find(mesh.geometry.nodes)[0] >= 0).all()


def test_a_map_that_is_not_inverted_holds_nothing(monkeypatch):
    monkeypatch.setattr(locate, "STEPS", 1)
    mesh = box_mesh("quadrilateral", comm=PETSc.COMM_SELF)
    assert (Locator(mesh).find(places(mesh))[0] == -1).all()


def test_a_curved_cell_beyond_the_box_of_its_nodes():
    """The side from (0, 0) over (0.5, -0.02) to (1, 0.3) goes down to -0.053."""
    nodes = np.array([[0.0, 0.0], [1.0, 0.3], [0.0, 1.0], [0.5, 0.65], [0.0, 0.5], [0.5, -0.02]])
    geometry = SimpleNamespace(nodes=nodes, cell_nodes=np.arange(6)[None], degree=2)
    locator = Locator(SimpleNamespace(geometry=geometry, dim=2, cell="triangle", num_cells=1))
    s = np.linspace(0, 1, 21)
    side = np.stack([s, -0.38 * s + 0.68 * s**2], -1)
    assert side[:, 1].min() < -0.05
    cell, at = locator.find(side)
    assert (cell == 0).all() and np.abs(at - s[:, None] * [1, 0]).max() < 1e-9
    assert (locator.find(side - [0, 1e-3])[0] == -1).all()


def test_values_of_a_quadratic_and_several_fields():
    mesh = box_mesh("triangle", comm=PETSc.COMM_SELF)
    physics = fe.Physics({"v": 2, "p": fe.Field(1, degree_offset=-1)}, {"v": "f0[0] = u[0];", "p": "f0[0] = u[2];"})
    problem = Problem(mesh, physics, Options(degree=2, check_kernels=False))
    u = problem.interpolate({"v": lambda x: np.stack([x[..., 0] ** 2, x[..., 0] * x[..., 1]], -1), "p": 3.0})
    x = places(mesh)
    found = problem.at(u, x)
    assert np.abs(found["v"] - np.stack([x[:, 0] ** 2, x[:, 0] * x[:, 1]], -1)).max() < 1e-13
    assert found["p"] == pytest.approx(3.0) and found["p"].shape == (len(x), 1)
    assert problem.at(u, np.zeros((0, 2)))["v"].shape == (0, 2)


WRONG = {
    "points outside of the mesh: 2 of 3, the first is number 1 at .1.1, 0.5.; give points inside of its cells": [
        [0.5, 0.5],
        [1.1, 0.5],
        [1e300, 0],
    ],
    "shape .3,.; give one row of 2 coordinates": [0.5, 0.5, 0.5],
    "shape .1, 3.; give one row of 2 coordinates": [[0.5, 0.5, 0.5]],
    "Point number 1 has a coordinate that is not finite": [[0.5, 0.5], [np.nan, 0.5]],
    "is not made of numbers": "corner",
}


@pytest.mark.parametrize("message", WRONG)
def test_refusals(message):
    problem = Problem(box_mesh("triangle", comm=PETSc.COMM_SELF), linear(2), Options(check_kernels=False))
    with pytest.raises(OptionError, match=message):
        problem.at(problem.create_vec(), WRONG[message])


def test_on_three_ranks(mpirun):
    found = [json.loads(mpirun(ranks, RUN).stdout) for ranks in (1, 3)]
    assert found[0].keys() == set(BACKENDS)
    for backend in BACKENDS:
        one, three = found[0][backend], found[1][backend]
        assert min(three["counts"]) > 0 and three["same"] and three["refused"] == ["OptionError"] * 6
        assert three["error"] < 1e-6 and one["error"] < 1e-6
