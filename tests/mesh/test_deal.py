"""Cells of a mesh are dealt out evenly, in the same way each time, unless the user names a partitioner of PETSc's."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from petsc_hdg import MeshError
from petsc_hdg.mesh.graph import Graph
from petsc_hdg.mesh.partition.bisection import balanced_parts
from petsc_hdg.mesh.partition.metis import MEAN, metis, whole_weights

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
@pytest.mark.parametrize("has_costs", [False, True])
def test_parts_are_even(n, count, has_costs):
    rng = np.random.default_rng(n)
    places, costs = rng.random((n, 3)), rng.uniform(0.5, 2.0, n) if has_costs else None
    part = balanced_parts(places, count, costs)
    loads = np.bincount(part, costs, minlength=count)
    assert len(loads) == count and np.array_equal(np.unique(part), np.arange(min(n, count)))
    assert n <= count or np.ptp(loads) <= (5 if has_costs else 1)


def test_a_grid_is_cut_along_its_lines():
    """Places with the same coordinates along the cut are divided by the other ones."""
    x, y = np.meshgrid(np.arange(9.0), np.arange(4.0), indexing="ij")
    part = balanced_parts(np.stack([x.ravel(), y.ravel()], axis=1), 2).reshape(9, 4)
    assert part.sum() == 18 and (np.diff(part, axis=0) >= 0).all() and (np.diff(part, axis=1) >= 0).all()
    assert np.count_nonzero(np.diff(part, axis=0)) + np.count_nonzero(np.diff(part, axis=1)) == 5


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
        metis(ring(8), 2)
