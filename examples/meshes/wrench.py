"""Makes wrench.msh, the mesh of the demo: `python wrench.py` (needs `pip install gmsh`).

A combination wrench of steel with a plastic grip, in decimetres, as an unstructured mesh of some 20 000 triangles.
Regions: "steel", "grip".
Boundaries: "jaw" (the open end), "ring" (the hexagon), "handle" (the sides of the grip) and "outline" (the rest).
"""

from math import cos, pi, sin, sqrt
from pathlib import Path

import gmsh

SIZE = 0.0112  # length of an edge
RING = 2.2  # the open end is at x = 0, the closed one here
HEAD_RADIUS, RING_RADIUS = 0.42, 0.3
JAW, NUT = 0.36, 0.18  # width of the opening, circumradius of the hexagon
TILT = 15 * pi / 180  # a wrench holds its nut askew
NECK = [  # from end to end, the upper side
    *[(0.05, 0.41), (0.3, 0.32), (0.5, 0.19), (0.75, 0.145), (1.15, 0.135)],
    *[(1.55, 0.125), (1.8, 0.14), (2.0, 0.21), (2.18, 0.295)],
]
GRIP = (0.85, 1.55)  # where the grip begins and ends

occ = gmsh.model.occ


def polygon(points) -> tuple[int, int]:
    """A plane polygon as (dimension, tag)."""
    corners = [occ.addPoint(x, y, 0) for x, y in points]
    edges = [occ.addLine(a, b) for a, b in zip(corners, corners[1:] + corners[:1], strict=True)]
    return 2, occ.addPlaneSurface([occ.addCurveLoop(edges)])


def shaft() -> tuple[int, int]:
    """The shaft, whose sides run smoothly into both ends."""
    top = [occ.addPoint(x, y, 0) for x, y in reversed(NECK)]
    bottom = [occ.addPoint(x, -y, 0) for x, y in NECK]
    ends = occ.addLine(bottom[-1], top[0]), occ.addLine(top[-1], bottom[0])
    edges = [occ.addBSpline(bottom), ends[0], occ.addBSpline(top), ends[1]]  # counterclockwise, as fuse() wants it
    return 2, occ.addPlaneSurface([occ.addCurveLoop(edges)])


def jaw() -> tuple[int, int]:
    """The opening: a slot that ends as a hexagon, open to the left."""
    half = JAW / 2
    depth = half / sqrt(3)
    points = [(-1, -half), (depth, -half), (2 * depth, 0), (depth, half), (-1, half)]
    return polygon([(x * cos(TILT) - y * sin(TILT), x * sin(TILT) + y * cos(TILT)) for x, y in points])


def hexagon() -> tuple[int, int]:
    return polygon([(RING + NUT * cos(k * pi / 3 + TILT), NUT * sin(k * pi / 3 + TILT)) for k in range(6)])


def wrench() -> tuple[int, int]:
    """The whole outline as one surface."""
    head = 2, occ.addDisk(0, 0, 0, HEAD_RADIUS, HEAD_RADIUS)
    ring = 2, occ.addDisk(RING, 0, 0, RING_RADIUS, RING_RADIUS)
    (body,), _ = occ.fuse([head], [ring, shaft()])
    (body,), _ = occ.cut([body], [jaw(), hexagon()])
    return body


def grip(body) -> tuple[int, int]:
    """The part of the shaft that the grip covers, rounded at both ends."""
    begin, end = GRIP
    middle = 2, occ.addRectangle(begin, -0.3, 0, end - begin, 0.6)
    round_ends = [(2, occ.addDisk(x, 0, 0, 0.16, 0.16)) for x in GRIP]
    cover, _ = occ.fuse([middle], round_ends)
    (covered,), _ = occ.intersect([body], cover, removeObject=False)
    return covered


def name_parts(steel: list[int], plastic: list[int]) -> None:
    """Physical groups: Gmsh writes their names into the file."""
    boundaries = {"jaw": [], "ring": [], "handle": [], "outline": []}
    of_grip = {tag for _, tag in gmsh.model.getBoundary([(2, t) for t in plastic], oriented=False)}
    for _, tag in gmsh.model.getEntities(1):
        if len(gmsh.model.getAdjacencies(1, tag)[0]) == 1:
            boundaries["handle" if tag in of_grip else kind(tag)].append(tag)
    for dim, groups in ((1, boundaries), (2, {"steel": steel, "grip": plastic})):
        for number, (name, tags) in enumerate(groups.items(), start=1):
            gmsh.model.addPhysicalGroup(dim, tags, number, name)


def kind(curve: int) -> str:
    """Which boundary a curve away from the grip belongs to: the openings have straight sides, all else is curved."""
    if gmsh.model.getType(1, curve) != "Line":
        return "outline"
    return "jaw" if occ.getCenterOfMass(1, curve)[0] < 1 else "ring"


if __name__ == "__main__":
    gmsh.initialize()
    gmsh.option.setNumber("General.Terminal", 0)
    body = wrench()
    cover = grip(body)
    parts, _ = occ.fragment([body], [cover])
    occ.synchronize()
    plastic = [tag for _, tag in parts if abs(occ.getCenterOfMass(2, tag)[0] - sum(GRIP) / 2) < 0.2]
    name_parts([tag for _, tag in parts if tag not in plastic], plastic)
    gmsh.option.setNumber("Mesh.MeshSizeMin", SIZE)
    gmsh.option.setNumber("Mesh.MeshSizeMax", SIZE)
    gmsh.model.mesh.generate(2)
    gmsh.write(str(Path(__file__).with_suffix(".msh")))
    print(len(gmsh.model.mesh.getElementsByType(2)[0]), "triangles")
    gmsh.finalize()
