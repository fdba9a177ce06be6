"""Cells and points that touch other ranks come last, on 1 … 4 ranks."""

import numpy as np
import pytest

from petsc_hdg.mesh.order import stable_order

SCRIPT = __file__.replace("test_order", "run_order")


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_what_touches_other_ranks_is_last(mpirun, ranks):
    assert "order agrees" in mpirun(ranks, SCRIPT).stdout


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_stable_order(count):
    numbers = np.random.default_rng(1).integers(-1, 40, count).astype(np.int32)
    assert np.array_equal(stable_order(numbers), np.argsort(numbers, kind="stable"))
    most = np.array([2**31 - 1, -1, 2**31 - 1, -(2**31)], np.int32)
    assert stable_order(most).tolist() == [3, 1, 0, 2]
