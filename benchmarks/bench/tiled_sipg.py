"""Large meshes for `bench sipg`: grids in three states, and copies of them side by side with the cells' neighbours."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import permutations, product

import numpy as np
from mpi4py import MPI

from petsc_hdg.discretizations.base import Discretization
from petsc_hdg.discretizations.dofmap import AuxiliaryRows, DofMap, field_spaces
from petsc_hdg.discretizations.sipg.interleaved import CHUNK, Interleaved
from petsc_hdg.discretizations.sipg.neighbours import Neighbours, Orientations
from petsc_hdg.discretizations.sipg.scheme import InteriorPenalty, degrees_of
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.mesh import Mesh
from petsc_hdg.mesh.cell_list import box_cells

from .tiled import tiled_mesh

# box: cells of a grid, all turned alike.   renumbered: cells and points in random order, each cell turned at random.
# distorted: the same with inner points moved at random.   Mesh orders the cells along a Morton curve in all cases.
STATES = ("box", "renumbered", "distorted")
AMOUNT = 0.15  # of an edge, by which inner points are moved


def grid(cell: str, faces, state: str, seed: int = 1) -> Mesh:
    """A grid on the unit box in one of STATES; its sides are named as `Mesh.box` does, all together `boundary`."""
    simplex = cell in ("triangle", "tetrahedron")
    if state == "box":
        return Mesh.box(faces, simplex=simplex, comm=MPI.COMM_SELF)
    listed, random = box_cells(faces, simplex, 0.0, 1.0), np.random.default_rng(seed)
    x = np.array(listed.points)
    if state == "distorted":
        inside = ((x > 1e-9) & (x < 1 - 1e-9)).all(axis=1)
        x[inside] += random.uniform(-AMOUNT, AMOUNT, x.shape)[inside] / np.array(faces)
    order, turns = random.permutation(len(x)), np.array(turned(cell))
    cells = np.argsort(order)[listed.cells][random.permutation(len(listed.cells))]
    which = turns[random.integers(len(turns), size=len(cells))]
    return Mesh.from_cells(np.take_along_axis(cells, which, axis=1), x[order], cell=cell, comm=MPI.COMM_SELF)


def turned(cell: str) -> list[list[int]]:
    """Renumberings of a reference cell's vertices that keep the cell (tensor order for squares and cubes)."""
    dim = 2 if cell in ("triangle", "quadrilateral") else 3
    if cell in ("triangle", "tetrahedron"):
        return [list(p) for p in permutations(range(dim + 1))]
    corners = list(product((0, 1), repeat=dim))
    found = []
    for axes in permutations(range(dim)):
        for flips in product((0, 1), repeat=dim):
            found.append([sum((c[::-1][axes[k]] ^ flips[k]) << k for k in range(dim)) for c in corners])
    return found


class TiledSIPG(InteriorPenalty):
    """An InteriorPenalty on copies of a mesh with known neighbours; each copy has the boundary of the mesh.

    Raises ValueError if the mesh's cells do not fill chunks and there is more than one copy: copies would then differ.
    """

    def __init__(self, mesh, neighbours: Neighbours, physics, options, limits=None, copies: int = 1):
        if mesh.num_cells % CHUNK and copies > 1:
            raise ValueError(f"a tile of {mesh.num_cells} cells is not made of chunks of {CHUNK}")
        self.degrees = degrees_of(mesh.cell)
        Discretization.__init__(self, tiled_mesh(mesh, copies), physics, options)
        self.limits = limits or DeviceLimits()
        self.spaces = field_spaces(mesh.cell, physics.fields, options.degree)
        self.auxiliary = AuxiliaryRows(physics.auxiliary, self.spaces[0].element)
        self.orientations = Orientations(mesh.cell)
        self.neighbours = tiled_neighbours(neighbours, self.mesh.geometry, copies)

    @cached_property
    def _numbering(self):
        numbers = Interleaved(self.num_dofs).table(self.mesh.num_cells, self.row_of_dof)
        every, none = np.arange(numbers.size, dtype=np.int32), np.zeros(0, np.int32)
        return DofMap(numbers, every, numbers.size, 0, 0, none, none, none, every), numbers


def tiled_neighbours(one: Neighbours, geometry, copies: int) -> Neighbours:
    """Neighbours of a mesh on one rank, repeated; geometry: of the copies."""
    step = one.num_cells * np.arange(copies, dtype=np.int32)[:, None, None]
    neighbour = np.where(one.neighbour >= 0, one.neighbour + step, one.neighbour)
    return replace(
        one,
        num_cells=one.num_cells * copies,
        neighbour=neighbour.reshape(-1, one.neighbour.shape[1]),
        facet=np.tile(one.facet, (copies, 1)),
        orientation=np.tile(one.orientation, (copies, 1)),
        wall=np.tile(one.wall, (copies, 1)),
        plan=None,
        vertices=np.zeros((0, one.vertices.shape[1]), one.vertices.dtype),
        cell_nodes=geometry.cell_nodes,
        nodes=geometry.nodes,
    )
