"""Meshes from cell lists are those that PETSc's own interpolation makes, point for point."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from mpi4py import MPI
from petsc4py import PETSc

from petsc_hdg.mesh.cell_list import PLEX_ORDER, CellList, box_cells, points_of
from petsc_hdg.petsc import c_library


def by_petsc(listed: CellList):
    cells = np.ascontiguousarray(listed.cells[:, PLEX_ORDER[listed.cell]])
    dim = listed.points.shape[1]
    return PETSc.DMPlex().createFromCellList(dim, cells, listed.points, interpolate=True, comm=PETSc.COMM_SELF)


def shuffled(simplex: bool, faces=(7, 5)) -> CellList:
    """A box whose cells come in any order and begin at any of their vertices, points numbered at random."""
    listed, rng = box_cells(faces, simplex, 0.0, 1.0), np.random.default_rng(1)
    number = rng.permutation(len(listed.points))
    around = number[listed.cells][:, PLEX_ORDER[listed.cell]]
    around = np.stack([np.roll(row, rng.integers(len(row))) for row in around[rng.permutation(len(around))]])
    points = np.empty_like(listed.points)
    points[number] = listed.points
    return CellList({listed.cell: around[:, np.argsort(PLEX_ORDER[listed.cell])].astype(PETSc.IntType)}, points)


def in_space(simplex: bool) -> CellList:
    """The same of a box in space, whose cells stand in any of their symmetries, reflections among them."""
    listed, rng = box_cells((4, 3, 2), simplex, 0.0, 1.0), np.random.default_rng(2)
    if simplex:
        symmetries = list(permutations(range(4)))
    else:
        bits = np.arange(8)[:, None] >> np.arange(3) & 1
        symmetries = [
            (bits[:, axes] ^ flip) @ [1, 2, 4] for axes in permutations(range(3)) for flip in product((0, 1), repeat=3)
        ]
    number = rng.permutation(len(listed.points))
    cells = number[listed.cells[rng.permutation(len(listed.cells))]]
    cells = np.stack([row[np.array(symmetries[rng.integers(len(symmetries))])] for row in cells])
    points = np.empty_like(listed.points)
    points[number] = listed.points
    return CellList({listed.cell: cells.astype(PETSc.IntType)}, points)


def reversed_cell(simplex: bool) -> CellList:
    """The same with one cell that is turned over: it goes along its edges as its neighbours do."""
    listed = shuffled(simplex)
    around = listed.cells[:, PLEX_ORDER[listed.cell]]
    around[9] = around[9][::-1].copy()
    return CellList({listed.cell: around[:, np.argsort(PLEX_ORDER[listed.cell])]}, listed.points)


@pytest.mark.parametrize("simplex", [True, False])
@pytest.mark.parametrize("make", [shuffled, reversed_cell, in_space])
def test_points_cones_and_orientations_are_petscs(make, simplex):
    listed = make(simplex)
    points, facets = points_of(listed, listed.cell)
    ours, theirs = points.plex(MPI.COMM_SELF), by_petsc(listed)
    dim = 3 if make is in_space else 2
    assert ours.getDimension() == theirs.getDimension() == dim
    assert ours.getChart() == theirs.getChart()
    assert [ours.getDepthStratum(d) for d in range(dim + 1)] == [theirs.getDepthStratum(d) for d in range(dim + 1)]
    turned = set()
    for point in range(*theirs.getChart()):
        for get in ("getCone", "getConeOrientation", "getSupport"):
            np.testing.assert_array_equal(getattr(ours, get)(point), getattr(theirs, get)(point))
        assert ours.getCellType(point) == theirs.getCellType(point)
        turned |= {(theirs.getConeSize(point), turn) for turn in theirs.getConeOrientation(point)}
    assert turned >= {(2, 0), (3 if simplex else 4, -1)}
    if dim == 3:
        assert sum(size == (4 if simplex else 6) for size, _ in turned) == (6 if simplex else 8)
    np.testing.assert_array_equal(ours.getCoordinatesLocal().getArray(), theirs.getCoordinatesLocal().getArray())
    np.testing.assert_array_equal(ours.getCoordinates().getArray(), theirs.getCoordinates().getArray())
    assert ours.getCoordinateSection().getChart() == theirs.getCoordinateSection().getChart()
    assert c_library.cell_shapes(ours) == c_library.cell_shapes(theirs) == {listed.cell: len(listed.cells)}
    assert (c_library.shared_points(ours) is None) == (c_library.shared_points(theirs) is None)
    assert {ours.getLabelName(n) for n in range(ours.getNumLabels())} == {"celltype", "depth"}
