"""Ways to a mesh: options, boxes, files, arrays. Each gives a DMPlex with all cells on rank 0, or its points there, to
be prepared after."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ..errors import MeshError, collectively
from ..options import given_numbers, given_text, given_truth, is_given
from ..value_checks import array, plural, reals, shown, truth
from ..value_checks import path as given_path
from . import creation
from .box import MOST_CELLS, box_cell, box_cells, side_facets
from .cell_list import CellList, name_parts, points_of
from .files import gmsh, meshio_file
from .partition.distribute import prepare as prepare
from .shapes import CELLS, SURFACE

_BY_SIZE = {(2, 3): "triangle", (2, 4): "quadrilateral", (3, 4): "tetrahedron", (3, 8): "hexahedron"}


def from_options(comm, prefix: str):
    """The mesh of PETSc's own options. Raises OptionError or MeshError."""
    with collectively(comm):
        by_petsc = creation.left_to_petsc(prefix)
        if not by_petsc:
            creation.refuse(prefix)
    if by_petsc:
        dm = PETSc.DMPlex().create(comm)
        dm.setOptionsPrefix(prefix)
        return dm
    if is_given(prefix, "dm_plex_filename"):
        dm = from_file(given_text(prefix, "dm_plex_filename", ""), comm)
    else:
        dm = _box_from_options(comm, prefix)
    return creation.followed(dm, prefix, comm)


def _box_from_options(comm, prefix: str):
    with collectively(comm):
        (dim,) = given_numbers(prefix, "dm_plex_dim", (2,))
        simplex = given_truth(prefix, "dm_plex_simplex", True)
        box_cell(dim, simplex)
        faces = given_numbers(prefix, "dm_plex_box_faces", (4 - dim,) * dim)
        lower = given_numbers(prefix, "dm_plex_box_lower", (0.0,) * dim)
        upper = given_numbers(prefix, "dm_plex_box_upper", (1.0,) * dim)
    return box(faces, simplex, lower, upper, comm)


def box(faces, simplex: bool, lower, upper, comm):
    """A box with named sides."""
    listed = None
    with collectively(comm):
        counts = reals("The number of cells of a box", faces, MeshError)
        if counts.ndim != 1 or not ((counts == np.rint(counts)) & (np.abs(counts) < MOST_CELLS)).all():
            raise MeshError(
                f"A box of {shown(faces)} cells was asked for; give one whole number a direction, such as (8, 8)."
            )
        faces = counts.astype(int).tolist()
        cell = box_cell(len(faces), truth("simplex", simplex, MeshError))
        lower, upper = (_corner(at, len(faces)) for at in (lower, upper))
        if comm.rank == 0:
            listed = box_cells(faces, simplex, lower, upper)
            listed.cells = listed.cells.astype(PETSc.IntType, copy=False)
    points, facets = points_of(listed, cell)
    if listed is not None:
        for name, found in side_facets(facets, listed.points, lower, upper).items():
            points.mark(name, points.start[points.shape.dim - 1] + found)
    return points


def _corner(given, dim: int) -> np.ndarray:
    """Corner [dim] of a box. Raises MeshError."""
    found = reals("A corner of a box", given, MeshError)
    if found.shape not in ((), (dim,)):
        raise MeshError(f"A corner of a box is given as {shown(given)}; give one number, or one a direction.")
    return np.broadcast_to(found, dim)


def from_cells(cells, points, boundaries, regions, cell, comm):
    """A mesh from the arrays of rank 0."""
    listed = None
    with collectively(comm):
        if comm.rank == 0:
            if cell is None:
                shapes = (array(what, given, MeshError).shape for what, given in (("Points", points), ("Cells", cells)))
                key = tuple((0, *found)[-1] for found in shapes)
                cell = _BY_SIZE.get(key)
                if key == (3, 3):
                    raise MeshError(f"Triangles whose points have 3 coordinates were given; {SURFACE}")
                if cell is None:
                    raise MeshError(
                        f"Cells of {plural(key[1], 'point')} in {plural(key[0], 'dimension')} were given; "
                        f"accepted are {', '.join(CELLS)}."
                    )
            if not isinstance(cell, str) or cell not in CELLS:
                raise MeshError(f"Cells of shape {shown(cell)} were asked for; accepted shapes are {', '.join(CELLS)}.")
            listed = CellList(cell, cells, points, boundaries, regions).checked()
    return from_list(listed, comm)


def from_list(listed: CellList | None, comm):
    """A mesh from a checked list that rank 0 has."""
    cell = comm.bcast(listed.cell if listed else None)
    points, facets = points_of(listed, cell)
    with collectively(comm):
        if listed is not None:
            name_parts(points, facets, listed)
    return points


def from_file(path, comm):
    """A mesh file: Gmsh through PETSc, other formats through meshio. Raises MeshError."""
    path = given_path("A mesh file", path, MeshError)
    with collectively(comm):
        if comm.rank == 0 and not path.is_file():
            raise MeshError(
                f"Mesh file {path} does not exist{' as a file' if path.exists() else ''}; give the path of a mesh file."
            )
    if path.suffix.lower() == ".msh":
        return gmsh.read(path, comm)
    return from_read(lambda: meshio_file.read(path), comm)


def from_meshio(given, comm):
    """A mesh from the meshio.Mesh of rank 0. Raises MeshError."""
    return from_read(lambda: meshio_file.from_meshio(meshio_file.of_meshio(given), "A mesh of meshio"), comm)


def from_pyvista(given, comm):
    """A mesh from the PyVista data set of rank 0. Raises MeshError."""
    return from_read(lambda: meshio_file.from_meshio(meshio_file.of_pyvista(given), "A mesh of PyVista"), comm)


def from_read(read, comm):
    """A mesh from the list that `read` gives on rank 0."""
    listed = None
    with collectively(comm):
        if comm.rank == 0:
            listed = read().checked()
    return from_list(listed, comm)
