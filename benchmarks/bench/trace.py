"""Rows of the HDG trace matrix: assembly and products in dense block format and as element matrices.

The meshes are copies of a shaken tile and the matrices random, since times do not depend on values. Where cupy imports
and the device is NVIDIA's, cuSPARSE's product with the same blocks in CSR is the peer of each product. Rows
"congruent" are of uniform boxes, whose cells share a matrix for each shape.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
from mpi4py import MPI

from petsc_hdg.commands.bench import median_seconds
from petsc_hdg.device import Arrays
from petsc_hdg.device.halo import Halo
from petsc_hdg.discretizations.base import cell_fastest, padded
from petsc_hdg.discretizations.congruence import Shapes, same_geometry
from petsc_hdg.discretizations.dofmap import FieldSpace, build_dofmap
from petsc_hdg.discretizations.trace.element import TraceElement
from petsc_hdg.operators.trace.stores import create_format
from petsc_hdg.operators.vectors import TailedVector

from .cusparse import csr_seconds
from .group import Group, row_name
from .row import row
from .tiled import shaken_box, tiled_dofmap

# (cell, components, degrees): Poisson on each shape, then several components.
CASES = [
    ("triangle", 1, (1, 2, 3, 5, 8)),
    ("quadrilateral", 1, (1, 3, 5)),
    ("tetrahedron", 1, (1, 2, 3)),
    ("hexahedron", 1, (1, 2)),
    ("triangle", 4, (1, 3, 5)),
]
# Roca, Nguyen and Peraire 2011, table 1: 11 780 facets, n_c = 4; this box of triangles has 11 783.
ROCA_FACES, ROCA_COMPONENTS, ROCA_DEGREES = (58, 67), 4, (1, 2, 3, 4, 5)
# The same for congruent cells, where vectors are all that is moved.
CONGRUENT_CASES = [
    ("triangle", 1, (1, 2, 3, 5, 8)),
    ("quadrilateral", 1, (1, 3, 5)),
    ("tetrahedron", 1, (1, 2, 3)),
    ("hexahedron", 1, (1, 2)),
    ("triangle", 4, (1, 3)),
]
TILE_FACES = {
    "triangle": (128, 128),
    "quadrilateral": (128, 128),
    "tetrahedron": (16, 16, 16),
    "hexahedron": (16, 16, 16),
}
SMALL_FACES = {"triangle": (24, 24), "quadrilateral": (24, 24), "tetrahedron": (5, 5, 5), "hexahedron": (6, 6, 6)}
GPU_BYTES, CPU_BYTES = 1.5e9, 2e8  # of a matrix in dense block format
CONGRUENT_BYTES, CONGRUENT_FACETS = 6e9, 6e6  # most of these, on a GPU, so that vectors do not fit its cache
K_BYTES = 1.2e8  # of a tile of element matrices


def groups(device, given, copy):
    """Yield groups of bench rows, one for each numbering."""
    for degree in ROCA_DEGREES:
        yield _group(device, given, copy, "triangle", degree, ROCA_COMPONENTS, " (Roca)")
    for measurements, cases in ((MEASUREMENTS, CASES), (CONGRUENT, CONGRUENT_CASES)):
        for cell, components, degrees in cases:
            for degree in degrees:
                yield _group(device, given, copy, cell, degree, components, measurements=measurements)


def _group(device, given, copy, cell: str, degree: int, components: int, note: str = "", measurements=None) -> Group:
    measurements = measurements or MEASUREMENTS
    titled = [(f"trace {name}{note}", measure) for name, measure in measurements.items()]
    measures = {row_name(title, cell, degree, components): (title, measure) for title, measure in titled}

    def prepare(names) -> dict:
        disc = _made(device, given, cell, degree, components, roca=bool(note), uniform=measurements is CONGRUENT)
        return {name: partial(measures[name][1], measures[name][0], disc, device, given.repeat, copy) for name in names}

    return Group(tuple(measures), prepare)


def _made(device, given, cell: str, degree: int, components: int, roca: bool, uniform: bool = False) -> TraceCopies:
    arrays = Arrays(device, given.fe_precision)
    if roca:
        return TraceCopies(cell, degree, components, ROCA_FACES, arrays, lambda tile: 1)
    faces = TILE_FACES if device.is_gpu else SMALL_FACES

    def copies(tile) -> int:
        """Copies of a tile that give the cells asked for, or a matrix of the size that fills the device."""
        if given.cells:
            return round(given.cells / tile.mesh.num_cells)
        block = tile.space.element.num_facet_basis * components
        per_facet = 8 * (2 * tile.mesh.shape.num_facets - 1) * block**2
        facets = tile.dofmap.num_owned // block
        if uniform and device.is_gpu:
            return round(min(CONGRUENT_BYTES / per_facet, CONGRUENT_FACETS) / facets)
        return round((GPU_BYTES if device.is_gpu else CPU_BYTES) / (per_facet * facets))

    return TraceCopies(cell, degree, components, faces[cell], arrays, copies, 0.0 if uniform else 0.2)


class TraceCopies:
    """Operator and discretization in one: the trace numbering of copies of a tile, nothing essential.

    copies(tile): how many, from the tile's mesh, space and dofmap.   shaken: as in shaken_box, 0 for a uniform tile.
    """

    name = "hdg_gpu"
    repeats, diagonal_flops = True, 0

    def __init__(self, cell, degree, components, faces, arrays, copies, shaken: float = 0.2):
        mesh = self.tile = shaken_box(cell, faces, shaken)
        space = FieldSpace("u", TraceElement(cell, degree), components, 0, 0, 0)
        start, end = mesh.dm.getChart()
        dofmap = build_dofmap(mesh, (space,), np.zeros((end - start, components), dtype=bool))
        count = max(1, copies(SimpleNamespace(mesh=mesh, space=space, dofmap=dofmap)))
        self.spaces = (space,)
        self.dofmap = tiled_dofmap(dofmap, count)
        self.mesh = SimpleNamespace(num_cells=mesh.num_cells * count, comm=MPI.COMM_SELF, cell=cell, dim=mesh.dim)
        self.mesh.num_inner = self.mesh.num_facet_inner = self.mesh.num_cells
        self.stride = padded(self.mesh.num_cells)
        self.options = SimpleNamespace(degree=degree, precision=arrays.precision)
        self.physics = SimpleNamespace(num_components=components)
        self.discretization, self.arrays, self.device = self, arrays, arrays.device
        self.layout = None  # that of the first format, for the others
        self.halo = Halo(MPI.COMM_SELF, self.dofmap.num_owned, [], [], arrays)

    def cell_dofs(self) -> np.ndarray:
        """Compact numbers [dof, stride]."""
        return cell_fastest(self.dofmap.compact[self.dofmap.cell_dofs], self.stride)

    def filled(self, kind: str, symmetric: bool = False):
        """A format with random values, and the launch that hands it all tiles."""
        trace = create_format(kind, self, self.layout)
        trace.share(None)
        self.layout = trace.layout
        size = self.spaces[0].num_dofs
        count = max(32, min(self.stride, int(K_BYTES / (size**2 * self.arrays.real.itemsize)) // 32 * 32))
        K = np.random.default_rng(2).uniform(-1, 1, (size, count, size))
        K = self.arrays.to_device(K + K.transpose(2, 1, 0) if symmetric else K)
        cells = self.mesh.num_cells

        def fill():
            for first in range(0, cells, count):
                trace.add_tile(K, first, min(count, cells - first), count)

        fill()
        return trace, fill

    def congruent(self):
        """Element matrices with a random symmetric one for each shape of cell, handed over where they are read."""
        trace = create_format("element", self)
        cells, size = self.tile.num_cells, self.spaces[0].num_dofs
        one = same_geometry(self.tile.geometry, np.zeros(cells, dtype=np.int64), cells)
        trace.share(Shapes(np.tile(one.shape, self.mesh.num_cells // cells), one.representative))
        K = np.random.default_rng(2).uniform(-1, 1, (one.count, size, size))
        K += K.transpose(0, 2, 1)
        count = max(32, int(K_BYTES / (size**2 * self.arrays.real.itemsize)) // 32 * 32)
        for first in range(0, cells, count):
            tile = np.ascontiguousarray(K[one.shape[first : first + count]].transpose(2, 0, 1))
            trace.add_tile(self.arrays.to_device(tile), first, tile.shape[1], tile.shape[1])
        return trace


def product_row(kind: str, symmetric: bool):
    """A product. bytes_compulsory: the matrix and its indices as stored, unknowns · 2 reals."""

    def measure(title, disc, device, repeat, copy) -> dict:
        trace, _ = disc.filled(kind, symmetric)
        seconds, count = product_seconds(trace, disc, device, repeat), disc.dofmap.num_owned
        nbytes = trace.nbytes + 2 * count * disc.arrays.real.itemsize
        peer = csr_seconds(trace.layout, disc.arrays, repeat) if kind in ("dbf", "symmetric") else None
        return _row(title, disc, device, seconds, nbytes, trace.flops, copy, peer)

    return measure


def congruent_row(title, disc, device, repeat, copy) -> dict:
    """A product with a dictionary. bytes_compulsory: that, the facets' numbers, unknowns · 2 reals."""
    trace = disc.congruent()
    seconds = product_seconds(trace, disc, device, repeat)
    nbytes = trace.nbytes + 2 * disc.dofmap.num_owned * disc.arrays.real.itemsize
    peer = csr_seconds(trace.layout, disc.arrays, repeat)
    return _row(title, disc, device, seconds, nbytes, trace.flops, copy, peer)


def product_seconds(trace, disc, device, repeat) -> float:
    """Median seconds of a product of a format with TraceCopies."""
    count = disc.dofmap.num_owned
    x = TailedVector(disc)
    x.owned = disc.arrays.to_device(np.random.default_rng(3).uniform(-1, 1, count))
    y, ghost = disc.arrays.zeros(count), disc.arrays.zeros(1)
    return median_seconds(device, lambda: trace.mult(x, y, ghost), repeat)


def assembly_row(title, disc, device, repeat, copy) -> dict:
    """Element matrices in, dense blocks out. bytes_compulsory: both, and the layout's indices."""
    trace, fill = disc.filled("dbf")
    seconds = median_seconds(device, fill, repeat)
    entries = disc.mesh.num_cells * disc.spaces[0].num_dofs ** 2
    indices = 4 * (trace.layout.num_slots + 4) * trace.layout.num_facets + 4 * trace.layout.orientation.size
    nbytes = (entries + trace.matrix_reals) * disc.arrays.real.itemsize + indices
    return _row(title, disc, device, seconds, nbytes, entries, copy)


def _row(title, disc, device, seconds, nbytes, flops, copy, peer=None) -> dict:
    return row(
        kernel=title, discretization=disc, device=device, cells=disc.mesh.num_cells, dofs=disc.dofmap.num_owned,
        dof_kind="trace", seconds=seconds, nbytes=nbytes, flops=flops, copy=copy, peer=peer,
    )  # fmt: skip


MEASUREMENTS = {
    "dbf": product_row("dbf", False),
    "dbf assembly": assembly_row,
    "element": product_row("element", False),
    "symmetric": product_row("symmetric", True),
}
CONGRUENT = {"element congruent": congruent_row}
