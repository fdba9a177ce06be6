"""Kernel specs of the trace matrix: dense block format, element matrices, facet blocks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from ...codegen import KernelSpec
from ..block_specs import block_specs
from ..transposition import DeviceLimits
from .layout import TraceLayout

ASYMMETRY_CELLS = 64
SYMMETRIC_CHUNK = 10  # unknowns that a thread of trace_symmetric.cl takes at once, at most
SYMMETRIC_CELLS = {True: (256, 128, 64, 32), False: (64, 32, 16)}  # of a patch on a GPU, and on a CPU
SYMMETRIC_LOCAL = 24 << 10  # bytes of local memory that a patch may take, so that several are in flight
SYMMETRIC_PLACES = 0.75  # facets of a patch over those of its cells, at most a little more
CONGRUENT_THREADS = 256  # of a work-group that are sure to have registers enough
CONGRUENT_FACETS, CONGRUENT_ROWS = 64, 16  # of a work-group, and of a thread on a GPU
LARGE_GROUPS = {4: 256}  # facets of a work-group on a GPU for blocks of a size that do better so
MOST_SHARE = 1 / 8  # kinds of facets over facets, from which on a dictionary does not pay
MOST_BYTES = 256e6  # of a dictionary: one of 160 MB, an eighth of the facets, is still 2.2 times as fast on an H100


@dataclass(frozen=True)
class CongruentShape:
    """Facets of a work-group of trace_congruent.cl, rows of a thread, threads of a facet."""

    facets: int
    rows: int
    parts: int


@dataclass(frozen=True)
class SymmetricShape:
    """Cells of a patch of trace_symmetric.cl, threads a cell, unknowns taken at once, local values between places."""

    cells: int
    parts: int
    chunk: int
    step: int

    @property
    def threads(self) -> int:
        """Of a work-group."""
        return self.cells * self.parts

    def local_reals(self, places: int) -> int:
        """Local memory of a patch with so many places."""
        return 3 * (places + 1) * self.step


@dataclass(frozen=True)
class TraceSpecs:
    """Specs for cells of `cell_dofs` trace unknowns.

    layout: the facet blocks, None where unknowns are shared by facets (element matrices alone work then).
    """

    layout: TraceLayout | None
    cell_dofs: int
    precision: str
    limits: DeviceLimits

    @property
    def real_bytes(self) -> int:
        return 8 if self.precision == "double" else 4

    def dense_blocks(self) -> dict[str, KernelSpec]:
        """Kernels of trace_dbf.cl, by name, and `trace_assemble`."""
        macros = {"NA": self.layout.num_slots, "ROWS": self.dense_rows}
        sizes = dict.fromkeys(("product", "transposed", "column"), 256 if self.limits.is_gpu else 64)
        return self._of_facets("dbf", sizes, macros, assembles=True)

    @property
    def dense_rows(self) -> int:
        """Rows of a work-item of a product with dense blocks: those of a facet on a CPU, where they are a vector."""
        return self.layout.block if not self.limits.is_gpu and self.layout.block > 2 else 1

    def _of_facets(self, kind: str, sizes: dict[str, int], macros: dict, assembles=False) -> dict[str, KernelSpec]:
        """Kernels trace_KIND_NAME of trace_KIND.cl, by name, with work-groups of sizes[NAME], and `trace_assemble`."""
        files = *(["trace_assemble.cl"] if assembles else []), f"trace_{kind}.cl"
        sources, macros = ("trace_numbers.clh", *files), {**self._macros(), **macros}
        names = {f"trace_{kind}_{name}": size for name, size in sizes.items()}
        names |= {"trace_assemble": 64} if assembles else {}
        return {name: self._spec(name, sources, macros, size) for name, size in names.items()}

    def element_matrices(self) -> dict[str, KernelSpec]:
        """Kernels of trace_element.cl, by name, and `assemble`."""
        macros = {**self._macros(), "NDOF": self.cell_dofs}
        sources = ("gather_tvector.clh", "trace_element.cl")
        names = [f"trace_element_{n}" for n in ("store", "product", "transposed", "column")]
        specs = {n: self._spec(n, sources, macros, 128) for n in names}
        specs["assemble"] = KernelSpec("assemble", ("assemble.cl",), precision=self.precision, local_size=128)
        return specs

    def congruent_facets(self) -> dict[str, KernelSpec]:
        """Kernels of trace_congruent.cl, by name, and `trace_assemble`."""
        shape = self.congruent_shape()
        macros = {
            "NA": self.layout.num_slots,
            "FACETS": shape.facets,
            "ROWS": shape.rows,
            "PARTS": shape.parts,
            "PAIRS": int(self.limits.is_gpu and shape.rows % 2 == 0),
            "STAGED": int(self.limits.is_gpu and self.layout.is_blocked and self.layout.block % 2),
        }
        sizes = {"product": shape.facets * shape.parts, "column": 64}
        return self._of_facets("congruent", sizes, macros, assembles=True)

    def congruent_shape(self) -> CongruentShape:
        """Launch shape of the product with a dictionary: on a GPU a thread has an even number of rows."""
        block = self.layout.block
        parts = -(-block // CONGRUENT_ROWS) if self.limits.is_gpu else 1
        rows = -(-block // parts)
        rows += rows % 2 if self.limits.is_gpu and block > 1 else 0
        facets = LARGE_GROUPS.get(block, CONGRUENT_FACETS) if self.limits.is_gpu else CONGRUENT_FACETS
        while facets > 1 and facets * parts > min(self.limits.max_work_group, CONGRUENT_THREADS):
            facets //= 2
        return CongruentShape(facets, rows, -(-block // rows))

    @property
    def congruent_reals(self) -> int:
        """Entries of the blocks of one kind of facet."""
        shape = self.congruent_shape()
        return self.layout.num_slots * self.layout.block * shape.parts * shape.rows

    @property
    def most_kinds(self) -> int:
        """Kinds of facets up to which a dictionary pays."""
        return int(min(MOST_SHARE * self.layout.num_facets, MOST_BYTES / (self.congruent_reals * self.real_bytes)))

    def symmetric_blocks(self, shape: SymmetricShape) -> dict[str, KernelSpec]:
        """Kernels of trace_symmetric.cl, by name."""
        tested = min(ASYMMETRY_CELLS, self.limits.max_work_group)
        macros = {name.upper(): size for name, size in asdict(shape).items()} | {"TESTED": tested}
        sizes = {"pairs": 64, "own": 64, "product": shape.threads, "cut": 64, "column": 64, "asymmetry": tested}
        return self._of_facets("symmetric", sizes, macros)

    def symmetric_shape(self) -> SymmetricShape:
        """Launch shape of the product with a symmetric matrix."""
        block = self.layout.block
        chunk = max(k for k in range(1, SYMMETRIC_CHUNK + 1) if block % k == 0)
        facets = self.layout.facets_per_cell
        parts = facets // 2 if facets % 2 == 0 and self.limits.is_gpu else 1
        shape = SymmetricShape(1, parts, chunk, block | 1)
        for cells in SYMMETRIC_CELLS[self.limits.is_gpu]:
            shape = replace(shape, cells=min(cells, self.limits.max_work_group // parts))
            places = SYMMETRIC_PLACES * facets * shape.cells
            if shape.local_reals(places) * self.real_bytes <= min(SYMMETRIC_LOCAL, self.limits.local_bytes):
                break
        return shape

    def facet_blocks(self) -> dict[str, KernelSpec]:
        """`column`, `invert` and `apply` of the facets' own blocks."""
        names = {name: self._macros()[name] for name in ("M", "NC", "NP", "BLOCKED")}
        return block_specs(self.layout.block, self.limits, self.precision, FACETS=1, **names)

    def _macros(self) -> dict[str, int]:
        layout = self.layout
        block = layout.block if layout else 1
        components = layout.components if layout else 1
        return {
            "MC": self.cell_dofs,
            "F": layout.facets_per_cell if layout else self.cell_dofs,
            "M": block,
            "NC": components,
            "NP": block // components,
            "BLOCKED": int(bool(layout) and layout.is_blocked),
        }

    def _spec(self, name, sources, macros, local_size, local_bytes: int = 0) -> KernelSpec:
        local_size = min(local_size, self.limits.max_work_group)
        return KernelSpec(name, sources, macros, {}, "", self.precision, local_size, local_bytes)
