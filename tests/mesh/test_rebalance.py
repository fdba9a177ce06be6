"""Cells dealt to the ranks by cost, on 1, 3 and 4 ranks."""

from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_rebalance.py")


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_rebalance(mpirun, ranks):
    assert f"balanced on {ranks} ranks" in mpirun(ranks, SCRIPT).stdout
