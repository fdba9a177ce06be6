"""Agglomerates: connected, balanced, as many as asked for, the same on any number of ranks; and bad input."""

import ctypes
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI
from shuffled_boxes import MESHES

from petsc_hdg.errors import MeshError
from petsc_hdg.mesh import Mesh, Polytopes, agglomerate, coarsen
from petsc_hdg.mesh.graph import Graph, by_first
from petsc_hdg.mesh.partition import metis as partition
from petsc_hdg.mesh.partition.metis import connected_parts, halves, shared_out
from petsc_hdg.mesh.whole_mesh import centroids

SCRIPT = Path(__file__).with_name("run_agglomerate.py")


def pieces(mesh: Mesh, of_cell: np.ndarray) -> int:
    """Number of connected pieces of the polytopes, by a search through the facets of one cell after another."""
    near = [[] for _ in range(mesh.num_cells)]
    for a, b in mesh.topology.facet_cells.tolist():
        if b >= 0:
            near[a].append(b)
            near[b].append(a)
    seen, count = set(), 0
    for cell in range(mesh.num_cells):
        if cell in seen:
            continue
        count, stack = count + 1, [cell]
        while stack:
            c = stack.pop()
            if c not in seen:
                seen.add(c)
                stack += [n for n in near[c] if of_cell[n] == of_cell[c]]
    return count


@pytest.mark.parametrize("count", [1, 2, 7, 40, 100, 300, 511, 512])
@pytest.mark.parametrize("faces", [(16, 16), (8, 8, 8)])
def test_as_many_connected_polytopes_as_asked_for(faces, count):
    mesh = Mesh.box(faces, simplex=len(faces) == 2, comm=MPI.COMM_SELF)
    assert mesh.num_cells == 512
    made = agglomerate(mesh, count)
    polytopes, size = made.polytopes, np.bincount(made.polytopes.of_cell)
    assert polytopes.count == count == len(size) and polytopes.of_cell.dtype == np.int32
    assert pieces(made, polytopes.of_cell) == count
    assert size.max() <= 2 * np.ceil(512 / count) and size.min() >= 512 / count / 4
    assert (polytopes.numbers == np.arange(count)).all() and polytopes.balance == 1 and polytopes.degrees is None
    assert mesh.polytopes is None, "the given mesh is not changed"
    assert (centroids(made) == centroids(mesh)).all() and made.boundaries == mesh.boundaries


def test_costs_are_balanced():
    mesh = Mesh.box((20, 20), comm=MPI.COMM_SELF)
    cost = np.where(centroids(mesh)[:, 0] < 0.25, 40.0, 1.0)
    made = agglomerate(mesh, 16, cost=cost)
    loads = np.bincount(made.polytopes.of_cell, cost)
    assert loads.max() < 1.5 * loads.mean()
    plain = np.bincount(agglomerate(mesh, 16).polytopes.of_cell, cost)
    assert plain.max() > 2 * plain.mean(), "the costs are uneven without weights"


def test_groups_keep_their_order_and_degrees():
    mesh = Mesh.box((4, 4), comm=MPI.COMM_SELF)
    x = centroids(mesh)[:, 0]
    made = agglomerate(mesh, groups=np.where(x < 0.5, 10**12, -5), degrees=[3, 0])
    left = centroids(made)[:, 0] < 0.5
    assert (made.polytopes.of_cell == left).all() and made.polytopes.degrees.tolist() == [3, 0]


def test_groups_in_pieces_are_split_with_one_warning():
    mesh = Mesh.box((6, 1), comm=MPI.COMM_SELF)
    column = (centroids(mesh)[:, 0] * 6).astype(int)
    with pytest.warns(UserWarning, match="^2 of 3 agglomerates are in pieces.* 5 in all.$") as caught:
        made = agglomerate(mesh, groups=np.array([0, 1, 0, 1, 2, 2])[column], degrees=[4, 5, 6])
    assert len(caught) == 1
    of_column = made.polytopes.of_cell[np.argsort(column, kind="stable")].reshape(6, 2)
    assert (of_column == np.array([0, 2, 1, 3, 4, 4])[:, None]).all()
    assert made.polytopes.degrees.tolist() == [4, 4, 5, 5, 6]


def test_a_point_in_common_does_not_connect():
    mesh = Mesh.box((2, 2), False, comm=MPI.COMM_SELF)
    x = centroids(mesh)
    with pytest.warns(UserWarning, match="2 of 2 agglomerates"):
        made = agglomerate(mesh, groups=((x[:, 0] < 0.5) ^ (x[:, 1] < 0.5)))
    assert made.polytopes.count == 4


@pytest.mark.parametrize("label", ["west", ("west", "east"), ["east"], "Cell Sets"])
def test_labels(label):
    mesh = Mesh.from_file(MESHES / "regions.msh", comm=MPI.COMM_SELF)
    made = agglomerate(mesh, label=label)
    west = made.cell_mask("west")
    assert made.polytopes.count == 2 and 0 < west.sum() < mesh.num_cells
    assert len(np.unique(made.polytopes.of_cell[west])) == len(np.unique(made.polytopes.of_cell[~west])) == 1


def test_polytopes_lie_within_groups():
    mesh = Mesh.box((12, 12), comm=MPI.COMM_SELF)
    for groups, across in ((None, True), (lambda x: x[:, 0] < 0.5, False)):
        made = agglomerate(mesh, 36, groups=groups)
        part, left = made.polytopes.of_cell, centroids(made)[:, 0] < 0.5
        assert made.polytopes.count == pieces(made, part) == 36
        assert any(0 < left[part == k].mean() < 1 for k in range(36)) == across


def test_polytopes_lie_within_regions():
    mesh = agglomerate(Mesh.from_file(MESHES / "regions.msh", comm=MPI.COMM_SELF), 4)
    west = mesh.cell_mask("west")
    parts = [set(mesh.polytopes.of_cell[side]) for side in (west, ~west)]
    assert all(parts) and not parts[0] & parts[1] and len(parts[0] | parts[1]) == 4


def test_degrees_by_place():
    mesh = Mesh.box((8, 8), comm=MPI.COMM_SELF)
    made = agglomerate(mesh, 10, degrees=lambda x: np.round(6 * x[:, 1]).astype(int))
    middle = [centroids(made)[made.polytopes.of_cell == k].mean(axis=0)[1] for k in range(10)]
    assert made.polytopes.degrees.tolist() == np.round(6 * np.array(middle)).astype(int).tolist()
    assert len(set(made.polytopes.degrees.tolist())) > 3


def test_a_mesh_in_two_parts_has_no_polytope_over_both():
    points = [[0.0, 0], [1, 0], [0, 1], [5, 5], [6, 5], [5, 6]]
    mesh = Mesh.from_cells([[0, 1, 2], [3, 4, 5]], points, comm=MPI.COMM_SELF)
    with pytest.warns(UserWarning, match="The mesh is in pieces: 2 polytopes were made where 1 were asked for"):
        assert agglomerate(mesh, 1).polytopes.count == 2


def test_coarser_polytopes_are_unions():
    mesh = agglomerate(Mesh.box((12, 12), comm=MPI.COMM_SELF), 64, degrees=lambda x: np.where(x[:, 0] < 0.5, 1, 2))
    before, fine = mesh.polytopes, mesh.polytopes.of_cell
    for count in (30, 8, 1):
        coarse = coarsen(mesh, count)
        assert coarse.count == count and pieces(mesh, coarse.of_cell) == count
        assert len(np.unique(np.stack([fine, coarse.of_cell]), axis=1).T) == 64
        assert [coarse.degrees[c] for c in coarse.of_cell] == [
            min(before.degrees[fine[coarse.of_cell == c]]) for c in coarse.of_cell
        ]
    assert mesh.polytopes is before
    plain = Mesh.box((3, 3), comm=MPI.COMM_SELF)
    assert coarsen(plain, 18).count == 18 and coarsen(plain, 5).count == 5 and isinstance(coarsen(plain, 5), Polytopes)


def test_graph_pieces():
    chain = Graph.from_pairs(np.array([[5, 2], [2, 0], [0, 4], [3, 1]]), np.ones(6))
    assert chain.components(np.zeros(6, int)).tolist() == [0, 1, 0, 1, 0, 0]
    assert chain.components(np.array([0, 1, 1, 1, 0, 1])).tolist() == [0, 1, 2, 1, 0, 2]
    whole = chain.quotient(np.array([0, 2, 1, 2, 0, 1]), 3)
    assert (whole.neighbour.tolist(), whole.shared.tolist(), whole.weights.tolist()) == ([1, 0], [1, 1], [2, 2, 2])
    assert by_first(np.array([4, 4, 1, 9, 1])).tolist() == [0, 0, 1, 2, 1]
    (parts,) = halves(chain, [np.array([0, 2, 4, 5])])
    assert [sorted(half.tolist()) for half in parts] == [[2, 5], [0, 4]]


def test_a_long_chain_is_one_piece():
    n = 4000
    order = np.random.default_rng(1).permutation(n)
    chain = Graph.from_pairs(np.stack([order[:-1], order[1:]], axis=1), np.ones(n))
    assert not chain.components(np.zeros(n, int)).any()
    for count in (1, 3, 50, 999):
        part = connected_parts(chain, count)
        assert np.count_nonzero(np.diff(part[order])) == count - 1


def test_pieces_join_the_neighbour_with_most_facets():
    """A 4 × 4 checkerboard of squares: a part in three pieces, of which the heaviest keeps its number."""
    x, y = np.divmod(np.arange(16), 4)
    pairs = [(a, b) for a in range(16) for b in range(a) if abs(x[a] - x[b]) + abs(y[a] - y[b]) == 1]
    graph = Graph.from_pairs(np.array(pairs), np.ones(16))
    part = np.array([[0, 0, 1, 0], [0, 0, 1, 1], [2, 2, 2, 1], [2, 0, 2, 2]]).ravel()
    joined = partition._joined(graph, part)
    assert by_first(joined).reshape(4, 4).tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 2, 1], [2, 2, 2, 2]]


@pytest.mark.parametrize("faces", [(60, 30), (10, 10, 8)])
def test_bisections_of_metis_are_made_connected(faces, monkeypatch):
    """As for more than KWAY polytopes. METIS leaves some in pieces, few of them, so look for one of several counts."""
    monkeypatch.setattr(partition, "KWAY", 1)
    mesh = Mesh.box(faces, comm=MPI.COMM_SELF)
    near, n = mesh.topology.facet_cells, mesh.num_cells
    graph, in_pieces = Graph.from_pairs(near[(near >= 0).all(axis=1)], np.ones(n)), 0
    for count in (120, 150, 180, 220):
        assert n >= partition.FEW * count, "METIS makes the parts"
        in_pieces += len(np.unique(graph.components(partition.metis(graph, count)))) > count
        part = connected_parts(graph, count)
        size = np.bincount(part)
        assert pieces(mesh, part) == count == len(size)
        assert size.min() > n / count / 2 and size.max() < 1.6 * n / count
    assert in_pieces, "METIS alone would do"


@pytest.mark.parametrize(
    ("weights", "total", "most", "shares"),
    [
        ([1, 1, 2], 8, [9, 9, 9], [2, 2, 4]),
        ([1, 1, 1], 2, [5, 5, 5], [1, 1, 1]),
        ([10, 1], 11, [4, 9], [4, 7]),
        ([3, 0, 1], 3, [9, 0, 9], [2, 0, 1]),
        ([1, 1], 9, [2, 2], [2, 2]),
    ],
)
def test_shares(weights, total, most, shares):
    assert shared_out(np.array(weights), total, np.array(most)).tolist() == shares


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_any_number_of_ranks(mpirun, ranks):
    assert "agglomerates agree" in mpirun(ranks, SCRIPT).stdout


def test_metis_is_silent_about_empty_parts(capfd, monkeypatch):
    """One cell weighs as much as all others, so that bisections give it parts that nothing is left for."""
    n, count = 40, 20
    graph = Graph.from_pairs(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), np.r_[1e4, np.ones(n - 1)])
    monkeypatch.setattr(partition, "KWAY", 1)  # so that it bisects
    assert len(np.unique(partition.metis(graph, count))) < count, "there are parts without cells"
    print("after")
    assert capfd.readouterr().out == "after\n"


def test_metis_fails_in_a_sentence(monkeypatch, capfd):
    def failing(*_, **__):
        ctypes.CDLL(None).puts(b"Input Error: Incorrect nparts.")
        raise RuntimeError("Caught an unknown exception!")

    monkeypatch.setattr("pymetis.part_graph", failing)
    graph = Graph.from_pairs(np.array([[0, 1], [1, 2]]), np.ones(3))
    with pytest.raises(MeshError, match=r"METIS cannot make 2 parts of 3 cells .Input Error: Incorrect nparts\..; ask"):
        partition.metis(graph, 2)
    assert capfd.readouterr().out == ""
