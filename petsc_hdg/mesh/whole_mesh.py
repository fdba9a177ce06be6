"""All cells of a mesh on rank 0, in an order that depends on their places only, not on the partition."""

from __future__ import annotations

import numpy as np

from .graph import Graph
from .order import morton_keys


class WholeMesh:
    """The cells of a mesh on rank 0 along a space-filling curve. Every method is collective.

    Arrays "of a rank" are [num_cells], those "of the whole mesh" [cell] on rank 0 and None elsewhere.

    centroids [cell, dim] and costs: of the whole mesh.
    """

    def __init__(self, mesh, cost: np.ndarray):
        """`cost` [num_cells]: weight of each cell of this rank."""
        self.comm, self._mesh = mesh.comm, mesh
        found, self.centroids, self._order = self.comm.gather(centroids(mesh)), None, None
        if found is not None:
            self._sizes, x = [len(part) for part in found], np.concatenate(found)
            self._order = curve_order(x)
            self.centroids = x[self._order]
        self.costs = self.gather(cost)

    def graph(self) -> Graph | None:
        """Cells, joined by the facets that two of them share, on rank 0."""
        facets = self.gather(_facet_numbers(self._mesh))
        return None if facets is None else _dual(facets, self.costs)

    def gather(self, values: np.ndarray) -> np.ndarray | None:
        """Values of the whole mesh from those of each rank."""
        found = self.comm.gather(values)
        return None if found is None else np.concatenate(found)[self._order]

    def deal(self, values: np.ndarray | None) -> np.ndarray:
        """Values of this rank from those of the whole mesh."""
        parts = None
        if self._order is not None:
            back = np.empty_like(values)
            back[self._order] = values
            parts = np.split(back, np.cumsum(self._sizes)[:-1])
        return self.comm.scatter(parts)


def centroids(mesh) -> np.ndarray:
    """Mean of the vertices of each owned cell [num_cells, dim], the same to the last bit on any number of ranks."""
    found = []
    for part in mesh.parts:
        corners = np.sort(part.cell_corners[: part.num_cells], axis=1)
        found.append(sum(corners[:, k] for k in range(corners.shape[1])) / corners.shape[1])
    return np.concatenate(found)


def curve_order(x: np.ndarray) -> np.ndarray:
    """Permutation [point] that visits points [point, dim] along the curve, whatever order they come in."""
    keys = morton_keys(x, x.min(axis=0), x.max(axis=0))
    return np.lexsort((*x.T, keys))


def _facet_numbers(mesh) -> np.ndarray:
    """Numbers, from 1 on, of the facets of owned cells [num_cells, facet] int64 that all ranks agree on, 0 of none.
    Collective."""
    numbers = mesh.dm.createPointNumbering().getIndices().astype(np.int64)
    numbers = np.where(numbers < 0, -numbers - 1, numbers)
    first, last = mesh.topology.stratum[mesh.dim - 1]
    start = mesh.dm.getChart()[0]
    return mesh.on_sides(numbers[first - start : last - start] + 1)


def _dual(facets: np.ndarray, weights: np.ndarray) -> Graph:
    """Graph of cells from the numbers of their facets [cell, facet], 0 of none."""
    flat = facets.ravel()
    order = np.argsort(flat, kind="stable")
    twice = np.flatnonzero((flat[order][1:] == flat[order][:-1]) & (flat[order][1:] > 0))
    return Graph.from_pairs(np.stack([order[twice], order[twice + 1]], axis=1) // facets.shape[1], weights)
