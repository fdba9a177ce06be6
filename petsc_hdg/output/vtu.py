"""VTU files: high-order fields on high-order cells, one file for any number of ranks.

The file holds one `<Piece>` a rank. Each rank packs its own piece; rank 0 receives the pieces one at a time and appends
them, so that no rank holds more than its own piece and one other.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import OptionError, collectively
from ..given import path as given_path
from ..reference import ReferenceElement
from .arrays import cellwise, coordinates, element_for, named, nodal
from .atomic import atomic_file, check_target
from .encode import data_array
from .lagrange import MAX_DEGREE, to_vtk, vtk_type
from .transfer import pieces_in_rank_order

_HEAD = """<?xml version="1.0"?>
<VTKFile type="UnstructuredGrid" version="%s" byte_order="LittleEndian" header_type="UInt64"
 compressor="vtkZLibDataCompressor">
<UnstructuredGrid>
"""
_TAIL = b"</UnstructuredGrid>\n</VTKFile>\n"


def write_vtu(path, comm, cell: str, degree: int, points, fields, cell_data=None, facets: bool = False) -> Path:
    """Write one VTU file with the cells of all ranks, in rank order. Collective over `comm` (mpi4py). Returns its path.

    cell, degree: shape and degree of the nodes, which are those of ReferenceElement(cell, degree); degree ≥ 1.
    points [cell, node, dim]: places of the nodes of this rank's cells, in the mesh's length unit.
    fields: name → [cell, node] or [cell, node, component].   cell_data: name → [cell] or [cell, component].
    facets: the cells are facets ("interval", "triangle", "quadrilateral"), whose points have one dimension more.
    Fields of two components in the plane are written as vectors, their third component zero.

    Nodes are not merged, so a field may jump between cells. The cells are VTK's Lagrange cells (linear ones for degree
    1), whose nodes are equispaced, of degree 10 at most: values of higher degree are sampled. Cells of negative
    orientation are turned over, so that every cell of the file is positive.
    Raises OptionError on all ranks for arrays that do not fit, names that differ between ranks, or a path that cannot
    be written; no partial file is left.
    """
    path, piece, signature = given_path("The VTU file", path), b"", None
    with collectively(comm):
        element = element_for(cell, degree, facets)
        points = coordinates(points, element, facets=facets)
        fields = {name: nodal(name, of, element, len(points)) for name, of in named("fields", fields).items()}
        cell_data = {name: cellwise(name, of, len(points)) for name, of in named("cell_data", cell_data or {}).items()}
        signature = [(name, of.shape[-1]) for name, of in (*fields.items(), *cell_data.items())]
        if comm.rank == 0:
            check_target(path, ".vtu")
        if len(points) or comm.rank == 0:
            piece = _piece(element, points, fields, cell_data)
    _agree(comm, signature)
    with collectively(comm):
        _append(path, comm, _head(element), piece)
    return path


def _agree(comm, signature: list[tuple[str, int]]) -> None:
    """Raise OptionError on all ranks unless all ranks write the same names with as many components."""
    expected = comm.bcast(signature)
    with collectively(comm):
        if signature != expected:
            given = f"Rank {comm.rank} writes {signature}, rank 0 {expected}"
            raise OptionError(f"{given}; give all ranks the same names and components.")


def _append(path: Path, comm, head: bytes, piece: bytes) -> None:
    """Write head, pieces and tail on rank 0. All pieces are received even if the file cannot be written."""
    pieces = pieces_in_rank_order(comm, piece)
    try:
        if comm.rank == 0:
            with atomic_file(path) as file:
                file.write(head)
                file.writelines(pieces)
                file.write(_TAIL)
    finally:
        for _ in pieces:
            pass


def _head(element: ReferenceElement) -> bytes:
    """The beginning of the file. Only version 2.2 has the nodes of Lagrange hexahedra in VTK's present order; for the
    others the older version says the same to more readers.
    """
    return (_HEAD % ("2.2" if element.cell == "hexahedron" and element.degree > 1 else "1.0")).encode()


def _piece(element: ReferenceElement, points: np.ndarray, fields: dict, cell_data: dict) -> bytes:
    """The `<Piece>` of this rank's cells."""
    degree = min(element.degree, MAX_DEGREE)
    sample = _Sampling(element, degree, points)
    num_cells, num_nodes = len(points), len(sample.straight)
    parts = [b'<Piece NumberOfPoints="%d" NumberOfCells="%d">\n' % (num_cells * num_nodes, num_cells), b"<PointData>\n"]
    parts += [data_array(name, sample(of)) for name, of in fields.items()]
    parts += [b"</PointData>\n<CellData>\n"]
    parts += [data_array(name, _padded(of, points.shape[2])) for name, of in cell_data.items()]
    parts += [b"</CellData>\n<Points>\n", data_array("Points", sample(points)), b"</Points>\n<Cells>\n"]
    parts += [
        data_array("connectivity", np.arange(num_cells * num_nodes, dtype=np.int64)),
        data_array("offsets", num_nodes * np.arange(1, num_cells + 1, dtype=np.int64)),
        data_array("types", np.full(num_cells, vtk_type(element.cell, degree), np.uint8)),
        b"</Cells>\n</Piece>\n",
    ]
    return b"".join(parts)


class _Sampling:
    """Values at the nodes of VTK's cells, each laid into our cell so that its orientation is positive."""

    def __init__(self, element: ReferenceElement, degree: int, points: np.ndarray):
        """points [cell, node, dim]: they tell the cells' orientation; facets have none."""
        self.dim = points.shape[2]
        self.straight = to_vtk(element.cell, element.degree, degree)
        if self.dim == element.dim:
            self.mirrored = to_vtk(element.cell, element.degree, degree, mirrored=True)
            self.negative = _negative(element, points)
        else:
            self.mirrored, self.negative = self.straight, np.zeros(len(points), bool)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Values [cell · VTK node, component] from [cell, node, component]; vectors are padded to three components."""
        found = self.straight @ values
        found[self.negative] = self.mirrored @ values[self.negative]
        return _padded(found.reshape(-1, values.shape[-1]), self.dim)


def _negative(element: ReferenceElement, points: np.ndarray) -> np.ndarray:
    """Cells [cell] bool whose map has a negative determinant at the mean of the nodes."""
    gradients = element.tabulate(element.nodes.mean(axis=0, keepdims=True), 1)[1:, 0]
    return np.linalg.det(gradients @ points) < 0


def _padded(values: np.ndarray, dim: int) -> np.ndarray:
    """Rows [row, component] with a third component of zero if there are two, in 2D."""
    return np.pad(values, ((0, 0), (0, 1))) if dim == values.shape[-1] == 2 else values
