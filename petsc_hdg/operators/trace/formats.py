"""The storage formats of a trace matrix by name: dense block format element matrices, symmetric blocks, or the best."""

from __future__ import annotations

from ...errors import OptionError
from .automatic import Automatic
from .dense_block import DenseBlock
from .element_matrices import ElementMatrices
from .format import TraceFormat
from .symmetric_blocks import SymmetricBlocks

FORMATS = {"dbf": DenseBlock, "element": ElementMatrices, "symmetric": SymmetricBlocks, "auto": Automatic}


def create_format(kind: str, operator, single: bool = False, layout=None) -> TraceFormat:
    """The trace matrix of an operator in format `kind`, one of FORMATS. Raises OptionError for any other."""
    if kind not in FORMATS:
        raise OptionError(f"-hdg_trace_mat {kind} is not a format of stored blocks; these are {', '.join(FORMATS)}")
    return FORMATS[kind](operator, single, layout)
