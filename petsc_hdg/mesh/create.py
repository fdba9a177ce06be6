"""Ways to a mesh: options, boxes, files, arrays. Each gives a DMPlex with all cells on rank 0, or its points there, to
be prepared after.

PETSc's options that say how a mesh is made are served here, left to PETSc, or refused by name. They are read by
DMPlexCreateFromOptions_Internal of PETSc 3.18 to 3.26 and by the readers of files that it calls. Options of meshes that
exist (-dm_refine, -dm_distribute, -dm_plex_scale, -dm_plex_check_…) are PETSc's own at any rate.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from petsc4py import PETSc

from ..database import given_numbers, given_text, given_truth, is_given
from ..errors import MeshError, collectively
from ..value_checks import array, plural, reals, shown, truth
from ..value_checks import path as given_path
from . import cell_list
from .files import gmsh, meshio_file
from .partition.distribute import prepare as prepare
from .plex_points import PlexPoints
from .second_order import set_nodes
from .shapes import SHAPES, SURFACE, shape

_BY_SIZE = {(shape(name).dim, shape(name).num_vertices): name for name in SHAPES}
BOX = tuple(f"dm_plex_{name}" for name in "dim simplex box_faces box_lower box_upper box_bd".split())
STRAIGHT = "dm_plex_gmsh_highorder"  # false: cells of Gmsh files are straight
SERVED = ("dm_plex_filename", "dm_plex_shape", "dm_plex_name", "dm_plex_orient", "dm_plex_interpolate", STRAIGHT, *BOX)
# Each makes a mesh that is neither a box nor that of a file.
BY_PETSC = ("dm_plex_reference_cell_domain", "dm_plex_boundary_filename", "dm_plex_file_contents")
# What a box or a file does not obey: the value that changes nothing ("": none), and what to do.
_OF_BOTH = {
    "dm_plex_adj_cone": ("false", "the overlap has the cells that the scheme needs: leave it out"),
    "dm_plex_adj_closure": ("true", "the overlap has the cells that the scheme needs: leave it out"),
    "dm_plex_print_adj": ("0", "leave it out"),
    "dm_plex_label_": ("", "name boundaries and regions by fe.Mesh.from_cells"),
    "dm_plex_cohesive_label_": ("", "cohesive cells are not accepted: leave it out"),
}
_OF_BOXES = {
    "dm_plex_cell": ("", "-dm_plex_simplex chooses the cells of boxes"),
    "dm_plex_separate_marker": ("false", "sides are named left, right, bottom, top, front, back"),
    "dm_plex_box_crisscross": ("false", "-dm_plex_simplex splits squares along one diagonal: leave it out"),
}
_WHOLE = "meshio reads the whole file: leave it out"
_OF_FORMATS = {
    "dm_plex_name": ("", _WHOLE),
    "dm_plex_create_from_hdf5_xdmf": ("", _WHOLE),
    "dm_plex_hdf5_": ("", _WHOLE),
    "dm_plex_cgns_parallel": ("", _WHOLE),
    "dm_plex_geom_": ("", "meshes of CAD models are read from the files of their mesh generators"),
}
_OF_GMSH = {"dm_plex_gmsh_": ("", "physical groups are names of boundaries and regions in any case: leave it out")}
REFUSED = {"box": {**_OF_BOTH, **_OF_BOXES}, "Gmsh file": {**_OF_BOTH, **_OF_GMSH}, "file": {**_OF_BOTH, **_OF_FORMATS}}


def from_options(comm, prefix: str):
    """The mesh of PETSc's own options. Raises OptionError or MeshError."""
    with collectively(comm):
        by_petsc = left_to_petsc(prefix)
        if not by_petsc:
            refuse(prefix)
    if by_petsc:
        dm = PETSc.DMPlex().create(comm)
        dm.setOptionsPrefix(prefix)
        return dm
    if is_given(prefix, "dm_plex_filename"):
        dm = from_file(given_text(prefix, "dm_plex_filename", ""), comm)
    else:
        dm = _box_from_options(comm, prefix)
    return followed(dm, prefix, comm)


def _box_from_options(comm, prefix: str):
    with collectively(comm):
        (dim,) = given_numbers(prefix, "dm_plex_dim", (2,))
        simplex = given_truth(prefix, "dm_plex_simplex", True)
        cell_list.box_cell(dim, simplex)
        faces = given_numbers(prefix, "dm_plex_box_faces", (4 - dim,) * dim)
        lower = given_numbers(prefix, "dm_plex_box_lower", (0.0,) * dim)
        upper = given_numbers(prefix, "dm_plex_box_upper", (1.0,) * dim)
        periodic = _periodic(prefix, dim)
    return box(faces, simplex, lower, upper, comm, periodic)


def _periodic(prefix: str, dim: int) -> str:
    """Axes that -dm_plex_box_bd calls periodic. Raises MeshError."""
    given = given_text(prefix, "dm_plex_box_bd", "none").lower().split(",")
    if len(given) > dim or not set(given) <= {"none", "periodic"}:
        raise MeshError(
            f"-{prefix}dm_plex_box_bd {','.join(given)} is given; give none or periodic for each direction."
        )
    return "".join(axis for axis, kind in zip("xyz", given, strict=False) if kind == "periodic")


def box(faces, simplex: bool, lower, upper, comm, periodic: str = ""):
    """A box with named sides."""
    listed = None
    with collectively(comm):
        counts = reals("The number of cells of a box", faces, MeshError)
        if counts.ndim != 1 or not ((counts == np.rint(counts)) & (np.abs(counts) < cell_list.MOST_CELLS)).all():
            raise MeshError(
                f"A box of {shown(faces)} cells was asked for; give one whole number a direction, such as (8, 8)."
            )
        faces = counts.astype(int).tolist()
        cell = cell_list.box_cell(len(faces), truth("simplex", simplex, MeshError))
        lower, upper = (_corner(at, len(faces)) for at in (lower, upper))
        if comm.rank == 0:
            listed = cell_list.box_cells(faces, simplex, lower, upper).joined(periodic)
    points, facets = cell_list.points_of(listed, cell)
    if listed is not None:
        for name, found in cell_list.side_facets(facets, listed.points, lower, upper, listed.periods).items():
            points.mark([(name, 1)], points.start[points.shape.dim - 1] + found)
    return points


def _corner(given, dim: int) -> np.ndarray:
    """Corner [dim] of a box. Raises MeshError."""
    found = reals("A corner of a box", given, MeshError)
    if found.shape not in ((), (dim,)):
        raise MeshError(f"A corner of a box is given as {shown(given)}; give one number, or one a direction.")
    return np.broadcast_to(found, dim)


def from_cells(cells, points, boundaries, regions, cell, comm, periodic: str = ""):
    """A mesh from the arrays of rank 0."""
    listed = None
    with collectively(comm):
        if comm.rank == 0 and not isinstance(cells, Mapping):
            if cell is None:
                shapes = (array(what, given, MeshError).shape for what, given in (("Points", points), ("Cells", cells)))
                key = tuple((0, *found)[-1] for found in shapes)
                cell = _BY_SIZE.get(key)
                if key == (3, 3):
                    raise MeshError(f"Triangles whose points have 3 coordinates were given; {SURFACE}")
                if cell is None:
                    raise MeshError(
                        f"Cells of {plural(key[1], 'point')} in {plural(key[0], 'dimension')} were given; "
                        f"accepted are {', '.join(SHAPES)}."
                    )
            if not isinstance(cell, str) or cell not in SHAPES:
                raise MeshError(
                    f"Cells of shape {shown(cell)} were asked for; accepted shapes are {', '.join(SHAPES)}."
                )
            cells = {cell: cells}
        if comm.rank == 0:
            listed = cell_list.CellList(dict(cells), points, boundaries, regions).checked().joined(periodic)
    return from_list(listed, comm)


def from_list(listed: cell_list.CellList | None, comm):
    """A mesh from a checked list that rank 0 has."""
    cell = comm.bcast(getattr(listed, "cell", None))
    if cell is None:
        return cell_list.plex_of(listed, comm)
    points, facets = cell_list.points_of(listed, cell)
    nodes = None
    with collectively(comm):
        if listed is not None:
            cell_list.name_parts(points, facets, listed)
            nodes = cell_list.second_order_nodes(points, facets, listed) if listed.inside else None
    if not comm.bcast(nodes is not None):
        return points
    dm = points.plex(comm)
    set_nodes(dm, shape(cell), nodes)
    return dm


def from_file(path, comm):
    """A mesh file: Gmsh's, or of another format through meshio. Raises MeshError."""
    path = given_path("A mesh file", path, MeshError)
    with collectively(comm):
        if comm.rank == 0 and not path.is_file():
            raise MeshError(
                f"Mesh file {path} does not exist{' as a file' if path.exists() else ''}; give the path of a mesh file."
            )
    if path.suffix.lower() == ".msh":
        return from_read(lambda: gmsh.read(path, not given_truth("", STRAIGHT, True)), comm)
    return from_read(lambda: meshio_file.read(path), comm)


def from_meshio(given, comm, periodic: str = ""):
    """A mesh from the meshio.Mesh of rank 0. Raises MeshError."""
    return from_read(lambda: meshio_file.from_meshio(meshio_file.of_meshio(given), "A mesh of meshio"), comm, periodic)


def from_pyvista(given, comm):
    """A mesh from the PyVista data set of rank 0. Raises MeshError."""
    return from_read(lambda: meshio_file.from_meshio(meshio_file.of_pyvista(given), "A mesh of PyVista"), comm)


def from_read(read, comm, periodic: str = ""):
    """A mesh from the list that `read` gives on rank 0."""
    listed = None
    with collectively(comm):
        if comm.rank == 0:
            listed = read().checked().joined(periodic)
    return from_list(listed, comm)


def left_to_petsc(prefix: str) -> bool:
    """True if the options ask for a mesh that PETSc makes: neither a file nor a box."""
    if is_given(prefix, "dm_plex_filename"):
        return False
    shape = given_text(prefix, "dm_plex_shape", "box").lower()
    wanted = (name for name in BY_PETSC if is_given(prefix, name))
    return shape != "box" or any(name != BY_PETSC[0] or given_truth(prefix, name, False) for name in wanted)


def refuse(prefix: str) -> None:
    """Raise MeshError for a given option that the box or file of the options would not obey."""
    name = given_text(prefix, "dm_plex_filename", "")
    kind = "Gmsh file" if name.lower().endswith(".msh") else "file" if is_given(prefix, "dm_plex_filename") else "box"
    for given, text in PETSc.Options().getAll().items():
        for known, (harmless, remedy) in REFUSED[kind].items():
            if given == prefix + known or (known.endswith("_") and given.startswith(prefix + known)):
                if given != prefix + STRAIGHT and not _says_nothing(prefix, given[len(prefix) :], text or "", harmless):
                    said = f"-{given} {text or ''}".strip()
                    raise MeshError(f"{said} is not accepted where the mesh is a {kind}; {remedy}.")


def _says_nothing(prefix: str, name: str, text: str, harmless: str) -> bool:
    """True if a value is the harmless one, in each of the directions that it is given for."""
    if harmless in ("true", "false"):
        return given_truth(prefix, name, False) == (harmless == "true")
    return bool(harmless) and all(part.lower() == harmless for part in text.split(","))


def followed(made, prefix: str, comm):
    """The DM or PlexPoints of a box or file with -dm_plex_orient and -dm_plex_name applied, as PETSc does to its own.
    Collective."""
    orients, named = given_truth(prefix, "dm_plex_orient", False), is_given(prefix, "dm_plex_name")
    if isinstance(made, PlexPoints) and (orients or named):
        made = made.plex(comm)
    if named:
        made.setName(given_text(prefix, "dm_plex_name", ""))
    if orients:
        made.orient()
    return made
