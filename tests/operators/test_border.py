"""Products of trace matrices take one exchange: owners have the rows that other ranks' cells give."""

from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_border.py")


@pytest.mark.parametrize("ranks", [2, 3])
def test_owners_complete_their_rows(mpirun, ranks):
    assert "border agrees" in mpirun(ranks, SCRIPT).stdout
