"""Rows of the scheme poly_gpu: matrices of polytopes by kernels, their index sets, and whole; products.

Meshes are shaken boxes of triangles and tetrahedra, agglomerated to polytopes of 1, 4 and 60 of them (x1, x4, x60); the
physics is advection-diffusion-reaction with variable coefficients. Each approach, 2 of the library and 1 of
triplets.py, gets a mesh on which it writes so many values: rates are comparable, seconds are not.
"""

from __future__ import annotations

import time
from functools import cache, lru_cache, partial

import numpy as np

from petsc_hdg.commands.bench import median_seconds
from petsc_hdg.device import Arrays
from petsc_hdg.discretizations.poly.legendre import num_basis
from petsc_hdg.discretizations.poly.matrix import Items
from petsc_hdg.discretizations.poly.scheme import PolytopicDG
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.mesh import agglomerate
from petsc_hdg.operators.assembled import AssembledMatrix
from petsc_hdg.operators.poly.operator import PolytopicOperator
from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Physics

from .cusparse import product_seconds
from .group import Group, row_name
from .peak import arithmetic_peak
from .row import row
from .tiled import shaken_box
from .triplets import TripletDG

GPU_CASES = [("triangle", (1, 2, 3, 4, 5)), ("tetrahedron", (1, 2, 3, 4, 5))]
CPU_CASES = [("triangle", (1, 3, 5)), ("tetrahedron", (1, 3))]
FACTORS = (1, 4, 60)  # base cells of a polytope
APPROACHES = {"2": PolytopicDG, "1": TripletDG}
GPU_VALUES, CPU_VALUES = 5e7, 1e6  # of a matrix, or of its triplets
GPU_CELLS, CPU_CELLS = 4e5, 8e3  # at most, of the base mesh
FEWEST = 4  # polytopes
NEIGHBOURS = {"triangle": {1: 3, 4: 5, 60: 6}, "tetrahedron": {1: 4, 4: 8, 60: 13}}  # of a polytope, about
PARTS = ("element kernel", "facet kernel", "indices", "fill", "total")
KERNELS = {"element kernel": "volume", "facet kernel": "facets", "boundary kernel": "boundary"}  # and part of a run
PRODUCTS = ("product", "AIJ product")  # matrix-free; by the assembled matrix, on the host


def reaction_advection_diffusion() -> Physics:
    """-∇·((1 + x₀) ∇u) + w·∇u + (1 + x₀ x₁) u = 1 with w = (1, x₀, …), u = 0 on the boundary."""
    return Physics(
        {"u": 1},
        f0="f0[0] = u_x[0] + x[0]*u_x[1] + (1 + x[0]*x[1])*u[0] - 1;",
        f1="for (d = 0; d < dim; ++d) f1[d] = (1 + x[0])*u_x[d];",
        boundary=[Dirichlet("boundary", "g[0] = 0;")],
        name="reaction-advection-diffusion",
    )


def groups(device, given, copy):
    """Yield groups of bench rows, one for each mesh and approach."""
    peak = cache(lambda: arithmetic_peak(device, given.fe_precision))
    for cell, degrees in GPU_CASES if device.is_gpu else CPU_CASES:
        for degree in degrees:
            for factor in FACTORS:
                for approach in APPROACHES:
                    parts = [*PARTS, *(PRODUCTS if approach == "2" else ())]
                    kernels = {part: f"poly {part}, {approach}, x{factor}" for part in parts}
                    titles = {row_name(kernels[part], cell, degree): (kernels[part], part) for part in parts}
                    case = (cell, degree, factor, approach)
                    yield Group(tuple(titles), partial(_prepare, device, given, copy, peak, case, titles))


@lru_cache(maxsize=2)
def _mesh(cell: str, side: int):
    return shaken_box(cell, (side,) * (2 if cell == "triangle" else 3))


def agglomerated(cell: str, wanted: float, factor: int):
    """A mesh of about so many base cells, with polytopes of `factor` of them."""
    dim, pieces = (2, 2) if cell == "triangle" else (3, 6)
    side = max(2, round((max(wanted, FEWEST * factor) / pieces) ** (1 / dim)))
    mesh = _mesh(cell, side)
    mesh.polytopes = None
    return mesh if factor == 1 else agglomerate(mesh, max(1, round(mesh.num_cells / factor)))


def num_cells(device, cell: str, degree: int, factor: int, approach: str) -> float:
    """Base cells for which an approach writes as many values as the device is given."""
    dim = 2 if cell == "triangle" else 3
    size = num_basis(dim, degree, "total") ** 2
    per_cell = (2 * dim + 3 if approach == "1" else (1 + NEIGHBOURS[cell][factor]) / factor) * size
    fitting = (GPU_VALUES if device.is_gpu else CPU_VALUES) / per_cell
    return min(fitting, GPU_CELLS if device.is_gpu else CPU_CELLS)


def operator_on(mesh, physics, device, precision: str, degree: int, approach: str) -> PolytopicOperator:
    """The operator on a mesh, linearized at zero."""
    limits = DeviceLimits.of(device)
    options = Options(degree=degree, precision=precision, backend="poly_gpu")
    op = PolytopicOperator(APPROACHES[approach](mesh, physics, options, limits), Arrays(device, precision))
    op.linearize(op.arrays.zeros(op.dofmap.num_owned))
    return op


def _prepare(device, given, copy, peak, case: tuple, titles: dict, names) -> dict:
    """Measurements on one mesh by one approach; titles: name → the kernel's and the part's."""
    cell, degree, factor, approach = case
    mesh = agglomerated(cell, given.cells or num_cells(device, *case), factor)
    op = operator_on(mesh, reaction_advection_diffusion(), device, given.fe_precision, degree, approach)
    measures = Measures(op, given.repeat)

    def measured(kernel: str, part: str) -> dict:
        peer = cusparse_seconds(op, given.repeat) if part == PRODUCTS[0] else None
        return poly_row(kernel, part, op, measures.of(part), copy, peak(), factor, peer)

    return {name: partial(measured, *titles[name]) for name in names}


def cusparse_seconds(op: PolytopicOperator, repeat: int) -> dict[str, float]:
    """Seconds of cuSPARSE's products with the assembled matrix, all of whose blocks are of one size."""
    blocks = op.assembly.blocks_of
    csr = lambda xp: [xp.asarray(part) for part in blocks.csr()]  # noqa: E731
    return product_seconds(csr, lambda: block_csr(blocks), int(blocks.unknowns[0]), op.arrays, repeat)


def block_csr(blocks) -> tuple[np.ndarray, np.ndarray]:
    """Row starts [polytope + 1] and block columns [block] of polytopes that all have as many unknowns."""
    (start, columns), size = blocks.csr(), int(blocks.unknowns[0])
    row = np.repeat(np.arange(len(start) - 1), np.diff(start) // size)
    return start[::size] // size**2, (columns[::size] // size)[row % size == 0]


class Measures:
    """Seconds of the parts of an operator's assembly, each measured once."""

    def __init__(self, op: PolytopicOperator, repeat: int):
        self.op, self.repeat, self.known = op, repeat, {}
        self.sizes = (op.dofmap.num_owned, None)
        self.matrix = None
        op.assembly.compile()

    def of(self, title: str) -> float:
        """Seconds of a part by its title."""
        if title not in self.known:
            self.known[title] = self._measured(title)
        return self.known[title]

    def _measured(self, title: str) -> float:
        op = self.op
        if title in KERNELS:
            part = KERNELS[title]
            return median_seconds(op.device, lambda: run_part(op, part), self.repeat)
        if title == "total":
            return self.of("indices") + self.of("fill")
        if title == "indices":
            return self._host(self._indices)
        self._matrix()
        if title == "fill":
            return self._host(self.matrix.update)
        x = np.random.default_rng(3).uniform(-1, 1, op.dofmap.num_owned)
        if title == "product":
            du, out = op.arrays.to_device(x), op.arrays.zeros(len(x))
            return median_seconds(op.device, lambda: op.action(du, out), self.repeat)
        self.matrix.update()
        given, product = self.matrix.mat.createVecs()
        given.array = x
        return self._host(lambda: self.matrix.mat.mult(given, product))

    def _matrix(self) -> AssembledMatrix:
        if self.matrix is None:
            self.matrix = AssembledMatrix(self.op, self.sizes, self.op.discretization.mesh.comm, "standard")
        return self.matrix

    def _indices(self) -> None:
        """Interfaces, PETSc's numbers and its preallocation, and the lists of work on the device."""
        assembly = self.op.assembly
        self.op.discretization.__dict__.pop("blocks", None)
        assembly._loaded.clear()
        assembly.compile()
        self.matrix = None
        self._matrix()
        self.op.device.finish()

    def _host(self, work) -> float:
        """Median seconds of what the host does or waits for."""
        seconds = []
        for _ in range(min(self.repeat, 3)):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
        return float(np.median(seconds))


def run_part(op: PolytopicOperator, part: str) -> None:
    """Launch the kernels of `volume` or `facets` again, or of `boundary`: of a polytope's first interface alone."""
    work = op.assembly._work("matrix")
    launches = work.launches
    if part == "boundary":
        far, found = work.layout.interfaces[:, 0], []
        for items in work.layout.facets:
            rows = items.rows[far[items.rows[:, 1]] < 0]
            rows[:, 2] = rows[:, 1] + 1
            found += [Items(items.degree, rows)] if len(rows) else []
        if "boundary" not in vars(work):
            work.boundary = [*work.launches_of("facets", found)]
        launches = work.boundary
    for name, *launch in launches:
        if part in (name, "boundary"):
            work.launch(name, *launch)


def flops_of(op: PolytopicOperator, part: str) -> int:
    """As PolytopicMatrices.flops, also of the `boundary`."""
    assembly = op.assembly
    if part != "boundary":
        return assembly.flops(part)
    blocks, points = assembly.blocks_of, op.discretization.fine.facet_rules[0][0].num_points
    own = blocks.unknowns[blocks.own].astype(float) ** 2 * (blocks.other < 0)
    return int(2 * assembly.specs.facet_slots * points * (np.diff(blocks.bounds) * own).sum())


def kernel_bytes(op: PolytopicOperator, part: str) -> int:
    """Compulsory bytes of `volume`, `facets` or `boundary` by approach 2: each value written once (facets read the
    diagonal blocks too), and of each cell or side of a facet the numbers of its nodes, of each node its coordinates."""
    blocks, disc, real = op.assembly.blocks_of, op.discretization, op.arrays.real.itemsize
    diagonal, every = int(blocks.diagonal_starts[-1]), int(blocks.row_starts[-1])
    nodes = disc.fine.cell_nodes().shape[0]
    coordinates = real * disc.fine.nodes().size
    if part == "volume":
        return real * diagonal + 4 * (1 + nodes) * disc.mesh.num_cells + coordinates
    on_boundary = blocks.other < 0
    if part == "boundary":
        every = diagonal = int((blocks.unknowns[blocks.own[on_boundary]] ** 2).sum())
    faces = int(np.diff(blocks.bounds)[on_boundary | (part == "facets")].sum())
    data = faces * (4 * (3 + 2 * nodes) + real * disc.physics.num_components)
    return real * (every + diagonal) + data + coordinates


def poly_row(name: str, title: str, op, seconds: float, copy: float, peak: float, factor: int, peer=None) -> dict:
    """A row; dofs are those of the polytopes, cells are base cells.

    flops: products of functions at the quadrature points alone (`flops_of`); of AIJ two a value.
    bytes_compulsory: of kernels `kernel_bytes`; of indices a row and a column a value; of fill and total a
    value once; of products two reals an unknown, and with AIJ a real and a column a value. peer: of the product without
    a matrix, cuSPARSE's with it.
    """
    disc, assembly, real = op.discretization, op.assembly, op.discretization.fine.real_bytes
    unknowns, values = op.dofmap.num_owned, int(assembly.blocks_of.row_starts[-1])
    flops = {part: flops_of(op, part) for part in KERNELS.values()}
    work = {kernel: (flops[part], kernel_bytes(op, part)) for kernel, part in KERNELS.items()} | {
        "indices": (0, 8 * values),
        "fill": (flops["volume"] + flops["facets"], real * values),
        "total": (flops["volume"] + flops["facets"], real * values),
        PRODUCTS[0]: (0, 2 * real * unknowns),
        PRODUCTS[1]: (2 * values, 16 * unknowns + 12 * values),
    }
    made = row(
        kernel=name, discretization=disc, device=op.device, cells=disc.mesh.num_cells, dofs=unknowns,
        dof_kind="element", seconds=seconds, nbytes=work[title][1], flops=work[title][0], copy=copy,
        peer=peer,
    )  # fmt: skip
    limits = {"peak_gflops_same_run": peak / 1e9, "fraction_of_peak": work[title][0] / seconds / peak}
    approach = next(name for name, scheme in APPROACHES.items() if type(disc) is scheme)
    which = {"approach": approach, "factor": factor, "polytopes": disc.polytopes.count}
    return made | limits | which | {"values": values}
