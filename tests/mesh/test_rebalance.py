"""Cells dealt to the ranks by cost, on four ranks."""

from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_rebalance.py")


@pytest.mark.parametrize("ranks", [4])
def test_rebalance(mpirun, ranks):
    assert f"balanced on {ranks} ranks" in mpirun(ranks, SCRIPT).stdout
