"""VTU files: high-order fields on high-order cells, one file for any number of ranks.

The file holds one `<Piece>`, in whose arrays the ranks' parts follow one another. Each rank compresses its own parts;
rank 0 receives them one at a time and appends them, so that no rank holds more than its own parts and one other.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from ..errors import OptionError, collectively
from ..reference import ReferenceElement
from ..value_checks import path as given_path
from .arrays import cellwise, coordinates, element_for, named, nodal, pieces_in_rank_order, whole_blocks
from .atomic import atomic_file, check_target
from .lagrange import LAGRANGE_TYPE, MAX_DEGREE, STRAIGHT, to_vtk, vtk_type

_HEAD = """<?xml version="1.0"?>
<VTKFile type="UnstructuredGrid" version="%s" byte_order="LittleEndian" header_type="UInt64"
 compressor="vtkZLibDataCompressor">
<UnstructuredGrid>
"""
_TAIL = b"</UnstructuredGrid>\n</VTKFile>\n"
BLOCK = 1 << 20  # bytes compressed at a time; ParaView unpacks blocks one by one
_LEVEL = 4
_TYPES = {"f8": "Float64", "i4": "Int32", "i8": "Int64", "u1": "UInt8"}
TAIL = b"</DataArray>\n"


def write_vtu(
    path, comm, cell: str, degree: int, points, fields, cell_data=None, facets: bool = False, more=()
) -> Path:
    """Write one VTU file with the cells of all ranks, in rank order. Collective over `comm` (mpi4py). Returns its path.

    cell, degree: shape and degree of the nodes, which are those of ReferenceElement(cell, degree); degree ≥ 1.
    points [cell, node, dim]: places of the nodes of this rank's cells, in the mesh's length unit.
    fields: name → [cell, node] or [cell, node, component].   cell_data: name → [cell] or [cell, component].
    more: the same five, cell to cell_data, of cells of other shapes; prisms and pyramids are written straight, and then
    so are all.
    facets: the cells are facets ("interval", "triangle", "quadrilateral"), whose points have one dimension more.
    Fields of two components in the plane are written as vectors, their third component zero.

    Nodes are not merged, so a field may jump between cells. The cells are VTK's Lagrange cells (linear ones for degree
    1), whose nodes are equispaced, of degree 10 at most: values of higher degree are sampled. Cells of negative
    orientation are turned over, so that every cell of the file is positive.
    Raises OptionError on all ranks for arrays that do not fit, names that differ between ranks, or a path that cannot
    be written; no partial file is left.
    """
    path, parts, blocks = given_path("The VTU file", path), [], []
    with collectively(comm):
        blocks = [_Block.of(*each, facets) for each in ((cell, degree, points, fields, cell_data), *more)]
        if comm.rank == 0:
            check_target(path, ".vtu")
    _agree(comm, [block.signature for block in blocks])
    cell_data = _of_one_type(comm, _joined(block.cell_data for block in blocks))
    with collectively(comm):
        most = min(STRAIGHT.get(block.element.cell, MAX_DEGREE) for block in blocks)
        samples = [Sampling(block.element, min(block.element.degree, most), block.points) for block in blocks]
        sizes = np.repeat([len(sample.straight) for sample in samples], [len(block.points) for block in blocks])
    before = np.array(comm.allgather((int(sizes.sum()), len(sizes))))
    with collectively(comm):
        parts = _parts(blocks, samples, cell_data, sizes, before, comm.rank)
    parts = [part if isinstance(part, bytes) else _Packed.of(comm, *part) for part in parts]
    with collectively(comm):
        _write(path, comm, _stream(comm, [_head(samples), *parts, _TAIL]))
    return path


@dataclass(frozen=True)
class _Block:
    """Cells of one shape: points [cell, node, dim], fields [cell, node, component], cell_data [cell, component]."""

    element: ReferenceElement
    points: np.ndarray
    fields: dict[str, np.ndarray]
    cell_data: dict[str, np.ndarray]

    @classmethod
    def of(cls, cell: str, degree: int, points, fields, cell_data, facets: bool) -> _Block:
        """The block of the arguments of `write_vtu`, checked. Raises OptionError."""
        element = element_for(cell, degree, facets)
        points = coordinates(points, element, facets=facets)
        fields = {name: nodal(name, of, element, len(points)) for name, of in named("fields", fields).items()}
        cell_data = {name: cellwise(name, of, len(points)) for name, of in named("cell_data", cell_data or {}).items()}
        return cls(element, points, fields, cell_data)

    @property
    def signature(self) -> list[tuple[str, int]]:
        """Names and numbers of components."""
        return [(name, of.shape[-1]) for name, of in (*self.fields.items(), *self.cell_data.items())]


def _joined(of_blocks: Iterable[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Arrays by name of all blocks, one below the other."""
    first, *others = of_blocks
    return {name: np.concatenate([of, *(other[name] for other in others)]) for name, of in first.items()}


def _agree(comm, signatures: list[list[tuple[str, int]]]) -> None:
    """Raise OptionError on all ranks unless all ranks write the same names with as many components."""
    expected = comm.bcast(signatures[0])
    with collectively(comm):
        for signature in (found for found in signatures if found != expected):
            given = f"Rank {comm.rank} writes {signature}, rank 0 {expected}"
            raise OptionError(f"{given}; give all ranks the same names and components.")


def _write(path: Path, comm, stream: Iterator[bytes]) -> None:
    """Write what the stream yields, on rank 0. It runs to its end even if the file cannot be written."""
    try:
        if comm.rank == 0:
            with atomic_file(path) as file:
                file.writelines(stream)
    finally:
        for _ in stream:
            pass


@dataclass(frozen=True)
class _Packed:
    """This rank's blocks of an array of all ranks: its opening tag, its bytes on all ranks, and the packed blocks."""

    head: bytes
    total: int
    blocks: list[bytes]

    @classmethod
    def of(cls, comm, name: str, values: np.ndarray) -> _Packed:
        """The array whose part on this rank is `values` [row] or [row, component]. Collective."""
        data = values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
        total, whole = comm.allreduce(len(data)), whole_blocks(comm, data, BLOCK)
        blocks = [zlib.compress(whole[start : start + BLOCK], _LEVEL) for start in range(0, len(whole), BLOCK)]
        return cls(array_head(name, values), total, blocks)


def _stream(comm, parts: list[bytes | _Packed]) -> Iterator[bytes]:
    """The bytes of the file, in order, on rank 0; others send theirs and yield nothing. Collective, to its end."""
    for part in parts:
        if isinstance(part, bytes):
            if comm.rank == 0:
                yield part
            continue
        sizes = comm.gather([len(block) for block in part.blocks])
        packed = pieces_in_rank_order(comm, b"".join(part.blocks))
        if comm.rank == 0:
            yield part.head + blocks_head([size for of in sizes for size in of], part.total)
            yield from in_base64(packed)
            yield TAIL
        else:
            yield from packed


def _head(samples: list[Sampling]) -> bytes:
    """The beginning of the file. Only version 2.2 has the nodes of Lagrange hexahedra in VTK's present order; for the
    others the older version says the same to more readers.
    """
    is_new = any(sample.kind == LAGRANGE_TYPE["hexahedron"] for sample in samples)
    return (_HEAD % ("2.2" if is_new else "1.0")).encode()


def _of_one_type(comm, cell_data: dict) -> dict:
    """Arrays of cells as floats where a rank has floats. Collective."""
    found = comm.allgather({name: of.dtype for name, of in cell_data.items() if len(of)})
    types = {name: [of[name] for of in found if name in of] for name in cell_data}
    return {name: of.astype(np.result_type(*types[name])) if types[name] else of for name, of in cell_data.items()}


def _parts(blocks: list[_Block], samples: list[Sampling], cell_data: dict, sizes, counts, rank: int) -> list:
    """The `<Piece>` of all ranks' cells as text and this rank's parts (name, values) of its arrays.

    sizes [cell]: nodes of this rank's cells.   counts [rank, 2]: nodes and cells of each rank.
    """
    num_nodes, num_cells = counts.sum(axis=0)
    ends = counts[:rank, 0].sum() + np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    pairs = list(zip(blocks, samples, strict=True))
    fields = _joined({name: sample(of) for name, of in block.fields.items()} for block, sample in pairs)
    return [
        b'<Piece NumberOfPoints="%d" NumberOfCells="%d">\n<PointData>\n' % (num_nodes, num_cells),
        *fields.items(),
        b"</PointData>\n<CellData>\n",
        *((name, padded(of, samples[0].dim)) for name, of in cell_data.items()),
        b"</CellData>\n<Points>\n",
        ("Points", np.concatenate([sample(block.points) for block, sample in pairs])),
        b"</Points>\n<Cells>\n",
        ("connectivity", np.arange(ends[0], ends[-1], dtype=np.int64)),
        ("offsets", ends[1:]),
        ("types", np.concatenate([np.full(len(block.points), sample.kind, np.uint8) for block, sample in pairs])),
        b"</Cells>\n</Piece>\n",
    ]


class Sampling:
    """Values at the nodes of VTK's cells, each laid into our cell so that its orientation is positive."""

    def __init__(self, element: ReferenceElement, degree: int, points: np.ndarray):
        """points [cell, node, dim]: they tell the cells' orientation; facets have none."""
        self.dim, self.kind = points.shape[2], vtk_type(element.cell, degree)
        self.straight = to_vtk(element.cell, element.degree, degree)
        if self.dim == element.dim:
            self.mirrored = to_vtk(element.cell, element.degree, degree, mirrored=True)
            self.negative = negative_cells(element, points)
        else:
            self.mirrored, self.negative = self.straight, np.zeros(len(points), bool)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Values [cell · VTK node, component] from [cell, node, component]; vectors are padded to three components."""
        found = self.straight @ values
        found[self.negative] = self.mirrored @ values[self.negative]
        return padded(found.reshape(-1, values.shape[-1]), self.dim)


def negative_cells(element: ReferenceElement, points: np.ndarray) -> np.ndarray:
    """Cells [cell] bool whose map has a negative determinant at the mean of the nodes."""
    gradients = element.tabulate(element.nodes.mean(axis=0, keepdims=True), 1)[1:, 0]
    return np.linalg.det(gradients @ points) < 0


def padded(values: np.ndarray, dim: int) -> np.ndarray:
    """Rows [row, component] with a third component of zero if there are two, in 2D."""
    return np.pad(values, ((0, 0), (0, 1))) if dim == values.shape[-1] == 2 else values


def array_head(name: str, values: np.ndarray) -> bytes:
    """The opening tag of an array like `values` [row] or [row, component]."""
    components = "" if values.ndim == 1 else f' NumberOfComponents="{values.shape[1]}"'
    kind = _TYPES[values.dtype.newbyteorder("<").str[1:]]
    return f'<DataArray type="{kind}" Name="{escape(name)}"{components} format="binary">'.encode()


def blocks_head(packed: list[int], total: int) -> bytes:
    """VTK's header of an array of `total` bytes: number of blocks, block size, size of a short last block, and the
    packed sizes [block]."""
    return base64.b64encode(np.array([len(packed), BLOCK, total % BLOCK, *packed], "<u8").tobytes())


def in_base64(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The base64 text of chunks laid end to end."""
    rest = b""
    for chunk in chunks:
        data = rest + chunk
        whole = len(data) // 3 * 3
        rest = data[whole:]
        yield base64.b64encode(data[:whole])
    yield base64.b64encode(rest)
