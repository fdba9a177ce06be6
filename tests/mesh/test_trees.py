"""Spanning trees of many sets at a time are those that plain searches find one by one, and so are their branches."""

from __future__ import annotations

import numpy as np
import pytest
from mpi4py import MPI

from petsc_hdg.mesh import Mesh
from petsc_hdg.mesh.graph import Graph
from petsc_hdg.mesh.partition.metis import _joined, branches, halves, metis


def tree(graph: Graph, members: np.ndarray) -> tuple[list[int], dict[int, int]]:
    """Vertices in the order of a breadth-first search from the rim, and from where each was reached."""
    root = int(members[0])
    for _ in range(2):
        order, parent = [root], {root: root}
        for v in order:
            for near in graph.neighbour[graph.start[v] : graph.start[v + 1]].tolist():
                if near in members and near not in parent:
                    parent[near] = v
                    order.append(near)
        root = order[-1]
    return order, parent


def weighed(graph: Graph, members: np.ndarray, share: float):
    """The tree, the weight below each vertex without what is cut off, and the roots of what is."""
    order, parent = tree(graph, members)
    below, roots = {v: float(graph.weights[v]) for v in order}, {order[0]}
    for v in order[:0:-1]:
        if below[v] >= share:
            roots.add(v)
        else:
            below[parent[v]] += below[v]
    return order, parent, below, roots


def labels(order, parent, roots) -> dict[int, int]:
    found: dict[int, int] = {}
    for v in order:
        found[v] = v if v in roots else found[parent[v]]
    return found


def branches_of(graph: Graph, members: np.ndarray, share: float) -> dict[int, int]:
    order, parent, below, roots = weighed(graph, members, share)
    if below[order[0]] < share / 2 and len(roots) > 1:
        roots.remove(next(v for v in order[1:] if v in roots))
    return labels(order, parent, roots)


def halves_of(graph: Graph, members: np.ndarray) -> list[list[int]]:
    order, parent, below, _ = weighed(graph, members, np.inf)
    cut = min(order[1:], key=lambda v: abs(2 * below[v] - below[order[0]]))
    found = labels(order, parent, {order[0], cut})
    return [[v for v in order if found[v] == root] for root in (order[0], cut)]


@pytest.fixture(scope="module", params=[(9, 8), (4, 5, 3)])
def cut_up(request) -> tuple[Graph, list[np.ndarray]]:
    """The graph of a mesh whose cells weigh differently, and connected sets of it that leave some cells out."""
    mesh, random = Mesh.box(request.param, comm=MPI.COMM_SELF), np.random.default_rng(3)
    near, weights = mesh.topology.facet_cells, random.choice([1.0, 1.0, 2.5, 0.3], mesh.num_cells)
    graph = Graph.from_pairs(near[(near >= 0).all(axis=1)], weights)
    part = _joined(graph, metis(graph, mesh.num_cells // 17))
    sets = [np.flatnonzero(part == k) for k in range(1, part.max() + 1)]
    assert len(sets) > 5 and min(map(len, sets)) > 5
    return graph, sets


def test_branches(cut_up):
    graph, sets = cut_up
    shares = np.random.default_rng(5).uniform(2, 9, len(sets))
    vertices, roots = branches(graph, sets, shares)
    expected = {}
    for members, share in zip(sets, shares, strict=True):
        expected |= branches_of(graph, members, float(share))
    assert dict(zip(vertices.tolist(), roots.tolist(), strict=True)) == expected
    assert len(set(roots.tolist())) > 2 * len(sets)


def test_halves(cut_up):
    graph, sets = cut_up
    found = halves(graph, sets)
    assert [[half.tolist() for half in parts] for parts in found] == [halves_of(graph, s) for s in sets]


def test_two_vertices():
    pair = Graph.from_pairs(np.array([[0, 1]]), np.ones(2))
    assert [[half.tolist() for half in parts] for parts in halves(pair, [np.array([0, 1])])] == [[[1], [0]]]
