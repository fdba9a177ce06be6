"""Meshes that must be refused: name → (what to call with a communicator and a folder, pattern of the message)."""

import bad_polytopes
import meshio
import numpy as np
from petsc4py import PETSc
from shuffled_boxes import MESHES

from petsc_hdg import Physics, Problem
from petsc_hdg.mesh import Mesh

SQUARE = [[0.0, 0], [1, 0], [0, 1], [1, 1]]
CUBE = [[x, y, z] for z in (0.0, 1) for y in (0.0, 1) for x in (0.0, 1)]


def gmsh(points, cell: str) -> bytes:
    """MSH 2.2 of one cell: type, tags, nodes."""
    nodes = "".join(f"{k + 1} {' '.join(map(str, point))}\n" for k, point in enumerate(points))
    head = f"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{len(points)}\n{nodes}$EndNodes\n"
    return f"{head}$Elements\n1\n1 {cell}\n$EndElements\n".encode()


COLLAPSED = gmsh([[0, 0, 0], [1, 0, 0], [1, 1, 0]], "3 2 1 1 1 1 2 3")
OPPOSITE = gmsh(CUBE, "5 2 1 1 1 2 4 2 5 6 8 7")


def written(folder, name: str, content: bytes):
    path = folder / name
    path.write_bytes(content)
    return path


def cut(folder, name: str, keep: float):
    content = (MESHES / name).read_bytes()
    return written(folder, name, content[: int(len(content) * keep)])


def wedge(folder):
    points = [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [0, 1, 1]]
    path = folder / "wedge.vtu"
    meshio.Mesh(points, [("wedge", [[0, 1, 2, 3, 4, 5]])]).write(path)
    return path


def bent(folder):
    path = folder / "bent.vtu"
    meshio.Mesh([[0.0, 0, 0], [1, 0, 0], [0, 1, 0.5], [1, 1, 0]], [("triangle", [[0, 1, 2], [1, 2, 3]])]).write(path)
    return path


def second_order(folder):
    path = folder / "p2.vtu"
    points = [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0.5, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0]]
    meshio.Mesh(points, [("triangle6", [[0, 1, 2, 3, 4, 5]])]).write(path)
    return path


def with_options(comm, **values):
    database = PETSc.Options()
    for name, value in values.items():
        database[name] = value
    try:
        return Mesh.from_options(comm)
    finally:
        for name in values:
            database.delValue(name)


def own_plex(comm, dim: int):
    dm = PETSc.DMPlex().create(comm=PETSc.Comm(comm))
    dm.setDimension(dim)
    dm.setChart(0, 0)
    dm.setUp()
    return dm


def surface(comm):
    """Two triangles in space."""
    cells = [[0, 1, 2], [1, 2, 3]] if comm.rank == 0 else np.empty((0, 3))
    points = np.c_[SQUARE, [0, 0, 0, 1.0]] if comm.rank == 0 else np.empty((0, 3))
    return PETSc.DMPlex().createFromCellList(2, np.array(cells, PETSc.IntType), points, comm=PETSc.Comm(comm))


def plex(comm, cell, points):
    """A DMPlex of one cell on rank 0."""
    of_rank = slice(0, None if comm.rank == 0 else 0)
    rows, x = np.array([cell], PETSc.IntType)[of_rank], np.array(points, float)[of_rank]
    return PETSc.DMPlex().createFromCellList(x.shape[1], rows, x, comm=PETSc.Comm(comm))


def cells(comm, rows, points, **more):
    return Mesh.from_cells(rows, points, comm=comm, **more)


def edited(folder, name: str, old: bytes, new: bytes):
    content = (MESHES / name).read_bytes()
    assert content.count(old) >= 1
    return written(folder, name, content.replace(old, new, 1))


def disk(c, folder, old: bytes, new: bytes):
    return Mesh.from_file(edited(folder, "disk_tri.msh", old, new), c)


BAD = {
    "missing file": (lambda c, f: Mesh.from_file(f / "none.msh", c), "none.msh does not exist"),
    "folder as file": (lambda c, f: Mesh.from_file(f, c), "does not exist as a file"),
    "empty Gmsh file": (lambda c, f: Mesh.from_file(written(f, "empty.msh", b""), c), "not a Gmsh mesh"),
    "text as Gmsh file": (lambda c, f: Mesh.from_file(written(f, "text.msh", b"hello\n"), c), "not a Gmsh mesh"),
    "bytes as Gmsh file": (lambda c, f: Mesh.from_file(written(f, "raw.msh", bytes(range(256))), c), "not a Gmsh mesh"),
    "bad header": (lambda c, f: Mesh.from_file(written(f, "h.msh", b"$MeshFormat\nx y\n"), c), "damaged Gmsh header"),
    "no nodes": (
        lambda c, f: Mesh.from_file(written(f, "n.msh", b"$MeshFormat\n4.1 0 8\n$EndMeshFormat\n"), c),
        "n.msh",
    ),
    "cut Gmsh file": (
        lambda c, f: Mesh.from_file(cut(f, "regions.msh", 0.6), c),
        "regions.msh has a damaged section of nodes",
    ),
    "cut binary file": (lambda c, f: Mesh.from_file(cut(f, "regions_bin.msh", 0.6), c), "damaged section of nodes"),
    "two numbers in one": (
        lambda c, f: disk(c, f, b"\n0.9009688679024194", b"\n0.90.09"),
        "something else than numbers",
    ),
    "node tag twice": (lambda c, f: disk(c, f, b"\n28\n0.9", b"\n27\n0.9"), "two nodes have the same tag"),
    "too many nodes": (lambda c, f: disk(c, f, b"3 107 1 107", b"3 999999999 1 107"), "there are not 999999999 nodes"),
    "too long a block": (lambda c, f: disk(c, f, b"1 1 0 27\n", b"1 1 0 2700\n"), "damaged section of nodes"),
    "coordinate nan": (lambda c, f: disk(c, f, b"\n-1 1.898821519314986e-15", b"\n-1 nan"), "not a finite number"),
    "unknown node": (lambda c, f: disk(c, f, b"\n1 1 2 15 \n", b"\n1 1 200 15 \n"), "names a node that there is not"),
    "a corner twice": (
        lambda c, f: Mesh.from_file(written(f, "twice.msh", COLLAPSED), c),
        "Cell 0 names the same point twice",
    ),
    "opposite corners of a face alike": (
        lambda c, f: Mesh.from_file(written(f, "alike.msh", OPPOSITE), c),
        "Cell 0 names the same point twice",
    ),
    "a corner twice in a DM": (
        lambda c, f: Mesh(plex(c, (0, 0, 1, 2), [[0, 0], [1, 0], [1, 1]])),
        "A cell of the mesh has two corners in one vertex",
    ),
    "opposite corners of a face alike in a DM": (
        lambda c, f: Mesh(plex(c, (0, 1, 3, 1, 4, 5, 7, 6), CUBE)),
        "A cell of the mesh has two corners in one vertex",
    ),
    "unknown format": (
        lambda c, f: Mesh.from_file(written(f, "a.blah", b"x"), c),
        "unknown format '.blah'; known are .msh",
    ),
    "broken VTU": (lambda c, f: Mesh.from_file(written(f, "a.vtu", b"<VTK"), c), "cannot be read by meshio as '.vtu'"),
    "a line": (lambda c, f: Mesh.from_file(MESHES / "line.msh", c), "dimension 1; 2 and 3 are accepted"),
    "third order": (lambda c, f: Mesh.from_file(MESHES / "cubic.msh", c), "geometric order 3"),
    "second order elsewhere": (lambda c, f: Mesh.from_file(second_order(f), c), "type triangle6; straight"),
    "bent surface": (lambda c, f: Mesh.from_file(bent(f), c), "cells of dimension 2 in a space of dimension 3"),
    "surface in space": (lambda c, f: Mesh(surface(c)), "surfaces in space are not accepted: give a mesh of the plane"),
    "surface of PETSc's": (
        lambda c, f: with_options(c, dm_plex_shape="sphere"),
        "cells of dimension 2 in a space of dimension 3; surfaces in space are not accepted",
    ),
    "surface in a Gmsh file": (
        lambda c, f: disk(c, f, b"\n-1 1.898821519314986e-15 0", b"\n-1 1.898821519314986e-15 0.1"),
        "surfaces in space are not accepted",
    ),
    "surface of arrays": (lambda c, f: cells(c, [[0, 1, 2]], CUBE), "points have 3 coordinates .* surfaces in space"),
    "box of another border": (
        lambda c, f: with_options(c, dm_plex_box_bd="none,ghosted"),
        "-dm_plex_box_bd none,ghosted is given; give none or periodic for each direction",
    ),
    "no axis": (lambda c, f: Mesh.box((4, 4), periodic="z", comm=c), "periodic='z' is given; give names of axes"),
    "two cells along a period": (
        lambda c, f: Mesh.box((4, 2), periodic="y", comm=c),
        "Cell 0 is as long as half of the period; give three cells or more along it",
    ),
    "curved cells of a periodic mesh": (
        lambda c, f: Mesh.box((4, 4), periodic="x", comm=c).curved(lambda x: x),
        "A periodic mesh has straight cells; give a bounded mesh of one shape",
    ),
    "curved cells of several shapes": (
        lambda c, f: Mesh.from_cells(
            {"triangle": [[1, 2, 4]], "quadrilateral": [[0, 1, 3, 4]]}, [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1]], comm=c
        ).curved(lambda x: x),
        "A mesh of triangle and quadrilateral cells has straight cells; give a bounded mesh of one shape",
    ),
    "ends that do not match": (
        lambda c, f: Mesh.from_cells([[0, 1, 2]], [[0, 0], [1, 0], [0, 1]], periodic="x", comm=c),
        "the 2 and 1 points on the ends of the x axis do not lie opposite to each other",
    ),
    "periodic polytopes": (
        lambda c, f: Problem(Mesh.box((4, 4), periodic="x", comm=c), Physics({"u": 1}, "u"), backend="poly_gpu"),
        "The mesh is periodic, and polytopes are not; give a bounded one, or another -fe_backend",
    ),
    "another cell of boxes": (lambda c, f: with_options(c, dm_plex_cell="hexahedron"), "-dm_plex_simplex chooses"),
    "points of PETSc's box": (
        lambda c, f: with_options(c, dm_plex_label_wall="7,8"),
        "-dm_plex_label_wall 7,8 is not accepted where the mesh is a box; name boundaries",
    ),
    "one mesh of many": (
        lambda c, f: with_options(c, dm_plex_filename=str(wedge(f)), dm_plex_name="one"),
        "-dm_plex_name one is not accepted where the mesh is a file; meshio reads the whole",
    ),
    "PETSc's reader of HDF5": (
        lambda c, f: with_options(c, dm_plex_filename=str(wedge(f)), dm_plex_hdf5_topology_path="here"),
        "-dm_plex_hdf5_topology_path here is not accepted where the mesh is a file",
    ),
    "empty plex": (lambda c, f: Mesh(own_plex(c, 2)), "has no cells"),
    "1D plex": (lambda c, f: Mesh(own_plex(c, 1)), "dimension 1"),
    "other DM": (
        lambda c, f: Mesh(PETSc.DMDA().create([4, 4], comm=PETSc.Comm(c))),
        "of type 'da' was given; a DMPlex",
    ),
    "curved, refined": (
        lambda c, f: with_options(c, dm_plex_filename=str(MESHES / "disk_quad.msh"), dm_refine=1),
        "PETSc cannot refine .-dm_refine was given",
    ),
    "1D box": (lambda c, f: with_options(c, dm_plex_dim=1), "dimension 1 was asked for; 2 and 3"),
    "4D box": (lambda c, f: with_options(c, dm_plex_dim=4), "dimension 4 was asked for; 2 and 3"),
    "wrong number of faces": (
        lambda c, f: with_options(c, dm_plex_box_faces="4"),
        "dm_plex_box_faces is '4'; it takes 2",
    ),
    "no number of faces": (lambda c, f: with_options(c, dm_plex_box_faces="4,x"), "dm_plex_box_faces is '4,x'"),
    "no faces": (lambda c, f: with_options(c, dm_plex_box_faces="4,0"), "each direction takes 1 or more"),
    "no truth": (
        lambda c, f: with_options(c, dm_plex_simplex="maybe"),
        "dm_plex_simplex is 'maybe'; it takes true or false",
    ),
    "corners swapped": (lambda c, f: with_options(c, dm_plex_box_lower="2,2"), "give an upper corner above"),
    "endless corners": (lambda c, f: with_options(c, dm_plex_box_upper="inf,2"), "give an upper corner above"),
    "too many faces": (
        lambda c, f: with_options(c, dm_plex_box_faces="99999999,99999999"),
        r"2e\+16 cells was asked for; one rank makes at most 2.15e\+08",
    ),
    "refined for ever": (lambda c, f: with_options(c, dm_refine=30), "-dm_refine 30 would make .* cells"),
    "unknown shape": (lambda c, f: with_options(c, dm_plex_shape="egg"), "PETSc cannot set up this mesh"),
    "no volume": (
        lambda c, f: cells(c, [[0, 1, 2], [1, 2, 3]], [[0.0, 0], [1, 0], [0, 1], [2, -1]]),
        r"Cell \d \(centroid 1, 0\) is degenerate or inverted: it has no volume",
    ),
    "flat tetrahedron": (lambda c, f: cells(c, [[0, 1, 2, 3]], np.c_[SQUARE, np.zeros(4)]), "it has no volume"),
    "folded triangle": (
        lambda c, f: cells(c, [[0, 1, 2], [1, 2, 3]], [[0.0, 0], [1, 0], [0, 1], [0.2, 0.2]]),
        "same side of a facet as its neighbour, so one of the two is inverted",
    ),
    "folded tetrahedron": (
        lambda c, f: cells(
            c, [[0, 1, 2, 3], [1, 2, 3, 4]], [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.1, 0.1, 0.1]]
        ),
        "same side of a facet",
    ),
    "folded squares": (
        lambda c, f: cells(c, [[0, 1, 2, 3], [2, 3, 4, 5]], [*SQUARE, [0.1, 0.5], [0.9, 0.5]]),
        "same side of a facet",
    ),
    "folded cubes": (
        lambda c, f: cells(
            c, [range(8), [4, 5, 6, 7, 8, 9, 10, 11]], [*CUBE, *(np.array(CUBE[:4]) * 0.5 + [0.25, 0.25, 0.2])]
        ),
        "same side of a facet",
    ),
    "crossed square": (lambda c, f: cells(c, [[0, 1, 3, 2]], SQUARE), "Jacobian determinant runs from -"),
    "dented square": (lambda c, f: cells(c, [[0, 1, 2, 3]], [*SQUARE[:3], [0.2, 0.2]]), "determinant runs from -"),
    "twisted cube": (
        lambda c, f: cells(c, [[0, 1, 2, 3, 7, 6, 5, 4]], np.array(CUBE) * [1, 1, 0.2]),
        "determinant runs from -",
    ),
    "three cells on an edge": (
        lambda c, f: cells(c, [[0, 1, 2], [0, 1, 3], [0, 1, 4]], [*SQUARE, [0.4, -1.0]]),
        "two or more other cells",
    ),
    "point out of range": (lambda c, f: cells(c, [[0, 1, 7]], SQUARE), "name points 0 to 7; the array has 4 points"),
    "boundary of a point that no cell has": (
        lambda c, f: cells(c, [[0, 2, 3]], SQUARE, boundaries={"wall": [[1, 2]]}),
        "'wall' names point 1, which no cell has",
    ),
    "boundary counted from behind": (
        lambda c, f: cells(c, [[0, 1, 2]], SQUARE[:3], boundaries={"wall": [[0, -1]]}),
        "'wall' names -1 to 0; there are 3, counted from 0",
    ),
    "boundary of edges in one row": (
        lambda c, f: cells(c, [[0, 1, 2]], SQUARE[:3], boundaries={"wall": [0, 1]}),
        r"'wall' has the shape \(2,\); give an array \[facet, 2\]",
    ),
    "boundary without a name": (
        lambda c, f: cells(c, [[0, 1, 2]], SQUARE[:3], boundaries={None: [[0, 1]]}),
        "The boundaries have the name None; give a word",
    ),
    "name of PETSc's own": (
        lambda c, f: cells(c, [[0, 1, 2]], SQUARE[:3], regions={"depth": [0]}),
        "The cell regions have the name 'depth'; give a word that is none of PETSc's own",
    ),
    "boundaries as a list": (
        lambda c, f: cells(c, [[0, 1, 2]], SQUARE[:3], boundaries=[[0, 1]]),
        "The boundaries are given as a list; give a dict",
    ),
    "region by a mask": (
        lambda c, f: cells(c, [[0, 1, 2], [1, 2, 3]], SQUARE, regions={"west": [True, False]}),
        "'west' is not made of whole numbers .it has the type bool",
    ),
    "region out of range": (
        lambda c, f: cells(c, [[0, 1, 2]], SQUARE[:3], regions={"west": [1]}),
        "'west' names 1 to 1; there are 1, counted from 0",
    ),
    "cells as decimals": (
        lambda c, f: cells(c, [[0.0, 1.0, 2.0]], SQUARE[:3]),
        "cells is not made of whole numbers .it has the type float64",
    ),
    "points as words": (lambda c, f: cells(c, [[0, 1, 2]], [["a", "b"]] * 3), "array of points is not made of numbers"),
    "no cells in arrays": (lambda c, f: cells(c, np.empty((0, 3)), SQUARE), "The mesh has no cells"),
    "box of one number": (lambda c, f: Mesh.box(4, comm=c), "A box of 4 cells was asked for; give one whole"),
    "point twice": (lambda c, f: cells(c, [[0, 1, 1]], SQUARE), "Cell 0 names the same point twice"),
    "point not finite": (lambda c, f: cells(c, [[0, 1, 2]], [[0, 0], [1, np.nan], [0, 1]]), "Point 1 has coordinates"),
    "five points a cell": (lambda c, f: cells(c, [[0, 1, 2, 3, 0]], SQUARE), "Cells of 5 points in 2 dimensions"),
    "unknown shape name": (lambda c, f: cells(c, [[0, 1, 2]], SQUARE, cell="wedge"), "Cells of shape 'wedge'"),
    "facet of no cell": (
        lambda c, f: cells(c, [[0, 1, 2], [1, 2, 3]], SQUARE, boundaries={"cut": [[0, 3]]}),
        r"Boundary 'cut' names a facet with points \[0, 3\], which no cell has",
    ),
    "curved by numbers": (
        lambda c, f: Mesh.box((2, 2), comm=c).curved(0.1),
        "of nodes are given as 0.1; give a",
    ),
    "curved by one coordinate": (
        lambda c, f: Mesh.box((2, 2), comm=c).curved(lambda x: x[:, 0]),
        r"returned float64 of shape .\d+,. for places of shape .\d+, 2.; return real numbers of that shape",
    ),
    "curved to nowhere": (
        lambda c, f: Mesh.box((2, 2), comm=c).curved(lambda x: x + np.where(x[:, :1] + x[:, 1:] == 2, np.nan, 0)),
        r"returned nan at .1.0, 1.0.; return finite numbers",
    ),
    "curved and turned over": (
        lambda c, f: Mesh.box((2, 2), comm=c).curved(lambda x: x[:, ::-1] * [1, -1] * (x[:, :1] - 0.2)),
        "is degenerate or inverted",
    ),
    "unknown boundary": (
        lambda c, f: Mesh.box((2, 2), comm=c).boundary_facets("lid"),
        "no boundary called 'lid'; known here: 'bottom'",
    ),
    "unknown region": (
        lambda c, f: Mesh.box((2, 2), comm=c).cell_mask("iron"),
        "no cell region called 'iron'; known here: none",
    ),
}

assert not BAD.keys() & bad_polytopes.BAD.keys()
BAD |= bad_polytopes.BAD
