"""Cells by their places in space: numbers, and orders of their vertices, that are the same for every partition.

Items that lie on several ranks have an order of their own: where each stands, and values in that order.
"""

from __future__ import annotations

from functools import cache, cached_property
from itertools import permutations

import numpy as np
from mpi4py import MPI

from .shapes import shape
from .whole_mesh import centroids, curve_order

BITS = 20  # of a coordinate in a cell, by which its vertices are ordered
FINE = 2.0**26  # parts of the mesh's extent that the digest tells apart
CLOSE = 1e-12  # distance of reference points that are one
OFFSET = 0.377  # so that places of regular meshes lie far from where rounding changes


class CanonicalCells:
    """The cells of a mesh, whatever the number of ranks and the numbers that PETSc gave. Making one is collective.

    numbers [num_cells] int64: number of each owned cell among all, along a space-filling curve.   total: of all ranks.
    frames: of each part [cell, vertex] int64 the reference cell's vertex that stands at each place of a reference cell
    whose vertices are ordered by their places in space; a symmetry of the reference cell.
    digest: hexadecimal, of the places of all nodes in the box (to 1e-8 of the mesh's extent).
    """

    def __init__(self, mesh):
        self.mesh = mesh
        self.total = mesh.num_cells_all
        self.numbers = _numbers(mesh)
        self.frames = [_frames(part.cell_corners[: part.num_cells], part.cell) for part in mesh.parts]

    @property
    def digest(self) -> str:
        """Collective."""
        cells = self.mesh.geometry.cell_nodes[: self.mesh.num_cells]
        return summed(self.mesh.comm, mixed(self._of_nodes[cells].sum(axis=1, dtype=np.uint64) + mixed(self.numbers)))

    def digest_of_boundaries(self, places) -> str:
        """Hexadecimal, of the places of the facets that have each of some names, and of the cells on their sides.
        Collective.

        places: pairs of the name of a boundary, and of a region or "".
        """
        mesh, found = self.mesh, [np.zeros(0, np.uint64)]
        corners = mesh.topology.entity_vertices[mesh.dim - 1]
        for number, (label, side) in enumerate(places):
            cells, local = mesh.boundary_facets(label, True, side or None)
            of_facet = self._of_nodes[corners[mesh.topology.entity[mesh.dim - 1][cells, local]]].sum(axis=1)
            if side:
                of_facet += self._of_nodes[mesh.geometry.cell_nodes[cells]].sum(axis=1)
            found.append(mixed(of_facet + mixed(np.array([number]))))
        return summed(mesh.comm, np.concatenate(found))

    @cached_property
    def _of_nodes(self) -> np.ndarray:
        """Numbers [node] uint64 of places in the box. Collective at first use."""
        dim, (lower, upper) = self.mesh.dim, self.mesh.corners
        extent = max(upper - lower) or 1.0
        places = np.floor((self.mesh.geometry.nodes - lower) / extent * FINE + OFFSET).astype(np.int64)
        return mixed(places.astype(np.uint64) @ np.array([1, 0x9E3779B1, 0x7FEB352D1B5][:dim], np.uint64))


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Numbers [item] uint64 that look random, each the same for the same number (splitmix64)."""
    x = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def summed(comm, numbers: np.ndarray) -> str:
    """Sum modulo 2^64 of numbers [item] uint64 over all ranks, hexadecimal. Collective."""
    return f"{sum(comm.allgather(int(numbers.sum(dtype=np.uint64)))) % 2**64:016x}"


def _numbers(mesh) -> np.ndarray:
    found = mesh.comm.gather(centroids(mesh))
    parts = None
    if found is not None:
        order = curve_order(np.concatenate(found))
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(len(order))
        parts = np.split(numbers, np.cumsum([len(part) for part in found])[:-1])
    return mesh.comm.scatter(parts)


def _frames(corners: np.ndarray, cell: str) -> np.ndarray:
    """Frames [cell, vertex] of cells with vertices `corners` [cell, vertex, dim]: the symmetries whose first vertices
    come first, which tell all."""
    count, dim = corners.shape[1:]
    rank, symmetries = np.argsort(_vertex_order(corners), axis=1), _symmetries(cell)
    found, least = np.zeros(len(corners), np.int64), np.full(len(corners), count**dim)
    for number, frame in enumerate(symmetries):
        key = sum(rank[:, vertex] * count**k for k, vertex in enumerate(frame[dim - 1 :: -1]))
        found[key < least] = number
        least = np.minimum(key, least)
    return symmetries[found]


@cache
def _symmetries(cell: str) -> np.ndarray:
    """Vertices [symmetry, vertex] that come to the places of all under affine maps of the reference cell to itself."""
    found, points = [], shape(cell).points
    for images in permutations(range(len(points)), shape(cell).dim + 1):
        moved = points[images[0]] + points @ (points[list(images[1:])] - points[images[0]])
        same = np.abs(moved[:, None] - points).max(axis=2) < CLOSE
        if same.any(axis=1).all() and same.any(axis=0).all():
            found.append(same.argmax(axis=1))
    return np.array(found)


def _vertex_order(corners: np.ndarray) -> np.ndarray:
    """Vertices [cell, vertex] of each cell by x, then y, then z, as far as they differ by more than rounding."""
    lower = corners.min(axis=1, keepdims=True, initial=np.inf)
    extent = (corners - lower).max(axis=(1, 2), keepdims=True, initial=0.0)
    places = np.floor((corners - lower) / np.where(extent > 0, extent, 1.0) * 2**BITS + OFFSET).astype(np.int64)
    key = np.zeros(corners.shape[:2], np.int64)
    for axis in range(corners.shape[2]):
        key = (key << (BITS + 1)) + places[:, :, axis]
    order = np.argsort(key, axis=1, kind="stable")
    same = (np.diff(np.take_along_axis(key, order, axis=1), axis=1) == 0).any(axis=1)
    for cell in np.flatnonzero(same):  # far thinner than long
        order[cell] = np.lexsort(corners[cell].T[::-1])
    return order


class GlobalOrder:
    """Items of all ranks in one order, 0 … total - 1, cut into blocks of equal size, one a rank. Making one is
    collective.

    numbers [item] int64: number of each item of this rank; over all ranks each number stands once.
    size: items of a block, those of the last ranks being fewer or none.   count: items of this rank's block.
    """

    def __init__(self, comm, numbers: np.ndarray):
        self.comm, self.numbers = comm, np.asarray(numbers, np.int64)
        self.total = comm.allreduce(len(self.numbers))
        self.size = max(1, -(-self.total // comm.size))
        self.count = min(max(self.total - comm.rank * self.size, 0), self.size)
        self._plan = _Plan(comm, self.numbers // self.size)
        self._place = self._plan.send(self.numbers) - comm.rank * self.size

    @classmethod
    def of_keys(cls, comm, keys: np.ndarray, bound: int) -> GlobalOrder:
        """The order of keys [item] int64 in 0 … bound - 1, all different. Collective. Raises ValueError, on all ranks,
        for equal keys."""
        block = max(1, -(-bound // comm.size))
        plan = _Plan(comm, keys // block)
        found = plan.send(np.asarray(keys, np.int64))
        order = np.argsort(found, kind="stable")
        equal = int((np.diff(found[order]) == 0).sum())
        if comm.allreduce(equal):
            raise ValueError("keys are equal")
        first = comm.exscan(len(found)) or 0
        number = np.empty(len(found), np.int64)
        number[order] = first + np.arange(len(found))
        return cls(comm, plan.back(number))

    def collect(self, values: np.ndarray) -> np.ndarray:
        """This rank's block [count, …] of values [item, …] of the items of all ranks, in the order. Collective."""
        found = self._plan.send(values)
        block = np.empty((self.count, *values.shape[1:]), values.dtype)
        block[self._place] = found
        return block

    def deal(self, block: np.ndarray) -> np.ndarray:
        """Values [item, …] of this rank's items from the blocks [count, …] of all ranks. Collective."""
        return self._plan.back(block[self._place])


class _Plan:
    """Messages of items to given ranks [item], and back to where they came from. Every call is collective."""

    def __init__(self, comm, ranks: np.ndarray):
        self.comm = comm
        self._order = np.argsort(ranks, kind="stable")
        self._to = np.bincount(ranks, minlength=comm.size).astype(np.int32)
        self._from = np.empty_like(self._to)
        comm.Alltoall(self._to, self._from)

    def send(self, values: np.ndarray) -> np.ndarray:
        """Values [received, …] that come here from values [item, …]: by ascending rank, in their order there."""
        return self._exchange(values[self._order], self._to, self._from)

    def back(self, values: np.ndarray) -> np.ndarray:
        """Values [item, …] from those [received, …] of `send`."""
        found = self._exchange(values, self._from, self._to)
        out = np.empty_like(found)
        out[self._order] = found
        return out

    def _exchange(self, values: np.ndarray, out: np.ndarray, into: np.ndarray) -> np.ndarray:
        values = np.ascontiguousarray(values)
        nbytes = values.dtype.itemsize * int(np.prod(values.shape[1:]))
        received = np.empty((int(into.sum()), *values.shape[1:]), values.dtype)
        kind = MPI.BYTE.Create_contiguous(nbytes).Commit()  # counts are of items, and stay small
        try:
            self.comm.Alltoallv([values, (out, _starts(out)), kind], [received, (into, _starts(into)), kind])
        finally:
            kind.Free()
        return received


def _starts(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int32)
