"""Agglomerates and polygons that must be refused: name → (what to call, pattern of the message), as in bad_inputs."""

import meshio
import numpy as np

from petsc_hdg.mesh import Mesh, agglomerate, coarsen, polygons, polygons_from_file, polyhedra


def on_box(comm, *arguments, **more):
    """Agglomerates of eight triangles."""
    return agglomerate(Mesh.box((2, 2), comm=comm), *arguments, **more)


def short(comm):
    """One number too few on the last rank alone."""
    mesh = Mesh.box((4, 4), comm=comm)
    return agglomerate(mesh, groups=np.zeros(mesh.num_cells - (comm.rank == comm.size - 1), int))


def failing(x):
    raise ValueError("no such place")


def in_plane(comm, cells, points, **more):
    return polygons(cells, points, comm=comm, **more)


def in_space(comm, cells, points=None, **more):
    return polyhedra(cells, CUBE if points is None else points, comm=comm, **more)


def moved(point: int, by) -> np.ndarray:
    """The corners of the cube, one of them moved."""
    points = np.array(CUBE)
    points[point] += by
    return points


def hexahedra(folder):
    path = folder / "hexahedra.vtu"
    meshio.Mesh(CUBE, [("hexahedron", [[0, 4, 6, 2, 1, 5, 7, 3]])]).write(path)
    return path


SQUARE = [[0.0, 0], [1, 0], [1, 1], [0, 1]]
CUBE = [[x, y, z] for x in (0.0, 1) for y in (0.0, 1) for z in (0.0, 1)]
FACES = [[0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5]]
SPLIT = [*FACES[1:], [0, 1, 3], [0, 3, 2]]  # the face x = 0 as two triangles
# An octahedron whose upper half is pulled through the lower one: an arrow head.
ARROW = [[1.0, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, -1], [0, 0, -0.9]]
ARROW_FACES = [[k, (k + 1) % 4, tip] for k in range(4) for tip in (4, 5)]
ONE = r"Cells are agglomerated by count, groups or label, or by count within one of these; "
BAD = {
    "no way to agglomerate": (lambda c, f: on_box(c), ONE + "none was given"),
    "two ways to agglomerate": (lambda c, f: on_box(c, groups=[0], label="x"), ONE + "groups and label were given"),
    "no polytopes": (lambda c, f: on_box(c, 0), "0 polytopes were asked for; .* takes a whole number 1 … 8"),
    "too many polytopes": (lambda c, f: on_box(c, 9), "9 polytopes were asked for; .* takes a whole number 1 … 8"),
    "half a polytope": (lambda c, f: on_box(c, 1.5), "1.5 polytopes were asked for"),
    "groups too short": (lambda c, f: short(c), r"Groups of shape \(\d+,\) were given; rank \d owns \d+ cells"),
    "groups of reals": (lambda c, f: on_box(c, groups=lambda x: x[:, 0]), "Groups were given as float64; give a whole"),
    "groups of the wrong shape": (lambda c, f: on_box(c, groups=lambda x: x > 0), r"Groups of shape \(\d+, 2\)"),
    "groups that fail": (lambda c, f: on_box(c, groups=failing), "The function of groups failed: ValueError: no such"),
    "unknown label": (lambda c, f: on_box(c, label="iron"), "no cell region called 'iron'; known here: none"),
    "degrees too short": (
        lambda c, f: on_box(c, 4, degrees=[1, 2, 3]),
        r"Degrees of shape \(3,\) were given; for 4 agglomerates give \(4,\), or one number",
    ),
    "degree too high": (lambda c, f: on_box(c, 2, degrees=[1, 7]), "A degree of 7 was given .* whole numbers 0 … 6"),
    "negative degree": (lambda c, f: on_box(c, 2, degrees=-1), "A degree of -1 was given"),
    "real degree": (lambda c, f: on_box(c, 2, degrees=1.5), "A degree of 1.5 was given"),
    "cost of nothing": (lambda c, f: on_box(c, 2, cost=lambda x: 0 * x[:, 0]), "The cost of some cells is not a pos"),
    "too many coarser polytopes": (
        lambda c, f: coarsen(on_box(c, 4), 5),
        "5 polytopes were asked for; a mesh of 4 polytopes takes a whole number 1 … 4",
    ),
    "two points": (lambda c, f: in_plane(c, [[0, 1]], SQUARE), r"Polygon 0 is \[0, 1\]; it takes 3 or more vertex num"),
    "polygon of reals": (lambda c, f: in_plane(c, [[0, 1, 2.5]], SQUARE), r"Polygon 0 is \[0.0, 1.0, 2.5\]; it takes"),
    "no polygons": (lambda c, f: in_plane(c, [], SQUARE), "No polygon was given"),
    "polygon out of range": (
        lambda c, f: in_plane(c, [[0, 1, 9]], SQUARE),
        "Polygons name points 0 to 9; the list has 4",
    ),
    "polygon in space": (lambda c, f: in_plane(c, [[0, 1, 3]], CUBE), r"Points of shape \(8, 3\) were given"),
    "polygon point not finite": (
        lambda c, f: in_plane(c, [[0, 1, 2]], [[0, 0], [1, np.inf], [0, 1]]),
        "Point 1 has coordinates that are not finite",
    ),
    "vertex twice": (lambda c, f: in_plane(c, [[0, 1, 2, 1]], SQUARE), "Polygon 0 names vertex 1 twice"),
    "edge without length": (
        lambda c, f: in_plane(c, [[0, 1, 2, 3, 4]], [*SQUARE, [0, 1]]),
        "Polygon 0 has an edge without length, from vertex 3 to vertex 4",
    ),
    "bow tie": (
        lambda c, f: in_plane(c, [[0, 2, 1, 3]], SQUARE),
        "Polygon 0 intersects itself: its edges from vertex 0 to 2 and from 1 to 3 meet",
    ),
    "pentagram": (
        lambda c, f: in_plane(c, [range(5)], [[np.cos(0.8 * np.pi * k), np.sin(0.8 * np.pi * k)] for k in range(5)]),
        "Polygon 0 intersects itself",
    ),
    "polygon that touches itself": (
        lambda c, f: in_plane(c, [range(5)], [[0, 0], [2, 0], [2, 2], [1, 0], [0, 2]]),
        "Polygon 0 intersects itself: its edges from vertex 0 to 1 and from",
    ),
    "flat polygon": (
        lambda c, f: in_plane(c, [[0, 1, 2, 3]], [[0, 0], [1, 1], [3, 3], [2, 2]]),
        "Polygon 0 has no area; its vertices .* lie on a line",
    ),
    "edge of three polygons": (
        lambda c, f: in_plane(c, [[0, 1, 2], [0, 1, 3], [0, 1, 4]], [*SQUARE, [0.5, -1]]),
        r"The edge of vertices 0 and 1 belongs to 3 polygons \(0, 1, 2\)",
    ),
    "polygons that overlap": (
        lambda c, f: in_plane(c, [[0, 1, 2], [1, 0, 3]], SQUARE),
        "Polygons 0 and 1 overlap: both lie on the same side of the edge of vertices 0 and 1",
    ),
    "vertex not listed": (
        lambda c, f: in_plane(c, [[0, 1, 2, 3], [1, 4, 5], [5, 2, 1 + 5]], [*SQUARE, [2, 0], [1, 0.4], [2, 1]]),
        r"Vertex 5 \(1, 0.4\) lies inside an edge of polygon 0, from vertex 1 to 2",
    ),
    "edge of no polygon": (
        lambda c, f: in_plane(c, [[0, 1, 2, 3]], SQUARE, boundaries={"cut": [[0, 2]]}),
        "Boundary 'cut' names a facet",
    ),
    "region of no polygon": (
        lambda c, f: in_plane(c, [[0, 1, 2, 3]], SQUARE, regions={"iron": [0, 1]}),
        "Region 'iron' names polytopes 0 to 1; there are 1",
    ),
    "polygon degrees too long": (
        lambda c, f: in_plane(c, [[0, 1, 2, 3]], SQUARE, degrees=[1, 2]),
        r"Degrees of shape \(2,\) were given; for 1 agglomerates",
    ),
    "three faces": (lambda c, f: in_space(c, [FACES[:3]]), "Polyhedron 0 has 3 faces; it takes four or more"),
    "open cube": (lambda c, f: in_space(c, [FACES[:5]]), "Polyhedron 0 is not closed: the edge of vertices 1 and 3"),
    "bent face": (
        lambda c, f: in_space(c, [FACES], moved(7, [0.1, 0, 0])),
        r"The face of vertices \[4, 5, 7, 6\] is not flat",
    ),
    "crossed face": (
        lambda c, f: in_space(c, [[[0, 3, 1, 2], *FACES[1:]]]),
        r"The face of vertices \[0, 3, 1, 2\] has no area",
    ),
    "arrow head": (
        lambda c, f: in_space(c, [ARROW_FACES], ARROW),
        "Polyhedron 0 is not seen whole from its centroid",
    ),
    "two surfaces": (
        lambda c, f: in_space(c, [FACES + [[k + 8 for k in face] for face in FACES]], [*CUBE, *(np.array(CUBE) + 2)]),
        "Polyhedron 0 has faces that share no edge with the others",
    ),
    "polyhedra that overlap": (
        lambda c, f: in_space(c, [FACES, SPLIT]),
        "Polyhedra 0, 1 overlap: both lie on one side",
    ),
    "face of no polyhedron": (
        lambda c, f: in_space(c, [FACES], boundaries={"cut": [[0, 1, 7, 6]]}),
        r"Boundary 'cut' names a face of vertices \[0, 1, 7, 6\], which no cell has",
    ),
    "curved polytopes": (
        lambda c, f: on_box(c, 2).curved(lambda x: x),
        "polytopes has straight cells; curve the mesh before agglomerate",
    ),
    "missing polygon file": (lambda c, f: polygons_from_file(f / "none.vtu", comm=c), "none.vtu does not exist"),
    "polygon file of hexahedra": (
        lambda c, f: polygons_from_file(hexahedra(f) if c.rank == 0 else "none", comm=c),
        "has cells of type hexahedron; polygons",
    ),
}
