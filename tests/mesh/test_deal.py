"""METIS deals the cells of a mesh out in the same way each time, unless the user names a partitioner of PETSc's."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from petsc_hdg import MeshError
from petsc_hdg.mesh.graph import Graph
from petsc_hdg.mesh.partition import balanced_parts

SCRIPT = Path(__file__).with_name("run_deal.py")


def ring(n: int) -> Graph:
    """A graph of n vertices in a circle."""
    ends = np.arange(n)
    return Graph.from_pairs(np.stack([ends, (ends + 1) % n], axis=1), np.ones(n))


def test_the_same_cells_on_the_same_ranks(mpirun):
    first, second = (json.loads(mpirun(3, SCRIPT).stdout) for _ in range(2))
    assert first == second and len(first) == 12


@pytest.mark.parametrize("n, count", [(5, 9), (8, 8), (8, 7), (24, 5), (300, 4)])
def test_parts_are_even(n, count):
    sizes = np.bincount(balanced_parts(ring(n), count), minlength=count)
    assert sizes.sum() == n and len(sizes) == count
    assert n <= count or sizes.min() > 0
    assert sizes.max() <= max(1, 1.1 * n / count + 1)


def test_pymetis_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(MeshError, match="pip install pymetis"):
        balanced_parts(ring(8), 2)
