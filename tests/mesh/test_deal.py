"""METIS deals the cells of a mesh out in the same way each time, unless the user names a partitioner of PETSc's."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from petsc_hdg import MeshError
from petsc_hdg.mesh.graph import Graph
from petsc_hdg.mesh.partition.metis import MEAN, balanced_parts, whole_weights

SCRIPT = Path(__file__).with_name("run_deal.py")


def ring(n: int) -> Graph:
    """A graph of n vertices in a circle."""
    ends = np.arange(n)
    return Graph.from_pairs(np.stack([ends, (ends + 1) % n], axis=1), np.ones(n))


@pytest.mark.quick
def test_the_same_cells_on_the_same_ranks(mpirun):
    first, second = (json.loads(mpirun(3, SCRIPT).stdout) for _ in range(2))
    assert first == second and len(first) == 12


@pytest.mark.parametrize("n, count", [(5, 9), (8, 8), (8, 7), (24, 5), (300, 4)])
def test_parts_are_even(n, count):
    sizes = np.bincount(balanced_parts(ring(n), count), minlength=count)
    assert sizes.sum() == n and len(sizes) == count
    assert n <= count or sizes.min() > 0
    assert sizes.max() <= max(1, 1.1 * n / count + 1)


@pytest.mark.parametrize("count", [1000, 10**7, 2 * 10**7, 10**8, 5 * 10**8])
def test_weights_of_many_cells_add_up_in_32_bits(count):
    """Those of 1000 cells that stand for `count` ones like them."""
    costs = np.random.default_rng(0).uniform(0.2, 30.0, 1000)
    weights = whole_weights(costs, costs.mean(), count)
    assert weights.min() >= 1 and 0 < weights.mean() * count < 2**31
    if count <= 10**7:
        assert abs(weights.mean() - MEAN) < 1 and np.abs(weights / weights.mean() - costs / costs.mean()).max() < 0.01


def test_pymetis_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(MeshError, match="pip install pymetis"):
        balanced_parts(ring(8), 2)
