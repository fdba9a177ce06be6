"""Lists of places of rows in element vectors, by kernels and by numpy."""

from __future__ import annotations

import numpy as np
import pytest

from petsc_hdg.device import Arrays, Device
from petsc_hdg.operators import block_rows as assembly
from petsc_hdg.operators.block_rows import assembly_rows

ROWS, STRIDE, CELLS, DOFS = 40, 32, 25, 3


@pytest.mark.parametrize("few", [0, 1 << 18])
@pytest.mark.parametrize("by_cell", [False, True])
def test_lists_are_complete(by_cell, few, monkeypatch):
    """With rows that nothing adds to, rows that are left out, padding, and places of a second part."""
    monkeypatch.setattr(assembly, "FEW_PLACES", few)
    arrays, rng = Arrays(Device.select("any")), np.random.default_rng(1)
    numbers = rng.integers(0, ROWS + 5, DOFS * STRIDE)
    numbers[numbers == 7] = ROWS
    others, first = rng.integers(0, ROWS + 5, 11), DOFS * STRIDE
    count, length, used = (DOFS * CELLS, 1, 1) if by_cell else (DOFS * STRIDE, STRIDE, CELLS)
    parts = [(None, count, length, used, 0), (others, 11, 1, 1, first)]
    start, entry = assembly_rows(arrays, arrays.to_device(numbers), parts, ROWS)
    places = np.concatenate([np.flatnonzero(np.arange(count) % length < used), first + np.arange(11)])
    rows = np.concatenate([numbers, others])[places]
    expected = [places[rows == row] for row in range(ROWS)]
    start = arrays.to_host(start, ROWS + 1, np.int32)
    assert start.tolist() == np.concatenate([[0], np.cumsum(list(map(len, expected)))]).tolist()
    assert arrays.to_host(entry, start[-1], np.int32).tolist() == np.concatenate(expected).tolist()


@pytest.mark.parametrize("few", [0, 1 << 18])
def test_no_rows(few, monkeypatch):
    monkeypatch.setattr(assembly, "FEW_PLACES", few)
    arrays = Arrays(Device.select("any"))
    start, _ = assembly_rows(arrays, arrays.to_device(np.zeros(4, np.int32)), [(None, 4, 1, 1, 0)], 0)
    assert arrays.to_host(start, 1, np.int32).tolist() == [0]
