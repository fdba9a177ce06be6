"""Kernels run while ghost values are under way, and none reads ghosts before they have come."""

from pathlib import Path

import numpy as np
import pytest

from petsc_hdg.operators.overlap import FIRST, LAST, LEAST, OUTER, element_cells, part_range

SCRIPT = Path(__file__).parents[1] / "run_overlap.py"


def test_inner_kernels_run_meanwhile(mpirun):
    assert "overlap agrees" in mpirun(2, SCRIPT).stdout


class _Device:
    def __init__(self, is_gpu: bool):
        self.is_gpu = is_gpu


@pytest.mark.parametrize("inner,total,step", [(0, 10, 4), (10, 10, 4), (7, 30, 1), (100_000, 100_003, 64), (5, 6, 8)])
@pytest.mark.parametrize("is_gpu", [False, True])
def test_parts_make_up_everything(inner, total, step, is_gpu):
    ranges = [part_range(part, inner, total, step, _Device(is_gpu)) for part in (FIRST, OUTER, LAST)]
    found = np.sort(np.concatenate([np.arange(*ends) for ends in ranges]))
    assert np.array_equal(found, np.arange(total)) and all(first % step == 0 for first, _ in ranges)
    assert max(ranges[0][1], ranges[2][1]) <= inner
    assert part_range(None, inner, total, step, _Device(is_gpu)) == (0, total)
    if is_gpu and inner < LEAST:
        assert ranges[1] == (0, total)
    elif inner >= 2 * step:
        assert ranges[0][1] > 0 and ranges[2][1] > ranges[2][0]


def test_element_vectors_are_whole_before_rows_are_summed():
    ranges = [element_cells(part, 70, 100, 16, _Device(False)) for part in (FIRST, OUTER, LAST)]
    assert ranges == [(0, 64), (64, 112), (0, 0)]
    assert element_cells(FIRST, 70, 100, 16, _Device(True)) == (0, 0)
