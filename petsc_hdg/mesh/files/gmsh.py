"""Gmsh files through DMPlex: physical names become labels, second-order cells keep their curved nodes.

PETSc 3.18 reads second-order simplices cell by cell; their nodes become nodes of vertices and edges.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from petsc4py import PETSc

from ...errors import MeshError, collectively
from ...petsc import c_library
from ..labels import INTERNAL, mark, stratum_points, values_of
from ..second_order import set_nodes
from ..shapes import shape
from ..topology import Topology
from . import gmsh_check
from .meshio_file import flat

_HEADER_LINES, _HEADER_BYTES = 100_000, 1_000_000
_REMARKS = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s*\$Comments\b.*?\$EndComments[^\n]*\n)*", re.DOTALL)
_RESERVED = INTERNAL | {"Cell Sets", "Face Sets", "Edge Sets", "Vertex Sets"}  # names of labels that PETSc makes
# Where the vertices and the edge nodes are in the lexicographic order of the six or ten nodes of a cell.
_VERTICES = {2: (0, 2, 5), 3: (0, 2, 5, 9)}
_EDGES = {
    2: {(0, 2): 1, (0, 5): 3, (2, 5): 4},
    3: {(0, 2): 1, (0, 5): 3, (2, 5): 4, (0, 9): 6, (2, 9): 7, (5, 9): 8},
}


class UnreadableError(MeshError):
    """A file that PETSc's reader gives up, as it does of tetrahedra and prisms together."""


def read(path: Path, comm):
    """DMPlex with all cells on rank 0, labels by physical names, or numbers of groups without one. Raises MeshError."""
    with tempfile.TemporaryDirectory() as folder:
        with collectively(comm):
            plain = _without_remarks(path, Path(folder)) if comm.rank == 0 else path
        plain = comm.bcast(plain)
        try:
            return _read(plain, comm)
        except MeshError as error:
            raise type(error)(str(error).replace(str(plain), str(path))) from None


def _without_remarks(path: Path, folder: Path) -> Path:
    """The file, or a copy in the folder without the byte order mark and $Comments that stand before $MeshFormat, which
    PETSc's reader does not skip."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEADER_BYTES)
            remarks = _REMARKS.match(head).end()
            if not remarks:
                return path
            with open(folder / path.name, "wb") as copy:
                file.seek(remarks)
                shutil.copyfileobj(file, copy)
    except OSError as error:
        raise MeshError(f"Mesh file {path} cannot be read: {error.strerror}.") from None
    return folder / path.name


def _read(path: Path, comm):
    version, names = 0.0, {}
    with collectively(comm):
        if comm.rank == 0:
            version, names = _read_header(path)
            gmsh_check.check(path, version)
            if comm.size > 1:
                # PETSc reads on rank 0 while the others wait: an error would hang them. So rank 0 tries alone first.
                _check_flat(path, version)
    version, names = comm.bcast((version, names))
    with _options(version), collectively(comm):
        dm = _create(path, PETSc.Comm(comm))
        if comm.size == 1 and dm.getDimension() == 2:
            _check_flat(path, version)
    with _options(version, dm_plex_gmsh_highorder=False), collectively(comm):
        vertices = None
        if c_library.has_discontinuous_nodes(dm):
            straight = _create(path, PETSc.COMM_SELF)
            vertices = straight.getCoordinatesLocal().getArray().copy()
            straight.destroy()
    make_continuous(dm, vertices, comm)
    _name_groups(dm, names, comm)
    return dm


def _read_header(path: Path) -> tuple[float, dict[tuple[int, int], str]]:
    """Format version and physical names, (dimension, tag) → name, of a Gmsh file. Raises MeshError."""
    names: dict[tuple[int, int], str] = {}
    try:
        with open(path, "rb") as file:
            if file.readline().strip() != b"$MeshFormat":
                raise MeshError(
                    f"Mesh file {path} is not a Gmsh mesh: it does not begin with $MeshFormat; "
                    "write it with Gmsh as MSH 4.1 or 2.2."
                )
            version = float(file.readline().split()[0])
            inside = False
            for _, line in zip(range(_HEADER_LINES), file, strict=False):
                text = line.strip()
                if text in (b"$EndPhysicalNames", b"$Nodes", b"$Entities"):
                    break
                if inside and text.count(b'"') >= 2:
                    dim, tag = text.split(None, 2)[:2]
                    names[int(dim), int(tag)] = text.split(b'"')[1].decode(errors="replace")
                inside = inside or text == b"$PhysicalNames"
    except OSError as error:
        raise MeshError(f"Mesh file {path} cannot be read: {error.strerror}.") from None
    except (ValueError, IndexError):
        raise MeshError(
            f"Mesh file {path} has a damaged Gmsh header; write it again with Gmsh as MSH 4.1 or 2.2."
        ) from None
    reserved = sorted(_RESERVED.intersection(names.values()))
    if reserved:
        raise MeshError(
            f"Mesh file {path} has a physical group called '{reserved[0]}', which is a label of PETSc's own; rename it."
        )
    return version, names


@contextmanager
def _options(version: float, **more):
    """PETSc options of the reader, set where the user has not set them; `more` are set in any case.

    All tags of an element are physical groups in MSH 4, but only the first one in MSH 2.
    """
    options = PETSc.Options()
    wanted = {"dm_plex_gmsh_multiple_tags": version >= 4, "dm_plex_gmsh_use_generic": True}
    mine = {name: value for name, value in wanted.items() if not options.hasName(name)}
    before = {name: options.getString(name) if options.hasName(name) else None for name in more}
    for name, value in {**mine, **more}.items():
        options[name] = value
    try:
        yield
    finally:
        for name in mine:
            options.delValue(name)
        for name, value in before.items():
            if value is None:
                options.delValue(name)
            else:
                options[name] = value


def _check_flat(path: Path, version: float) -> None:
    """Read a file on this rank alone. Raises MeshError for a surface in space, whose third coordinates PETSc's reader
    leaves out unless it is told of them."""
    with _options(version, dm_plex_gmsh_spacedim=3):
        dm = _create(path, PETSc.COMM_SELF)
    if dm.getDimension() == 2:
        flat(dm.getCoordinatesLocal().getArray(readonly=True).reshape(-1, 3), 2, f"Mesh file {path}")
    dm.destroy()


def _create(path: Path, comm):
    try:
        return PETSc.DMPlex().createFromFile(str(path), interpolate=True, comm=comm)
    except PETSc.Error as error:
        raise UnreadableError(
            f"Mesh file {path} cannot be read as a Gmsh mesh ({c_library.reason(error)}); "
            "write it again with Gmsh as MSH 4.1 or 2.2, straight (-order 1) where its cells have several shapes."
        ) from None


def _name_groups(dm, names: dict[tuple[int, int], str], comm) -> None:
    """Make a label for each physical group of facets and of cells. Collective."""
    dim = dm.getDimension()
    groups = {}
    for sets, d in (("Cell Sets", dim), ("Face Sets", dim - 1)):
        for value in values_of(dm, sets):
            if value > 0:
                groups[names.get((d, int(value)), str(value)), int(value), sets] = stratum_points(dm, sets, int(value))
    for name, value, sets in comm.bcast(list(groups)):
        mark(dm, name, groups.get((name, value, sets), np.empty(0, np.int64)), value)


def make_continuous(dm, vertices: np.ndarray | None, comm) -> None:
    """Replace coordinates that are stored cell by cell; nothing happens if none are. Collective.

    vertices [vertex * dim]: coordinates of the vertices on the one rank that has the cells, None elsewhere.
    """
    if not any(comm.allgather(vertices is not None)):
        return
    of, blocks = shape(("triangle", "tetrahedron")[dm.getDimension() - 2]), None
    with collectively(comm):
        if vertices is not None:
            section, old = dm.getCoordinateSection(), dm.getCoordinatesLocal().getArray().copy()
            points = vertices.reshape(-1, of.dim)
            blocks = {0: points, 1: _edge_nodes(dm, of.dim, _cell_nodes(dm, section, old), points)}
    set_nodes(dm, of, blocks)


def _cell_nodes(dm, section, values: np.ndarray) -> np.ndarray:
    """Nodes in lexicographic order [cell, node, dim]. Raises MeshError unless the cells are of second order."""
    start, end = dm.getHeightStratum(0)
    dim = dm.getDimension()
    count = section.getDof(start) // dim
    if count != len(_VERTICES[dim]) + len(_EDGES[dim]):
        raise MeshError("The mesh has cells of geometric order 3 or more; order 1 or 2 is accepted (Gmsh: -order 2).")
    first = section.getOffset(start)
    return values[first : first + (end - start) * count * dim].reshape(-1, count, dim)


def _edge_nodes(dm, dim: int, nodes: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Node in the middle of each edge [edge, dim]; cells find their vertices among their nodes by equal coordinates."""
    s = shape("triangle" if dim == 2 else "tetrahedron")
    start, end = dm.getChart()
    topology = Topology(dm, (s,), np.ones(end - start, bool), np.arange(len(points)))
    corners = points[topology.cell_vertices]
    match = (nodes[:, _VERTICES[dim], None, :] == corners[:, None, :, :]).all(axis=3)  # [cell, position, vertex]
    if not (match.sum(axis=2) == 1).all():
        raise MeshError(
            "The second-order nodes of the mesh do not fit its vertices; write the file again with Gmsh as MSH 4.1."
        )
    local = match.argmax(axis=2)
    result = np.full((topology.num_entities(1), dim), np.nan)
    position = {lexicographic: i for i, lexicographic in enumerate(_VERTICES[dim])}
    for (a, b), node in _EDGES[dim].items():
        code = (1 << local[:, position[a]]) | (1 << local[:, position[b]])
        slot = s.slots[1][code].astype(np.int64)
        result[np.take_along_axis(topology.entity[1], slot[:, None], axis=1)[:, 0]] = nodes[:, node]
    return result
