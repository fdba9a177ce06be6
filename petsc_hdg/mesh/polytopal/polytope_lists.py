"""Polygons by their vertices, polyhedra by their faces: checked, divided into simplices that fit together."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ...errors import MeshError
from ...value_checks import array, plural, reals, shown
from . import plane

CLOSE = 1e-6  # to the rim of what it sees, relative to the root of the area: from there a point sees hardly anything
SHALLOW = 0.1  # other ways are looked at too
FLATTEST = 1e-3  # quality of a triangle that is good enough where there shall be few
FLAT = 1e-6  # distance from a face's plane, relative to the face's extent, that is taken for none


class PolygonList:
    """Simple polygons in the plane, checked. Local.

    start [polygon + 1], vertex [entry]: vertices of each polygon, counterclockwise.   points [point, 2].
    areas [polygon].
    """

    def __init__(self, cells, points):
        """`cells`: a sequence of sequences of vertex numbers.   `points` [point, 2]. Raises MeshError."""
        self.points = checked_points(points, 2)
        self.start, self.vertex = flattened(cells, len(self.points), 3, "Polygon")
        self._check_vertices()
        self.areas = self._summed(plane.cross(*self._from_first())) / 2
        self._turn()
        self.centroids = self._centroids()
        self._find_stars()
        for k in np.flatnonzero(~self._stars):
            self._check_simple(k)
        self.neighbours = self._match_edges()
        self._check_hanging()

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def sizes(self) -> np.ndarray:
        """Number of vertices of each polygon [polygon]."""
        return np.diff(self.start)

    def owner(self) -> np.ndarray:
        """Polygon of each entry [entry]."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def after(self) -> np.ndarray:
        """The vertex that follows each entry in its polygon [entry]."""
        place = np.arange(1, len(self.vertex) + 1)
        place[self.start[1:] - 1] = self.start[:-1]
        return self.vertex[place]

    def corners(self, k: int) -> np.ndarray:
        """Vertices of polygon k [vertex, 2]."""
        return self.points[self.vertex[self.start[k] : self.start[k + 1]]]

    def _summed(self, values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, self.start[:-1], axis=0)

    def _from_first(self) -> tuple[np.ndarray, np.ndarray]:
        """Ends of each edge [entry, 2] as seen from the first vertex of its polygon."""
        origin = self.points[self.vertex[self.start[:-1]]][self.owner()]
        return self.points[self.vertex] - origin, self.points[self.after()] - origin

    def _check_vertices(self) -> None:
        key = self.owner() * len(self.points) + self.vertex
        twice = np.flatnonzero(np.diff(np.sort(key)) == 0)
        if len(twice):
            k, vertex = divmod(int(np.sort(key)[twice[0]]), len(self.points))
            raise MeshError(f"Polygon {k} names vertex {vertex} twice; a simple polygon passes each vertex once.")
        flat = np.flatnonzero((self.points[self.vertex] == self.points[self.after()]).all(axis=1))
        if len(flat):
            k, a, b = self.owner()[flat[0]], self.vertex[flat[0]], self.after()[flat[0]]
            raise MeshError(f"Polygon {k} has an edge without length, from vertex {a} to vertex {b}; merge the two.")

    def _turn(self) -> None:
        """Turn polygons counterclockwise."""
        place = np.arange(len(self.vertex))
        mirrored = np.repeat(self.start[:-1] + self.start[1:] - 1, self.sizes) - place
        self.vertex = self.vertex[np.where((self.areas < 0)[self.owner()], mirrored, place)]
        self.areas = np.abs(self.areas)

    def _centroids(self) -> np.ndarray:
        a, b = self._from_first()
        weights = plane.cross(a, b)
        moments = self._summed(weights[:, None] * (a + b))
        with np.errstate(divide="ignore", invalid="ignore"):  # of polygons without area, which are refused later
            return self.points[self.vertex[self.start[:-1]]] + moments / (6 * self.areas)[:, None]

    def _find_stars(self) -> None:
        """Find what the centroids see.

        depth [polygon]: least distance of the centroid from the line of an edge over the root of the area, negative if
        it does not see all.   stars [polygon] bool: it sees all, and the polygon turns around it once, hence is simple.
        """
        owner = self.owner()
        a, b = (self.points[end] - self.centroids[owner] for end in (self.vertex, self.after()))
        with np.errstate(divide="ignore", invalid="ignore"):
            height = plane.cross(a, b) / np.linalg.norm(b - a, axis=1)
            turn = self._summed(np.arctan2(plane.cross(a, b), (a * b).sum(axis=1)))
            self._depth = np.minimum.reduceat(height, self.start[:-1]) / np.sqrt(self.areas)
        self._stars = (self._depth > CLOSE) & (np.abs(turn - 2 * np.pi) < 1)

    def _check_simple(self, k: int) -> None:
        x, names = self.corners(k), self.vertex[self.start[k] : self.start[k + 1]]
        found = plane.crossing(x)
        extent = np.ptp(x, axis=0).max()
        if np.linalg.matrix_rank(x - x[0], 1e-10 * extent) < 2:
            raise MeshError(f"Polygon {k} has no area; its vertices {short(names)} lie on a line.")
        if found is not None:
            (a, b), (c, d) = ((names[i], names[(i + 1) % len(x)]) for i in found)
            raise MeshError(
                f"Polygon {k} intersects itself: its edges from vertex {a} to {b} and from {c} to {d} meet; "
                "list the vertices of a simple polygon in their order around it."
            )

    def _match_edges(self) -> np.ndarray:
        """Return True if each edge has a polygon on its other side [entry] bool. Raises MeshError."""
        a, b = self.vertex, self.after()
        low, high = np.minimum(a, b), np.maximum(a, b)
        key, edge, count = np.unique(low * len(self.points) + high, return_inverse=True, return_counts=True)
        forward = np.bincount(edge, a < b, minlength=len(key))
        wrong = np.flatnonzero((count > 2) | ((count == 2) & (forward != 1)))
        if len(wrong):
            edge_name = "vertices {} and {}".format(*divmod(int(key[wrong[0]]), len(self.points)))
            owners = self.owner()[edge == wrong[0]].tolist()
            if count[wrong[0]] > 2:
                listed = ", ".join(map(str, owners[:6]))
                raise MeshError(
                    f"The edge of {edge_name} belongs to {len(owners)} polygons ({listed}); two may share it."
                )
            raise MeshError(
                f"Polygons {owners[0]} and {owners[1]} overlap: both lie on the same side of the edge of {edge_name}."
            )
        return count[edge] == 2

    def _check_hanging(self) -> None:
        """Raise MeshError if a vertex lies inside an edge that does not list it; both look like boundary then."""
        alone = np.flatnonzero(~self.neighbours)
        a, b = self.points[self.vertex[alone]], self.points[self.after()[alone]]
        rim = np.unique(self.vertex[alone])
        for place, edge, vertex in near_edges(a, b, self.points[rim], rim):
            k = self.owner()[alone[edge]]
            ends = self.vertex[alone[edge]], self.after()[alone[edge]]
            if vertex not in ends:
                raise MeshError(
                    f"Vertex {vertex} ({', '.join(f'{x:.6g}' for x in place)}) lies inside an edge of polygon {k}, "
                    f"from vertex {ends[0]} to {ends[1]}; list it as a vertex of that polygon too."
                )

    def triangles(self, fewest: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Triangles [triangle, 3], the polygon of each [triangle], and points [point, 2]: those given and more inside.

        Triangles stay whole. Others are a fan around the centroid if it sees all of them well; else a fan around the
        middle of what sees all of them, or triangles between their vertices, whichever is better. No vertex is put
        on an edge. `fewest`: triangles between the vertices wherever these are not too flat. Raises MeshError.
        """
        centres, ears = self.centroids.copy(), {}
        for k in np.flatnonzero((self.sizes > 3) & (fewest | ~(self._stars & (self._depth > SHALLOW)))):
            self._divide(k, centres, ears, FLATTEST if fewest else np.inf)
        whole, clipped = self.sizes == 3, np.isin(np.arange(len(self)), list(ears))
        fans = ~(whole | clipped)
        entries = fans[self.owner()]
        centre = len(self.points) + np.cumsum(fans) - 1
        parts = [np.stack([centre[self.owner()], self.vertex, self.after()], axis=1)[entries]]
        parts += [self.vertex[self.start[:-1][whole][:, None] + np.arange(3)], *ears.values()]
        owners = [self.owner()[entries], np.flatnonzero(whole), *(np.full(len(t), k) for k, t in ears.items())]
        return np.concatenate(parts), np.concatenate(owners), np.concatenate([self.points, centres[fans]])

    def _divide(self, k: int, centres: np.ndarray, ears: dict[int, np.ndarray], enough: float) -> None:
        """The better one of a fan around the middle of what sees all of polygon k, noted in `centres`, and `ears`.

        Ears of a quality that is `enough` are taken without a look at fans.
        """
        x = self.corners(k)
        triangles = plane.clip_ears(x)
        by_ears = plane.quality(x[triangles]).min() if triangles is not None else 0
        if by_ears > enough:
            ears[int(k)] = self.vertex[self.start[k] : self.start[k + 1]][triangles]
            return
        places = [centres[k]] if self._stars[k] else []
        seeing = plane.kernel(x)
        if len(seeing) > 2 and plane.area(seeing) > plane.FLAT * self.areas[k]:
            places.append(plane.centroid(seeing))
        values = [plane.quality(plane.fan(x, place)).min() for place in places]
        if values and max(values) >= by_ears:
            centres[k] = places[int(np.argmax(values))]
        elif triangles is None:
            raise MeshError(f"Polygon {k} cannot be divided into triangles: it is too thin; repair it.")
        else:
            ears[int(k)] = self.vertex[self.start[k] : self.start[k + 1]][triangles]


def checked_points(points, dim: int) -> np.ndarray:
    """Points [point, dim] float64. Raises MeshError."""
    points = reals("The array of points", points, MeshError)
    if points.ndim != 2 or points.shape[1] != dim:
        raise MeshError(f"Points of shape {points.shape} were given; an array [point, {dim}] is taken.")
    wrong = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if len(wrong):
        raise MeshError(f"Point {wrong[0]} has coordinates that are not finite numbers.")
    return points


def flattened(cells, num_points: int, least: int, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Lists of vertex numbers as start [list + 1] and vertex [entry] int64. Raises MeshError."""
    if not isinstance(cells, list | tuple | np.ndarray):
        raise MeshError(f"The {what.lower()}s are given as {shown(cells)}; give a list of lists of vertex numbers.")
    rows = [array(what, row, MeshError) for row in cells]
    if not rows:
        raise MeshError(f"No {what.lower()} was given; a mesh takes one or more.")
    for k, row in enumerate(rows):
        if row.ndim != 1 or len(row) < least or row.dtype.kind not in "iu":
            raise MeshError(f"{what} {k} is {short(row)}; it takes {least} or more vertex numbers.")
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    vertex = np.concatenate(rows).astype(np.int64)
    if vertex.min() < 0 or vertex.max() >= num_points:
        raise MeshError(
            f"{what}s name points {vertex.min()} to {vertex.max()}; the list has {plural(num_points, 'point')}, "
            "counted from 0."
        )
    return start, vertex


def short(row: np.ndarray) -> str:
    """Shorten what was given to a few words."""
    text = " ".join(str(row.tolist()).split())
    return text if len(text) <= 60 else f"{text[:60]} …"


def near_edges(a: np.ndarray, b: np.ndarray, x: np.ndarray, names: np.ndarray, chunk: int = 1 << 22):
    """Points x [point, 2] called names [point] that lie inside edges from a to b [edge, 2]: (place, edge, name)."""
    if not len(a):
        return
    along = b - a
    length = np.linalg.norm(along, axis=1)
    rows = max(chunk // len(x), 1)
    for begin in range(0, len(a), rows):
        part = slice(begin, begin + rows)
        from_a = x[None] - a[part, None]
        way = (from_a * along[part, None]).sum(axis=2) / (length[part, None] ** 2)
        off = np.abs(plane.cross(along[part, None], from_a)) / length[part, None]
        close = 1e-9 * length[part, None]
        for edge, point in np.argwhere((off <= close) & (way > 1e-9) & (way < 1 - 1e-9)):
            yield x[point], begin + edge, names[point]


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
