"""Connected parts of a graph of about equal cost, by METIS."""

from __future__ import annotations

import heapq

import numpy as np

from ..errors import MeshError
from .base_cells import cells_of
from .graph import Graph, by_first

FEW = 16  # vertices a part below which METIS fails here and there: it makes parts of ROUGH vertices, divided further
ROUGH = 32
KWAY = 2000  # parts up to which METIS divides at once, which gives connected parts; it bisects again and again above


def connected_parts(graph: Graph, count: int) -> np.ndarray:
    """Part of each vertex [vertex] int64, 0 … count - 1 in the order of their first vertices; each is connected.

    More than `count` parts come out only where the graph itself has pieces without a connection.
    Raises MeshError if pymetis is missing.
    """
    n = graph.num_vertices
    if count >= n:
        return np.arange(n)
    if n >= FEW * count:
        part = _joined(graph, metis(graph, count))
    else:
        part = _divided(graph, _joined(graph, metis(graph, max(n // ROUGH, 1))), count)
    return by_first(_split_heaviest(graph, part, count - int(part.max()) - 1))


def metis(graph: Graph, count: int) -> np.ndarray:
    """METIS' part of each vertex [vertex] int64; parts may be empty or in pieces. Raises MeshError."""
    n = graph.num_vertices
    if count <= 1 or n == 0 or not len(graph.neighbour):
        return np.arange(n) * min(count, n) // max(n, 1)
    try:
        import pymetis
    except ImportError:
        raise MeshError("Polytopes are made by METIS, and pymetis cannot be imported; pip install pymetis.") from None
    zeros = np.zeros(n, np.int64)
    kway = count <= KWAY
    contiguous = kway and not graph.components(zeros).any()
    found = pymetis.part_graph(
        count,
        pymetis.CSRAdjacency(graph.start, graph.neighbour),
        vweights=_whole(graph.weights),
        eweights=None if (graph.shared == 1).all() else graph.shared,
        recursive=not kway,
        options=pymetis.Options(contig=int(contiguous), seed=1),
    )
    return np.asarray(found.vertex_part, np.int64)


def _whole(weights: np.ndarray) -> np.ndarray | None:
    """Weights as the positive whole numbers that METIS takes, None if all are the same."""
    if weights.min() == weights.max():
        return None
    return np.maximum(1, np.rint(weights * (100 / weights.mean()))).astype(np.int64)


def _joined(graph: Graph, part: np.ndarray) -> np.ndarray:
    """Parts [vertex], 0 … without gaps, in which pieces cut off from the heaviest piece of their part join neighbours.

    A piece joins the part with which it shares most facets; one without neighbours stays a part.
    """
    roots, piece = np.unique(graph.components(part), return_inverse=True)
    pieces = graph.quotient(piece, len(roots))
    owner = part[roots]
    order = np.lexsort((roots, -pieces.weights, owner))
    target = np.full(len(roots), -1)
    heaviest = order[np.flatnonzero(np.diff(owner[order], prepend=-1))]
    target[heaviest] = heaviest
    row = pieces.rows()
    while (target < 0).any():
        look = np.flatnonzero((target[row] < 0) & (target[pieces.neighbour] >= 0))
        if not len(look):
            break
        best = look[np.lexsort((look, -pieces.shared[look], row[look]))]
        best = best[np.flatnonzero(np.diff(row[best], prepend=-1))]
        target[row[best]] = target[pieces.neighbour[best]]
    target = np.where(target < 0, np.arange(len(roots)), target)
    return np.unique(target[piece], return_inverse=True)[1]


def _split_heaviest(graph: Graph, part: np.ndarray, times: int) -> np.ndarray:
    """Parts [vertex] after the heaviest of several vertices was halved, again and again, `times` times."""
    if times <= 0:
        return part
    count = int(part.max()) + 1
    start, members = cells_of(part, count)
    weight = np.bincount(part, graph.weights)
    queue = [(-weight[k], k, members[start[k] : start[k + 1]]) for k in np.flatnonzero(np.diff(start) > 1)]
    heapq.heapify(queue)
    part = part.copy()
    for new in range(count, count + times):
        _, old, members = heapq.heappop(queue)
        for number, half in zip((old, new), halves(graph, members), strict=True):
            part[half] = number
            if len(half) > 1:
                heapq.heappush(queue, (-graph.weights[half].sum(), number, half))
    return part


def halves(graph: Graph, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two connected halves of a connected set of two vertices or more, cut where they weigh about the same."""
    order, parent = _tree(graph, members)
    below = {v: float(graph.weights[v]) for v in order}
    for v in order[:0:-1]:
        below[parent[v]] += below[v]
    total = below[order[0]]
    cut = min(order[1:], key=lambda v: abs(2 * below[v] - total))
    label = _labels(order, parent, {order[0], cut})
    return tuple(np.array([v for v in order if label[v] == root]) for root in (order[0], cut))


def _divided(graph: Graph, part: np.ndarray, count: int) -> np.ndarray:
    """Parts [vertex] divided into at most `count` smaller ones, each connected and of about equal cost.

    Branches of a spanning tree of each part become parts as soon as they weigh enough.
    """
    weights, (start, members) = np.bincount(part, graph.weights), cells_of(part, int(part.max()) + 1)
    shares = shared_out(weights, count, np.diff(start))
    root = np.empty(graph.num_vertices, np.int64)
    for k, share in enumerate(weights / shares):
        label = _branches(graph, members[start[k] : start[k + 1]], float(share) * (1 - 1e-9))
        root[list(label)] = list(label.values())
    return np.unique(root, return_inverse=True)[1]


def _branches(graph: Graph, members: np.ndarray, share: float) -> dict[int, int]:
    """Vertex → root of its branch; branches weigh `share` or little more, as the tree allows."""
    order, parent = _tree(graph, members)
    below, roots = {v: float(graph.weights[v]) for v in order}, {order[0]}
    for v in order[:0:-1]:
        if below[v] >= share:
            roots.add(v)
        else:
            below[parent[v]] += below[v]
    if below[order[0]] < share / 2 and len(roots) > 1:  # what is left over joins the branch beside it
        joined = next(v for v in order[1:] if v in roots)
        roots.remove(joined)
    return _labels(order, parent, roots)


def shared_out(weights: np.ndarray, total: int, most: np.ndarray) -> np.ndarray:
    """Whole shares [item] of `total` in proportion to weights [item], each at least 1 (or `most`) and at most `most`.

    Their sum is `total` unless these bounds forbid it.
    """
    exact = weights * (total / weights.sum())
    shares = np.clip(exact.astype(np.int64), np.minimum(most, 1), most)
    while shares.sum() < total and (shares < most).any():
        open_ = np.flatnonzero(shares < most)
        first = open_[np.argsort((shares - exact)[open_], kind="stable")]
        shares[first[: total - int(shares.sum())]] += 1
    return shares


def _labels(order: list[int], parent: dict[int, int], roots: set[int]) -> dict[int, int]:
    """Vertex → the root above it."""
    label: dict[int, int] = {}
    for v in order:
        label[v] = v if v in roots else label[parent[v]]
    return label


def _tree(graph: Graph, members: np.ndarray) -> tuple[list[int], dict[int, int]]:
    """Spanning tree of a connected set from a vertex at its rim, as `_breadth_first`."""
    inside = set(members.tolist())
    return _breadth_first(graph, inside, _breadth_first(graph, inside, int(members[0]))[0][-1])


def _breadth_first(graph: Graph, inside: set[int], root: int) -> tuple[list[int], dict[int, int]]:
    """Vertices of a connected set in the order of a search from `root`, and from where each was reached."""
    order, parent = [root], {root: root}
    for v in order:
        for near in graph.neighbour[graph.start[v] : graph.start[v + 1]].tolist():
            if near in inside and near not in parent:
                parent[near] = v
                order.append(near)
    return order, parent
