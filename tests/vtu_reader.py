"""Reads the VTU files of the package with nothing of the package: XML, base64 and zlib as VTK's format has them."""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ET
import zlib

import numpy as np

_TYPES = {"Float64": "<f8", "Int32": "<i4", "Int64": "<i8", "UInt8": "<u1"}


def read_vtu(path) -> dict:
    """The one piece.

    points [point, 3], cells [cell, node], types [cell]; point_data and cell_data: name → [row, component].
    """
    root = ET.parse(path).getroot()
    assert root.attrib["header_type"] == "UInt64" and root.attrib["compressor"] == "vtkZLibDataCompressor"
    (piece,) = [_piece(piece) for piece in root.iter("Piece")]
    assert 72 not in piece["types"] or root.attrib["version"] == "2.2"
    return piece


def _piece(piece) -> dict:
    num_points, num_cells = int(piece.attrib["NumberOfPoints"]), int(piece.attrib["NumberOfCells"])
    cells = {of.attrib["Name"]: _array(of) for of in piece.find("Cells")}
    assert np.array_equal(np.diff(cells["offsets"], prepend=0), np.full(num_cells, num_points // max(1, num_cells)))
    return {
        "points": _array(piece.find("Points")[0]),
        "cells": cells["connectivity"].reshape(num_cells, -1) if num_cells else np.empty((0, 0), int),
        "types": cells["types"],
        "point_data": _named(piece.find("PointData"), num_points),
        "cell_data": _named(piece.find("CellData"), num_cells),
    }


def _named(group, rows: int) -> dict:
    found = {of.attrib["Name"]: _array(of) for of in group}
    assert all(len(of) == rows for of in found.values())
    return found


def _array(element) -> np.ndarray:
    text = element.text.strip()
    count = int(np.frombuffer(base64.b64decode(text[:12])[:8], "<u8")[0])
    header_text = 4 * -(-8 * (3 + count) // 3)
    sizes = np.frombuffer(base64.b64decode(text[:header_text]), "<u8")[: 3 + count]
    packed, data, start = base64.b64decode(text[header_text:]), [], 0
    for k, size in enumerate(map(int, sizes[3:])):
        data.append(zlib.decompress(packed[start : start + size]))
        whole = k < count - 1 or sizes[2] == 0
        assert len(data[-1]) == int(sizes[1] if whole else sizes[2])
        start += size
    assert start == len(packed)
    values = np.frombuffer(b"".join(data), _TYPES[element.attrib["type"]]).copy()
    components = element.attrib.get("NumberOfComponents")
    return values if components is None else values.reshape(-1, int(components))
