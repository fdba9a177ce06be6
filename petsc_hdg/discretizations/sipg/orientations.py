"""Orientations of a facet in the frames of its two cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations as all_permutations

import basix
import numpy as np

from ...reference import cell_dim, is_tensor


@dataclass(frozen=True)
class Orientations:
    """Orientations of the facets of a cell shape.

    Vertices of simplices ascend in an order of all, so their facets agree as they are: one orientation. An edge of a
    quadrilateral has 2, a face of a hexahedron 8.
    """

    cell: str

    @cached_property
    def corners(self) -> np.ndarray:
        """Corners [F, corner] of each facet: vertices of the cell in basix' order."""
        return np.array(basix.topology(basix.CellType[self.cell])[cell_dim(self.cell) - 1])

    @cached_property
    def maps(self) -> np.ndarray:
        """Corner of the neighbour's facet [orientation, corner] at each corner of the own one."""
        count = self.corners.shape[1]
        if not is_tensor(self.cell):
            return np.arange(count)[None]
        if count == 2:
            return np.array([[0, 1], [1, 0]])
        return np.array([m for m in all_permutations(range(4)) if m[0] ^ m[1] ^ m[2] ^ m[3] == 0 and m[0] ^ m[3] == 3])

    @property
    def count(self) -> int:
        return len(self.maps)

    def of_neighbours(self, vertices: np.ndarray, neighbour: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Orientation [cell, F] of each facet, 0 on the boundary.

        vertices [extended cell, vertex] global numbers; neighbour, place [cell, F]: cell behind and its facet.
        """
        found = np.zeros(neighbour.shape, np.int32)
        if self.count == 1:
            return found
        faces, count = neighbour.shape[1], self.corners.shape[1]
        facets = vertices[:, self.corners].reshape(-1, count)
        inside = np.flatnonzero(neighbour >= 0)
        own = facets[inside]
        other = facets[neighbour.ravel()[inside] * np.int64(faces) + place.ravel()[inside]]
        first, second = (sum(k * (other[:, k] == own[:, corner]) for k in range(1, count)) for corner in (0, 1))
        number = np.zeros((count, count), np.int32)
        number[self.maps[:, 0], self.maps[:, 1]] = np.arange(self.count)
        found.ravel()[inside] = number[first, second]
        return found

    def permutations(self, points: np.ndarray) -> np.ndarray:
        """Point of the neighbour's facet [orientation, point] at each point [point, dim - 1] of the own one.

        points: of the reference facet; each orientation takes their set to itself.
        """
        if self.count == 1:
            return np.arange(len(points))[None]
        dim = cell_dim(self.cell) - 1
        corner = np.stack([np.arange(2**dim) >> d & 1 for d in range(dim)], axis=1).astype(float)
        rows = []
        for mapped in self.maps:
            frame = corner[mapped[[1, 2][:dim]]] - corner[mapped[0]]
            moved = corner[mapped[0]] + points @ frame
            rows.append(np.argmin(np.abs(moved[:, None] - points[None]).sum(axis=2), axis=1))
        return np.array(rows)
