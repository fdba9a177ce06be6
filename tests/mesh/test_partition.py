"""The same mesh on 1, 2, 3, 4 and 7 ranks, by PETSc's and by random partitions, with and without overlap."""

from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_partition.py")
WAYS = {1: ["0,-1"], 2: ["1,3"], 3: ["0,-1", "1,-1"], 4: ["1,1"], 7: ["0,2", "1,-1"]}  # ranks: overlap, seed


@pytest.mark.quick
@pytest.mark.parametrize("ranks", WAYS)
def test_partitions(mpirun, ranks):
    said = mpirun(ranks, SCRIPT, *WAYS[ranks]).stdout.splitlines()
    assert [line for line in said if "agree" in line] == [f"meshes agree: {way}" for way in WAYS[ranks]]
