"""The formats of a trace matrix by name; `auto` moves fewest bytes for a mesh, a physics and a device."""

from __future__ import annotations

from ...discretizations.forwarded import forwarded
from ...errors import OptionError
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
    """

    kind = "auto"

    def __init__(self, operator, single: bool = False, layout=None):
        super().__init__(operator, single, layout)
        self.chosen: TraceFormat | None = None
        self.reason = ""
        self._shapes: object = _NEVER
        self._asymmetric = False

    @property
    def can_share(self) -> bool:
        """As ElementMatrices says."""
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
        for kind, reason in self._candidates():
            if self.chosen is None or self.chosen.kind != kind.kind:
                self.chosen = None  # its memory first
                self.chosen = kind(self.operator, self.stored != self.arrays.real, self.layout)
            self.chosen.share(self._shapes)
            self.reason = reason
            if kind is not ElementMatrices or self.chosen.congruent or not self.has_facets:
                return

    def _candidates(self):
        """Formats, best first, and why they are; the first is taken if it is not a dictionary that does not pay."""
        if not self.has_facets:
            yield ElementMatrices, "because facets share unknowns"
            return
        if self._shapes is not None:
            yield ElementMatrices, "because cells are copies of each other"
        if not may_be_symmetric(self.operator.device):
            yield DenseBlock, "because cells differ, and the device is a CPU"
        elif self._asymmetric:
            yield DenseBlock, "because the matrix is not symmetric"
        elif self._is_small:
            yield DenseBlock, "because the matrix is small"
        yield SymmetricBlocks, "because the matrix is symmetric"

    @property
    def _is_small(self) -> bool:
        """True if products with dense blocks take no longer than the launches of another format."""
        return self.layout.num_dense * self.stored.itemsize <= SMALL

    def compile_variants(self) -> None:
        symmetric = (SymmetricBlocks,) if may_be_symmetric(self.operator.device) else ()
        for kind in (ElementMatrices, *symmetric, DenseBlock) if self.has_facets else (ElementMatrices,):
            kind(self.operator, self.stored != self.arrays.real, self.layout).kernels  # noqa: B018

    @property
    def summing(self):
        """Product that sums x·y meanwhile."""
        return getattr(self.chosen, "summing", self.chosen)

    # What the chosen format does ----------------------------------------------------------------------------

    nbytes, rows_alone, clear, add_tile = forwarded("chosen", 4)
    add_shapes, mult, mult_transpose, column = forwarded("chosen", 4)

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


FORMATS = {"dbf": DenseBlock, "element": ElementMatrices, "symmetric": SymmetricBlocks, "auto": Automatic}


def create_format(kind: str, operator, single: bool = False, layout=None) -> TraceFormat:
    """The trace matrix of an operator in format `kind`, one of FORMATS. Raises OptionError for any other."""
    if kind not in FORMATS:
        raise OptionError(f"-hdg_trace_mat {kind} is not a format of stored blocks; these are {', '.join(FORMATS)}")
    return FORMATS[kind](operator, single, layout)
