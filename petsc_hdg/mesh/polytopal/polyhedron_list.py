"""Polyhedra given by their faces: checked, divided into tetrahedra that fit together."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ...errors import MeshError
from ...value_checks import shown
from .polygon_list import CLOSE, checked_points, flattened, short

FLAT = 1e-6  # distance from a face's plane, relative to the face's extent, that is taken for none


class PolyhedronList:
    """Polyhedra with flat faces, whole in the sight of their centroids, checked. Local.

    cells: faces of each, by number.   faces: vertices of each.   points [point, 3].   centroids [polyhedron, 3].
    """

    def __init__(self, cells, points):
        """`cells`: of each polyhedron its faces, of each face its vertices around it. Raises MeshError."""
        self.points = checked_points(points, 3)
        self.faces, self.cells, self._number = [], [], {}
        if not isinstance(cells, list | tuple | np.ndarray):
            raise MeshError(f"Polyhedra are given as {shown(cells)}; give a list of lists of faces.")
        if not len(cells):
            raise MeshError("No polyhedron was given; a mesh takes one or more.")
        for k, cell in enumerate(cells):
            self.cells.append(self._numbered(k, cell))
        self._centres = [self._face_centre(f) for f in range(len(self.faces))]
        found = [self._oriented(k) for k in range(len(self.cells))]
        self.centroids = np.array([self._centroid(k, signs) for k, signs in enumerate(found)])
        self._check_sides(found)

    def _numbered(self, k: int, cell) -> list[int]:
        """Numbers of the faces of polyhedron k; faces with the same vertices are one."""
        if not isinstance(cell, list | tuple | np.ndarray):
            raise MeshError(f"Polyhedron {k} is given as {shown(cell)}; give a list of faces.")
        if len(cell) < 4:
            raise MeshError(f"Polyhedron {k} has {len(cell)} faces; it takes four or more.")
        start, vertex = flattened(cell, len(self.points), 3, f"Polyhedron {k}: face")
        numbers = []
        for a, b in zip(start[:-1], start[1:], strict=True):
            face = vertex[a:b]
            if len(set(face.tolist())) < len(face):
                raise MeshError(f"Polyhedron {k} has a face that names a vertex twice: {short(face)}.")
            key = tuple(sorted(face.tolist()))
            if key not in self._number:
                self._number[key] = len(self.faces)
                self.faces.append(face)
            numbers.append(self._number[key])
        return numbers

    def _face_centre(self, f: int) -> np.ndarray:
        """Centroid of face f [3]; it sees the face, which is flat. Raises MeshError."""
        x = self.points[self.faces[f]]
        middle = x.mean(axis=0)
        normals = np.cross(x - middle, np.roll(x, -1, axis=0) - middle)
        normal, extent = normals.sum(axis=0), np.ptp(x, axis=0).max()
        size = np.linalg.norm(normal)
        if size <= 1e-12 * extent**2:
            raise MeshError(f"The face of vertices {short(self.faces[f])} has no area.")
        normal /= size
        if np.abs((x - middle) @ normal).max() > FLAT * extent:
            raise MeshError(f"The face of vertices {short(self.faces[f])} is not flat; split it into flat ones.")
        weights = normals @ normal
        centre = (weights[:, None] * (x + np.roll(x, -1, axis=0) + middle)).sum(axis=0) / (3 * weights.sum())
        seen = np.cross(x - centre, np.roll(x, -1, axis=0) - centre) @ normal
        if seen.min() <= CLOSE**2 * size:
            raise MeshError(
                f"The face of vertices {short(self.faces[f])} is not seen whole from its centroid; split it in two."
            )
        return centre

    def face_triangles(self, f: int) -> np.ndarray:
        """Corners [triangle, 3, 3] of face f: itself if it is a triangle, else a fan around its centroid."""
        x = self.points[self.faces[f]]
        if len(x) == 3:
            return x[None]
        return np.stack([np.broadcast_to(self._centres[f], x.shape), x, np.roll(x, -1, axis=0)], axis=1)

    def _oriented(self, k: int) -> np.ndarray:
        """Directions 1 or -1 of the faces of polyhedron k that agree along its edges and look outward [face]."""
        sides = defaultdict(list)
        for place, f in enumerate(self.cells[k]):
            for a, b in zip(self.faces[f].tolist(), np.roll(self.faces[f], -1).tolist(), strict=True):
                sides[min(a, b), max(a, b)].append((place, 1 if a < b else -1))
        near = defaultdict(list)
        for edge, found in sides.items():
            if len(found) != 2:
                raise MeshError(
                    f"Polyhedron {k} is not closed: the edge of vertices {edge[0]} and {edge[1]} belongs to "
                    f"{len(found)} of its faces; it takes two."
                )
            (p, s), (q, t) = found
            near[p].append((q, -s * t))
            near[q].append((p, -s * t))
        sign, queue = {0: 1}, [0]
        for p in queue:
            for q, turn in near[p]:
                if sign.setdefault(q, sign[p] * turn) != sign[p] * turn:
                    raise MeshError(f"Polyhedron {k} has no inside: its faces cannot be turned outward.")
                if q not in queue:
                    queue.append(q)
        if len(queue) < len(self.cells[k]):
            raise MeshError(
                f"Polyhedron {k} has faces that share no edge with the others; it takes one closed surface."
            )
        signs = np.array([sign[p] for p in range(len(queue))])
        return signs if self._volumes(k, signs, self.points[self.faces[self.cells[k][0]][0]])[0].sum() > 0 else -signs

    def _volumes(self, k: int, signs: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Signed volumes of the tetrahedra between a place [3] and the faces' triangles, and their middles."""
        corners = np.concatenate([self.face_triangles(f) for f in self.cells[k]])
        sign = np.repeat(signs, [len(self.face_triangles(f)) for f in self.cells[k]])
        return sign * np.linalg.det(corners - place) / 6, (corners.sum(axis=1) + place) / 4

    def _centroid(self, k: int, signs: np.ndarray) -> np.ndarray:
        """Centroid of polyhedron k [3], which sees all of it. Raises MeshError."""
        x = self.points[np.concatenate([self.faces[f] for f in self.cells[k]])]
        volumes, middles = self._volumes(k, signs, x.mean(axis=0))
        extent = np.ptp(x, axis=0).max()
        if volumes.sum() <= 1e-12 * extent**3:
            raise MeshError(f"Polyhedron {k} has no volume.")
        centroid = volumes @ middles / volumes.sum()
        if self._volumes(k, signs, centroid)[0].min() <= 1e-12 * volumes.sum():
            raise MeshError(f"Polyhedron {k} is not seen whole from its centroid, which its tetrahedra need; split it.")
        return centroid

    def _check_sides(self, found: list[np.ndarray]) -> None:
        """Raise MeshError unless each face has one polyhedron, or two on different sides."""
        sides = defaultdict(list)
        for k, (cell, signs) in enumerate(zip(self.cells, found, strict=True)):
            for f, sign in zip(cell, signs.tolist(), strict=True):
                sides[f].append((k, sign))
        for f, of in sides.items():
            names = ", ".join(str(k) for k, _ in of)
            if len(of) > 2:
                raise MeshError(
                    f"The face of vertices {short(self.faces[f])} belongs to {len(of)} polyhedra ({names})."
                )
            if len(of) == 2 and of[0][1] == of[1][1]:
                raise MeshError(f"Polyhedra {names} overlap: both lie on one side of vertices {short(self.faces[f])}.")

    def tetrahedra(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tetrahedra [tetrahedron, 4], the polyhedron of each [tetrahedron], and all points [point, 3].

        A tetrahedron stays whole. In others, the triangles of the faces are joined with the centroid.
        """
        cells, owner, centre = [], [], len(self.points) + len(self.faces)
        for k, cell in enumerate(self.cells):
            triangles = np.concatenate([self._triangle_numbers(f) for f in cell])
            if len(triangles) == 4:
                cells.append(np.unique(triangles)[None])
            else:
                cells.append(np.insert(triangles, 0, centre + k, axis=1))
            owner.append(np.full(len(cells[-1]), k))
        points = np.concatenate([self.points, self._centres, self.centroids])
        return np.concatenate(cells), np.concatenate(owner), points

    def _triangle_numbers(self, f: int) -> np.ndarray:
        """Triangles of face f [triangle, 3], by points."""
        face = self.faces[f]
        if len(face) == 3:
            return face[None]
        return np.stack([np.full(len(face), len(self.points) + f), face, np.roll(face, -1)], axis=1)

    def triangles_of(self, name: str, faces) -> np.ndarray:
        """Triangles [triangle, 3] of faces given by their vertices, for the boundary `name`. Raises MeshError."""
        found = []
        for face in faces:
            number = self._number.get(tuple(sorted(np.asarray(face).tolist())))
            if number is None:
                raise MeshError(
                    f"Boundary '{name}' names a face of vertices {short(np.asarray(face))}, which no cell has."
                )
            found.append(self._triangle_numbers(number))
        return np.concatenate(found) if found else np.empty((0, 3), np.int64)
