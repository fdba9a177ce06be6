"""The same polygons over fewer triangles: outlines of agglomerates, divided anew, for cheaper quadrature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import MeshError, collectively
from ...stages import stage
from ..labels import EXTERIOR
from ..mesh_checks import require_mesh
from . import plane
from .polygons import Divided, made_mesh
from .polytope_lists import PolygonList

STRAIGHT = 1e-10  # sine of an angle that is taken for straight


@stage("mesh")
def fewer_cells(mesh):
    """A plane mesh with the polytopes, boundaries and regions of `mesh`, over as few triangles as it takes. Collective.

    Each polytope is divided into triangles between the vertices of its outline, n - 2 of n; vertices in the middle of a
    straight side that has one name and the same polytope behind all of it are left out. Polytopes with holes, or that
    touch themselves in a vertex, or that lie in a region with a part only, keep their cells. Numbers and degrees stay.
    Data given cell by cell do not fit the new mesh. Raises MeshError in 3D and for curved cells.
    """
    with collectively(require_mesh(mesh, "fewer_cells").comm):
        if mesh.dim != 2 or mesh.geometry.degree > 1 or mesh.polytopes is None or mesh.polytopes.numbers is None:
            raise MeshError(
                "Fewer cells are made of agglomerates in the plane with straight cells; "
                f"this mesh has dimension {mesh.dim}, cells of order {mesh.geometry.degree} and "
                f"{'no' if mesh.polytopes is None else 'its'} agglomerates."
            )
    parts = mesh.comm.gather(_Part.of(mesh))
    return made_mesh(
        lambda: _Outlines(_Part.joined(parts)).divided(), None, mesh.comm, mesh.dm.getOptionsPrefix() or ""
    )


@dataclass
class _Part:
    """Data of a rank that rank 0 needs; vertices and polytopes by their numbers over all ranks.

    cells [cell, vertex] around each counterclockwise.   owner [cell].   vertices [vertex], points [vertex, 2].
    names: boundary → facets [facet, 2].   regions: name → [cell] bool.   degrees: [polytope] or None.
    """

    cells: np.ndarray
    owner: np.ndarray
    vertices: np.ndarray
    points: np.ndarray
    names: dict[str, np.ndarray]
    regions: dict[str, np.ndarray]
    numbers: np.ndarray
    degrees: np.ndarray | None

    @classmethod
    def of(cls, mesh) -> _Part:
        """Of this rank. Collective."""
        topology, polytopes = mesh.topology, mesh.polytopes
        around = [0, 1, 2] if mesh.shape.is_simplex else [0, 1, 3, 2]
        local = topology.cell_vertices[: mesh.num_cells][:, around]
        points = mesh.geometry.nodes[: mesh.num_vertices]
        corners = points[local]
        clockwise = plane.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 1]) < 0
        local = np.where(clockwise[:, None], local[:, ::-1], local)
        wanted = [name for name in mesh.boundaries if name != EXTERIOR or mesh.labels_table.has(name, 1)]
        ends = topology.vertex_global[topology.entity_vertices[1]]
        return cls(
            topology.vertex_global[local],
            polytopes.numbers[polytopes.of_cell],
            topology.vertex_global,
            points,
            {name: ends[mesh.facet_mask(name)] for name in wanted},
            {name: mesh.cell_mask(name) for name in mesh.cell_regions},
            polytopes.numbers,
            polytopes.degrees,
        )

    @staticmethod
    def joined(parts: list[_Part]) -> _Part:
        """All ranks' parts; vertices and degrees in the order of their numbers."""
        first = parts[0]
        vertices = np.concatenate([p.vertices for p in parts])
        points = np.empty((vertices.max() + 1, 2))
        points[vertices] = np.concatenate([p.points for p in parts])
        degrees = None
        if first.degrees is not None:
            degrees = np.empty(sum(len(p.numbers) for p in parts), np.int64)
            for p in parts:
                degrees[p.numbers] = p.degrees
        return _Part(
            np.concatenate([p.cells for p in parts]),
            np.concatenate([p.owner for p in parts]),
            np.arange(len(points)),
            points,
            {name: np.concatenate([p.names[name] for p in parts]) for name in first.names},
            {name: np.concatenate([p.regions[name] for p in parts]) for name in first.regions},
            np.concatenate([p.numbers for p in parts]),
            degrees,
        )


class _Outlines:
    """Outlines of the polytopes of a whole mesh: directed edges, each polytope on their left.

    tail, head, left, right [edge]: vertices, polytopes; right is -1 at the boundary.   kept: polytopes that keep cells.
    """

    def __init__(self, whole: _Part):
        self.whole, self.count, n = whole, len(whole.numbers), len(whole.points)
        a, b = whole.cells.ravel(), np.roll(whole.cells, -1, axis=1).ravel()
        cell = np.repeat(whole.owner, whole.cells.shape[1])
        self._key = np.minimum(a, b) * n + np.maximum(a, b)
        order = np.argsort(self._key, kind="stable")
        twin = np.full(len(order), -1)
        same = np.flatnonzero(np.diff(self._key[order]) == 0)
        twin[order[same]], twin[order[same + 1]] = order[same + 1], order[same]
        beyond = np.where(twin < 0, -1, cell[twin])
        rim = beyond != cell
        self.tail, self.head, self.left, self.right = a[rim], b[rim], cell[rim], beyond[rim]
        self._key = self._key[rim]
        self.name = self._names()
        self.kept = self._in_part_regions()
        self.loops = self._follow()

    def _names(self) -> np.ndarray:
        """A number for the set of names of each edge [edge]."""
        bits = [np.isin(self._key, self._keys(rows)) for rows in self.whole.names.values()]
        if not bits:
            return np.zeros(len(self._key), np.int64)
        return np.unique(np.stack(bits, axis=1), axis=0, return_inverse=True)[1].ravel()

    def _keys(self, rows: np.ndarray) -> np.ndarray:
        rows = np.sort(rows, axis=1)
        return rows[:, 0] * len(self.whole.points) + rows[:, 1]

    def _in_part_regions(self) -> np.ndarray:
        """Polytopes of which a region holds a part only [polytope] bool."""
        kept, size = np.zeros(self.count, bool), np.bincount(self.whole.owner, minlength=self.count)
        for mask in self.whole.regions.values():
            inside = np.bincount(self.whole.owner[mask], minlength=self.count)
            kept |= (inside > 0) & (inside < size)
        return kept

    def _follow(self) -> dict[int, list[int]]:
        """Vertices around each polytope that has one outline; the others are noted in `kept`."""
        key = self.left * len(self.whole.points) + self.tail
        values, counts = np.unique(key, return_counts=True)
        self.kept[values[counts > 1] // len(self.whole.points)] = True
        order = np.argsort(self.left, kind="stable")
        start = np.searchsorted(self.left[order], np.arange(self.count + 1))
        loops = {}
        for k in np.flatnonzero(~self.kept):
            mine = order[start[k] : start[k + 1]]
            after = dict(zip(self.tail[mine].tolist(), self.head[mine].tolist(), strict=True))
            loop = [int(self.tail[mine[0]])]
            while (vertex := after[loop[-1]]) != loop[0]:
                loop.append(vertex)
            if len(loop) == len(mine):
                loops[int(k)] = loop
            else:
                self.kept[k] = True
        return loops

    def _straight(self) -> np.ndarray:
        """Vertices that nothing needs [vertex] bool: two edges meet there, in one line, alike on both sides."""
        n, x = len(self.whole.points), self.whole.points
        once = (self.right < 0) | (self.left < self.right)
        ends = np.concatenate([self.tail[once], self.head[once]])
        edge = np.tile(np.flatnonzero(once), 2)
        order = np.argsort(ends, kind="stable")
        counts = np.bincount(ends, minlength=n)
        first = np.concatenate([[0], np.cumsum(counts)])[:-1]
        vertex = np.flatnonzero(counts == 2)
        p, q = edge[order[first[vertex]]], edge[order[first[vertex] + 1]]
        pairs = np.sort(np.stack([self.left, self.right], axis=1), axis=1)
        held = self.kept[self.left] | (self.kept[self.right] & (self.right >= 0))
        alike = (pairs[p] == pairs[q]).all(axis=1) & (self.name[p] == self.name[q]) & ~held[p]
        ways = [x[np.where(self.tail[e] == vertex, self.head[e], self.tail[e])] - x[vertex] for e in (p, q)]
        lengths = np.prod([np.linalg.norm(way, axis=1) for way in ways], axis=0)
        bent = np.abs(plane.cross(*ways)) > STRAIGHT * lengths
        result = np.zeros(n, bool)
        result[vertex[alike & ~bent & ((ways[0] * ways[1]).sum(axis=1) < 0)]] = True
        return result

    def divided(self) -> Divided:
        """The polytopes in triangles, with the names of their edges and their regions. Raises MeshError."""
        straight, whole = self._straight(), self.whole
        loops = {k: [v for v in loop if not straight[v]] for k, loop in self.loops.items()}
        cells = np.flatnonzero(self.kept[whole.owner])
        owner = np.concatenate([np.array(list(loops), np.int64), whole.owner[cells]])
        found = PolygonList([*loops.values(), *whole.cells[cells]], whole.points)
        triangles, polygon, points = found.triangles(fewest=True)
        regions = {}
        for name, mask in whole.regions.items():
            inside = np.isin(list(loops), whole.owner[mask])
            regions[name] = np.flatnonzero(np.concatenate([inside, mask[cells]]))
        return Divided(
            "triangle", triangles, points, owner[polygon], self._named(loops, cells), regions, polygon, whole.degrees
        )

    def _named(self, loops: dict[int, list[int]], cells: np.ndarray) -> dict[str, np.ndarray]:
        """Boundaries by name: new edges are called as the old ones in their place; of cells kept, edges keep names."""
        n, whole = len(self.whole.points), self.whole
        left = np.repeat(list(loops), [len(loop) for loop in loops.values()]).astype(np.int64)
        tail = np.array([v for loop in loops.values() for v in loop], np.int64)
        head = np.array([v for loop in loops.values() for v in [*loop[1:], loop[0]]], np.int64)
        key = self.left * n + self.tail
        order = np.argsort(key)
        old = self._key[order[np.searchsorted(key, left * n + tail, sorter=order)]]
        of_cells = self._keys(
            np.stack([whole.cells[cells], np.roll(whole.cells[cells], -1, 1)], axis=-1).reshape(-1, 2)
        )
        named = {}
        for name, rows in whole.names.items():
            keys = self._keys(rows)
            new = np.stack([tail, head], axis=1)[np.isin(old, keys)]
            both = np.concatenate([new, rows[np.isin(keys, of_cells)]])
            named[name] = np.unique(np.sort(both, axis=1), axis=0)
        return named
