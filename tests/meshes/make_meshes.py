"""Makes the small Gmsh meshes of the tests: `python make_meshes.py` (needs `pip install gmsh`).

disk_*: the unit disk, ball_*: the unit ball, second order, boundary "rim".
regions.msh: the unit square with regions "west" and "east", boundaries "inlet", "wall", "sides" (over the others) and a
group 7 without a name; the same as MSH 2.2 in regions_v2.msh (no "sides") and in binary in regions_bin.msh.
Meshes that must be refused: mixed.msh (triangles and quadrilaterals), line.msh (1D), cubic.msh (third order).
"""

from pathlib import Path

import gmsh

HERE = Path(__file__).parent


def write(name: str, version: float = 4.1, binary: int = 0) -> None:
    gmsh.option.setNumber("Mesh.MshFileVersion", version)
    gmsh.option.setNumber("Mesh.Binary", binary)
    gmsh.write(str(HERE / name))


def start(size: float, order: int = 1) -> None:
    gmsh.clear()
    gmsh.option.setNumber("General.Terminal", 0)
    gmsh.option.setNumber("Mesh.MeshSizeMax", size)
    gmsh.option.setNumber("Mesh.MeshSizeMin", size)
    gmsh.option.setNumber("Mesh.ElementOrder", order)
    gmsh.option.setNumber("Mesh.SubdivisionAlgorithm", 0)
    gmsh.option.setNumber("Mesh.RecombineAll", 0)
    gmsh.option.setNumber("Mesh.SecondOrderIncomplete", 0)


def disk(name: str, quads: bool, order: int = 2, incomplete: int = 0) -> None:
    start(0.45, order)
    gmsh.option.setNumber("Mesh.SecondOrderIncomplete", incomplete)
    surface = gmsh.model.occ.addDisk(0, 0, 0, 1, 1)
    gmsh.model.occ.synchronize()
    gmsh.model.addPhysicalGroup(1, [c for _, c in gmsh.model.getBoundary([(2, surface)])], 1, "rim")
    gmsh.model.addPhysicalGroup(2, [surface], 2, "disk")
    if quads:
        gmsh.option.setNumber("Mesh.RecombineAll", 1)
        gmsh.option.setNumber("Mesh.SubdivisionAlgorithm", 1)
    gmsh.model.mesh.generate(2)
    write(name)


def ball(name: str, hexes: bool) -> None:
    start(0.9, 2)
    volume = gmsh.model.occ.addSphere(0, 0, 0, 1)
    gmsh.model.occ.synchronize()
    gmsh.model.addPhysicalGroup(2, [s for _, s in gmsh.model.getBoundary([(3, volume)])], 1, "rim")
    gmsh.model.addPhysicalGroup(3, [volume], 2, "ball")
    if hexes:
        start_hexes()
    gmsh.model.mesh.generate(3)
    write(name)


def start_hexes() -> None:
    gmsh.option.setNumber("Mesh.SubdivisionAlgorithm", 2)
    gmsh.option.setNumber("Mesh.MeshSizeMax", 2.0)
    gmsh.option.setNumber("Mesh.MeshSizeMin", 2.0)


def regions() -> None:
    start(0.25)
    west = gmsh.model.occ.addRectangle(0, 0, 0, 0.5, 1)
    east = gmsh.model.occ.addRectangle(0.5, 0, 0, 0.5, 1)
    gmsh.model.occ.fragment([(2, west)], [(2, east)])
    gmsh.model.occ.synchronize()

    def sides(x0, y0, x1, y1):
        return [t for _, t in gmsh.model.getEntitiesInBoundingBox(x0 - 1e-6, y0 - 1e-6, -1, x1 + 1e-6, y1 + 1e-6, 1, 1)]

    gmsh.model.addPhysicalGroup(1, sides(0, 0, 0, 1), 3, "inlet")
    gmsh.model.addPhysicalGroup(1, sides(0, 0, 1, 0) + sides(0, 1, 1, 1), 5, "wall")
    gmsh.model.addPhysicalGroup(1, sides(1, 0, 1, 1), 7)
    outer = sides(0, 0, 0, 1) + sides(1, 0, 1, 1)
    gmsh.model.addPhysicalGroup(2, [west], 3, "west")
    gmsh.model.addPhysicalGroup(2, [east], 4, "east")
    gmsh.model.mesh.generate(2)
    write("regions_v2.msh", 2.2)
    gmsh.model.addPhysicalGroup(1, outer, 8, "sides")
    write("regions.msh")
    write("regions_bin.msh", 4.1, 1)


def mixed() -> None:
    start(0.5)
    a = gmsh.model.occ.addRectangle(0, 0, 0, 1, 1)
    b = gmsh.model.occ.addRectangle(1, 0, 0, 1, 1)
    gmsh.model.occ.fragment([(2, a)], [(2, b)])
    gmsh.model.occ.synchronize()
    gmsh.model.mesh.setTransfiniteSurface(b)
    gmsh.model.mesh.setRecombine(2, b)
    gmsh.model.mesh.generate(2)
    write("mixed.msh")


def line() -> None:
    start(0.3)
    gmsh.model.occ.addLine(gmsh.model.occ.addPoint(0, 0, 0), gmsh.model.occ.addPoint(1, 0, 0))
    gmsh.model.occ.synchronize()
    gmsh.model.mesh.generate(1)
    write("line.msh")


if __name__ == "__main__":
    gmsh.initialize()
    disk("disk_tri.msh", quads=False)
    disk("disk_quad.msh", quads=True)
    disk("disk_quad8.msh", quads=True, incomplete=1)
    disk("cubic.msh", quads=False, order=3)
    ball("ball_tet.msh", hexes=False)
    ball("ball_hex.msh", hexes=True)
    regions()
    mixed()
    line()
    gmsh.finalize()
