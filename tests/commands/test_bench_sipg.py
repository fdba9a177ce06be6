"""Rows of `bench sipg`: what they count; copies of a grid that are what the grid is; states of grids."""

from __future__ import annotations

import json

import numpy as np
import pytest
from bench import sipg
from bench.tiled_sipg import STATES, TiledSIPG, grid, turned
from mpi4py import MPI

import petsc_hdg as fe
from petsc_hdg.device import Arrays, Device
from petsc_hdg.discretizations.sipg.neighbours import Orientations, find_neighbours
from petsc_hdg.discretizations.sipg.scheme import InteriorPenalty
from petsc_hdg.operators.sipg.operator import SIPGOperator
from petsc_hdg.options import Options

pytestmark = pytest.mark.full

FACES = {"triangle": (8, 4), "quadrilateral": (8, 4), "tetrahedron": (4, 2, 2), "hexahedron": (4, 4, 2)}


@pytest.fixture(scope="module")
def rows(mpirun, tmp_path_factory) -> list[dict]:
    path = tmp_path_factory.mktemp("bench") / "rows.json"
    options = ["-cells", "500", "-repeat", "1", "-only", "quadrilateral P1", "-json", path]
    mpirun(1, "benchmarks/bench", "sipg", *options)
    return json.loads(path.read_text())


def test_rows_of_every_kernel_and_state(rows):
    every = [f"sipg {t}, {state}" for state in STATES for kernel in sipg.KERNELS[state] for t in sipg.titles(kernel)]
    every.remove("sipg affine product, distorted")  # the squares are no rectangles any more
    assert [r["kernel"] for r in rows] == every
    assert {*sipg.KERNELS} == {*STATES}


def test_rows_count_two_reals_an_unknown(rows):
    for row in rows:
        assert row["scheme"] == "sipg_gpu" and row["cell"] == "quadrilateral" and row["state"] in STATES
        assert row["dofs"] == 4 * row["cells"] == 4 * 1024 and row["bytes_compulsory"] == 16 * row["dofs"]
        fraction = row["bytes_compulsory"] / row["seconds_median"] / row["copy_GBs_same_run"] / 1e9
        assert row["fraction_of_copy"] == pytest.approx(fraction) and fraction > 0
        assert row["flops"] == row["cells"] * 4 * 2 * 2 * 4


def product(disc, copies: int = 1) -> np.ndarray:
    """J at zero times random numbers, the same on each copy."""
    op = SIPGOperator(disc, Arrays(Device.select("cpu"), "double"))
    count = op.dofmap.num_owned
    one = np.random.default_rng(1).uniform(-1, 1, count // copies)
    du, out = op.arrays.to_device(np.tile(one, copies)), op.arrays.zeros(count)
    op.linearize(op.arrays.zeros(count))
    op.action(du, out)
    return op.arrays.to_host(out, count)


@pytest.mark.parametrize("kernel", ["auto", "split"])
@pytest.mark.parametrize("cell", FACES)
def test_copies_of_a_grid(cell, kernel):
    physics, mesh = sipg.laplace(), grid(cell, FACES[cell], "distorted")
    options = Options(degree=2, backend="sipg_gpu", sipg_kernel=kernel)
    plain = InteriorPenalty(mesh, physics, options)
    neighbours = find_neighbours(mesh, physics, Orientations(cell))
    assert mesh.num_cells % 32 == 0
    expected = product(plain)
    for copies in (1, 3):
        disc = TiledSIPG(mesh, neighbours, physics, options, copies=copies)
        found = product(disc, copies)
        assert len(found) == copies * len(expected)
        np.testing.assert_allclose(found, np.tile(expected, copies), rtol=0, atol=1e-13 * np.abs(expected).max())
    assert np.abs(expected).max() > 0.1


def test_a_tile_is_made_of_chunks():
    mesh, physics = grid("quadrilateral", (5, 5), "box"), sipg.laplace()
    neighbours = find_neighbours(mesh, physics, Orientations("quadrilateral"))
    options = Options(degree=1, backend="sipg_gpu")
    assert TiledSIPG(mesh, neighbours, physics, options).mesh.num_cells == 25
    with pytest.raises(ValueError, match="a tile of 25 cells is not made of chunks of 32"):
        TiledSIPG(mesh, neighbours, physics, options, copies=2)
    for faces in (sipg.GPU_FACES, sipg.CPU_FACES):
        cells = {c: np.prod(faces[c]) * {"triangle": 2, "tetrahedron": 6}.get(c, 1) for c in faces}
        assert not any(count % 32 for count in cells.values())


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("cell", FACES)
def test_grids(cell, state):
    mesh = grid(cell, FACES[cell], state)
    box = fe.Mesh.box(FACES[cell], simplex=cell in ("triangle", "tetrahedron"), comm=MPI.COMM_SELF)
    assert mesh.num_cells == box.num_cells and mesh.exterior.sum() == box.exterior.sum()
    same = np.allclose(np.sort(mesh.geometry.nodes, axis=0), np.sort(box.geometry.nodes, axis=0), atol=1e-12)
    assert same == (state != "distorted")
    neighbours = find_neighbours(mesh, sipg.laplace(), Orientations(cell))
    seen = {*neighbours.orientation[neighbours.neighbour >= 0].tolist()}
    expected = {"quadrilateral": {0, 1}, "hexahedron": {*range(8)}}.get(cell, {0})
    assert seen == expected if state != "box" or len(expected) == 1 else seen < expected


def test_turned_cells():
    counts = {"triangle": 6, "quadrilateral": 8, "tetrahedron": 24, "hexahedron": 48}
    assert {cell: len(turned(cell)) for cell in FACES} == counts
    square = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    for turn in turned("quadrilateral"):
        a, b, c, d = square[turn]
        np.testing.assert_array_equal(a + d, b + c)
