"""Cells and points that touch other ranks come last, on 1 … 4 ranks."""

import pytest

SCRIPT = __file__.replace("test_order", "run_order")


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_what_touches_other_ranks_is_last(mpirun, ranks):
    assert "order agrees" in mpirun(ranks, SCRIPT).stdout
