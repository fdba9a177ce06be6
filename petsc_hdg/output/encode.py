"""Arrays as VTK's XML has them: compressed with zlib, in base64, inside `<DataArray>`."""

from __future__ import annotations

import base64
import zlib
from html import escape

import numpy as np

_BLOCK = 1 << 20  # bytes compressed at a time; ParaView unpacks blocks one by one
_LEVEL = 4
_TYPES = {"f8": "Float64", "i4": "Int32", "i8": "Int64", "u1": "UInt8"}


def data_array(name: str, values: np.ndarray) -> bytes:
    """`values` [row] or [row, component] as one element."""
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    components = "" if little.ndim == 1 else f' NumberOfComponents="{little.shape[1]}"'
    kind = _TYPES[little.dtype.str[1:]]
    head = f'<DataArray type="{kind}" Name="{escape(name)}"{components} format="binary">'
    return head.encode() + _compressed(little.tobytes()) + b"</DataArray>\n"


def _compressed(data: bytes) -> bytes:
    """VTK's header (number of blocks, block size, size of a short last block, packed sizes) and the packed blocks."""
    blocks = [zlib.compress(data[start : start + _BLOCK], _LEVEL) for start in range(0, len(data), _BLOCK)]
    sizes = [len(blocks), _BLOCK, len(data) % _BLOCK, *map(len, blocks)]
    return base64.b64encode(np.array(sizes, "<u8").tobytes()) + base64.b64encode(b"".join(blocks))
