"""The formats of a trace matrix by name, of which `auto` moves fewest bytes for a mesh, a physics and a device;
destinations of condensed matrices: blocks of a format, and values to assemble."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...device import kernels_of
from ...discretizations.forwarded import forwarded
from ...discretizations.trace.facet_groups import facet_kinds
from ...errors import OptionError
from .border import border_of
from .congruent_facets import CongruentFacets
from .dense_block import DenseBlock
from .element_matrices import ElementMatrices
from .format import TraceFormat
from .symmetric_blocks import SymmetricBlocks

_NEVER = object()  # stands for shapes that nobody has told yet
SMALL = 100e6  # bytes of dense blocks up to which a product is more launches than traffic on an H100


def may_be_symmetric(device) -> bool:
    """True if half of the entries can make up for sums in local memory."""
    return device.is_gpu


class Automatic(TraceFormat):
    """`chosen`, of another format: each rank's own choice, made anew when shapes of cells change.

    In this order: a dictionary of congruent cells, 16 bytes an unknown and no matrix; on GPUs symmetric blocks, half of
    the entries in two launches, if the matrix is large and until one that is not symmetric comes; dense blocks, one
    launch. On CPUs, where dense blocks are rows of vectors, symmetric ones do not pay.
    elements: element matrices in the place of all of them but the dictionary.
    """

    kind = "auto"

    def __init__(self, operator, layout=None, elements: bool = False):
        super().__init__(operator, layout)
        self.elements = elements or not self.has_facets
        self.chosen: TraceFormat | None = None
        self.reason = ""
        self._shapes: object = _NEVER
        self._asymmetric = False

    @property
    def can_share(self) -> bool:
        """Facets own their unknowns, so that those beside congruent cells have the same blocks."""
        return self.has_facets

    def share(self, shapes) -> None:
        if shapes is not self._shapes:
            self._shapes = shapes
            self._choose()

    def retry(self) -> bool:
        """True if the matrix has turned out to need another format, which then waits for all tiles once more."""
        if not self.chosen.kind == SymmetricBlocks.kind or not self.chosen.asymmetric:
            return False
        self._asymmetric = True
        self._choose()
        return True

    def _choose(self) -> None:
        before, given = self.chosen, (self.operator, self.layout)
        kinds = facet_kinds(self.layout, self._shapes.shape) if self._shapes is not None else None
        if kinds is not None and 0 < kinds.count <= self.specs.most_kinds:
            self.chosen = None  # its memory first
            self.chosen = CongruentFacets(*given, self._shapes, kinds)
            if before is not None and before.kind == self.chosen.kind:
                self.chosen.use_kernels_of(before)
            self.reason = "because cells are copies of each other"
            return
        kind, self.reason = self._without_copies()
        if before is None or before.kind != kind.kind:
            self.chosen = before = None
            self.chosen = kind(*given)

    def _without_copies(self) -> tuple[type[TraceFormat], str]:
        """The best format of cells that differ, and why it is."""
        if self.elements:
            return ElementMatrices, "as asked for" if self.has_facets else "because facets share unknowns"
        if not may_be_symmetric(self.operator.device):
            return DenseBlock, "because cells differ, and the device is a CPU"
        if self._asymmetric:
            return DenseBlock, "because the matrix is not symmetric"
        # Products with dense blocks take no longer than the launches of another format.
        if self.layout.num_dense * self.arrays.real.itemsize <= SMALL:
            return DenseBlock, "because the matrix is small"
        return SymmetricBlocks, "because the matrix is symmetric"

    def compile_variants(self) -> None:
        specs = self.specs
        found = specs.element_matrices() if self.elements else specs.dense_blocks()
        if self.has_facets:
            found |= specs.congruent_facets()
        if not self.elements and may_be_symmetric(self.operator.device):
            found |= specs.symmetric_blocks(specs.symmetric_shape())
        kernels_of(found, self.operator.device)

    @property
    def summing(self):
        """Product that may sum x·y meanwhile."""
        return self.chosen

    # What the chosen format does ----------------------------------------------------------------------------

    nbytes, rows_alone, clear, add_tile = forwarded("chosen", 4)
    add_shapes, mult, column = forwarded("chosen", 3)

    @property
    def kernels(self) -> dict:
        """Kernels of the chosen format; none before there is one."""
        return self.chosen.kernels if self.chosen else {}

    @property
    def taken(self) -> tuple[str, ...]:
        return self.chosen.taken if self.chosen else ()

    @property
    def flops(self) -> int:
        return self.chosen.flops if self.chosen else 0

    @property
    def description(self) -> str:
        return f"{self.chosen.description}, {self.reason}"

    def _copy_values(self) -> None:
        self.chosen = self.chosen.copy()


ELEMENTS = partial(Automatic, elements=True)
FORMATS = {"dbf": DenseBlock, "element": ELEMENTS, "symmetric": SymmetricBlocks, "auto": Automatic}


def create_format(kind: str, operator, layout=None) -> TraceFormat:
    """The trace matrix of an operator in format `kind`, one of FORMATS. Raises OptionError for any other."""
    if kind not in FORMATS:
        raise OptionError(f"-hdg_trace_mat {kind} is not a format of stored blocks; these are {', '.join(FORMATS)}")
    return FORMATS[kind](operator, layout)


class TraceStores:
    """The trace matrix of a condensed operator, as it is stored. Making one is collective.

    format: the blocks of products, or None where the matrix is assembled alone.
    border: rows that two ranks make up, completed by their owner, or None.
    values [column, cell, row]: of the assembled matrix, kept where `wants_values`; else None.
    """

    def __init__(self, operator):
        self.op, kind = operator, operator.discretization.options.hdg_trace_mat
        if kind != "aij" and not operator.discretization.has_jumps:
            kind = "element"  # dense blocks need facets that own their unknowns
        self.format = None if kind == "aij" else create_format(kind, operator)
        self.border = border_of(operator) if self.format is not None and self.format.has_facets else None
        if self.format is not None:
            self.format.border = self.border
        self.values: np.ndarray | None = None
        self.wants_values = False

    def compile(self) -> None:
        """Compile what products need. Not collective."""
        if self.format is not None:
            self.format.kernels  # noqa: B018
        if self.border is not None:
            self.border.kernels  # noqa: B018

    def compile_variants(self) -> None:
        """Compile what other meshes would take, too. Not collective."""
        if self.format is not None:
            self.format.compile_variants()

    @property
    def description(self) -> str:
        """Storage of the matrix in a few words. Collective."""
        self.share()
        return self.format.description if self.format is not None else ""

    # Filling ---------------------------------------------------------------------------------------------

    def share(self) -> None:
        """Tell the format of the shapes of cells. Collective."""
        if self.format is not None:
            self.format.share(self.op.shapes if self.format.can_share else None)

    def begin(self) -> None:
        """Empty the stores before the tiles of a condensation come. Collective."""
        if self.wants_values and self.values is None:
            disc = self.op.discretization
            shape = (disc.num_trace_dofs, disc.mesh.num_cells, disc.num_trace_dofs)
            self.values = np.empty(shape, dtype=self.op.arrays.real)
        self.share()
        if self.format is not None:
            self.format.clear()

    def take(self, schur, first: int, count: int, batch: int) -> None:
        """Put the matrices of a tile where they are wanted."""
        if self.format is not None:
            self.format.add_tile(schur, first, count, batch)
        if self.border is not None:
            self.border.take(schur, first, count, batch)
        if self.wants_values:
            size = self.op.discretization.num_trace_dofs
            tile = self.op.arrays.to_host(schur, (size, batch, size), name="matrices")
            self.values[:, first : first + count] = tile[:, :count]

    def take_shapes(self, classes) -> bool:
        """Take the matrices of the shapes of cells. Returns whether they are all that is wanted."""
        found = self.format is None or self.format.add_shapes(classes.schur, classes.shapes)
        if self.border is not None:
            self.border.take_shapes(classes.schur, classes.shapes)
        return found and not self.wants_values

    def retry(self) -> bool:
        """True if the format chose another one by what came, so that all tiles are to come again. Collective."""
        return self.format is not None and self.format.retry()

    def exchange(self) -> None:
        """Complete the rows that two ranks make up, once all tiles have come. Collective."""
        if self.border is not None:
            self.border.exchange()
