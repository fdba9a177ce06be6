"""The same mesh on 1, 2, 3, 4 and 7 ranks, by PETSc's and by random partitions, with and without overlap."""

from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_partition.py")


@pytest.mark.parametrize(
    ("ranks", "overlap", "seed"),
    [(1, 0, -1), (2, 1, 3), (3, 0, -1), (3, 1, -1), (4, 1, 1), (7, 0, 2), (7, 1, -1)],
)
def test_partitions(mpirun, ranks, overlap, seed):
    assert "meshes agree" in mpirun(ranks, SCRIPT, "-overlap", overlap, "-seed", seed).stdout
