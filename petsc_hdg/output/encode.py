"""Arrays as VTK's XML has them: compressed with zlib block by block, in base64, inside `<DataArray>`."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator
from html import escape

import numpy as np

BLOCK = 1 << 20  # bytes compressed at a time; ParaView unpacks blocks one by one
_LEVEL = 4
_TYPES = {"f8": "Float64", "i4": "Int32", "i8": "Int64", "u1": "UInt8"}
TAIL = b"</DataArray>\n"


def little_endian(values: np.ndarray) -> np.ndarray:
    """Values as the file has them."""
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<"))


def array_head(name: str, values: np.ndarray) -> bytes:
    """The opening tag of an array like `values` [row] or [row, component]."""
    components = "" if values.ndim == 1 else f' NumberOfComponents="{values.shape[1]}"'
    kind = _TYPES[values.dtype.newbyteorder("<").str[1:]]
    return f'<DataArray type="{kind}" Name="{escape(name)}"{components} format="binary">'.encode()


def packed_blocks(data: bytes) -> list[bytes]:
    """`data` in blocks of BLOCK bytes, each compressed; the last one may be short."""
    return [zlib.compress(data[start : start + BLOCK], _LEVEL) for start in range(0, len(data), BLOCK)]


def blocks_head(packed: list[int], total: int) -> bytes:
    """VTK's header of an array of `total` bytes: number of blocks, block size, size of a short last block, and the
    packed sizes [block]."""
    sizes = [len(packed), BLOCK, total % BLOCK, *packed]
    return base64.b64encode(np.array(sizes, "<u8").tobytes())


def in_base64(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The base64 text of chunks laid end to end."""
    rest = b""
    for chunk in chunks:
        data = rest + chunk
        whole = len(data) // 3 * 3
        rest = data[whole:]
        yield base64.b64encode(data[:whole])
    yield base64.b64encode(rest)
