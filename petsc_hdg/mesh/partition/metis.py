"""Connected parts of a graph of about equal cost, by METIS.

Connected sets of vertices are cut along the branches of spanning trees, all sets at a time.
"""

from __future__ import annotations

import heapq

import numpy as np

from ...errors import MeshError
from ...petsc.c_library import kept_from_output
from ...value_checks import plural
from ..graph import Graph, by_first
from ..order import cells_of

FEW = 16  # vertices a part below which METIS fails here and there: it makes parts of ROUGH vertices, divided further
ROUGH = 32
MEAN = 100  # weight of a vertex of mean cost: partitioners take whole numbers
MOST = 2**30  # sum of all weights, which METIS may add up in 32 bits
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
        raise MeshError(
            "METIS makes polytopes, and pymetis cannot be imported; pip install pymetis, or give your own groups."
        ) from None
    zeros, kway = np.zeros(n, np.int64), count <= KWAY
    contiguous = kway and not graph.components(zeros).any()
    weights = None if np.ptp(graph.weights) == 0 else whole_weights(graph.weights, graph.weights.mean(), n)
    with kept_from_output() as said:  # METIS prints that it leaves parts empty, which is no fault here
        try:
            found = pymetis.part_graph(
                count,
                pymetis.CSRAdjacency(graph.start, graph.neighbour),
                vweights=weights,
                eweights=None if (graph.shared == 1).all() else graph.shared,
                recursive=not kway,
                options=pymetis.Options(contig=int(contiguous), seed=1),
            )
        except RuntimeError as error:
            raise MeshError(
                f"METIS cannot make {count} parts of {plural(n, 'cell')} ({said() or error}); ask for fewer."
            ) from None
    return np.asarray(found.vertex_part, np.int64)


def whole_weights(costs: np.ndarray, mean: float, count: int) -> np.ndarray:
    """Costs [vertex] as positive whole numbers [vertex] int64.

    mean, count: of the whole graph, of which these vertices may be a part; the mean cost becomes MEAN, or less where
    the weights of all vertices would exceed MOST.
    """
    return np.maximum(1, np.rint(costs * (min(MEAN, MOST / max(count, 1)) / mean))).astype(np.int64)


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
    part, known = part.copy(), {}
    for new in range(count, count + times):
        if queue[0][1] not in known:  # those whose turn may come, all at a time
            likely = {k: members for _, k, members in heapq.nsmallest(count + times - new, queue) if k not in known}
            known.update(zip(likely, halves(graph, list(likely.values())), strict=True))
        old = heapq.heappop(queue)[1]
        for number, half in zip((old, new), known.pop(old), strict=True):
            part[half] = number
            if len(half) > 1:
                heapq.heappush(queue, (-graph.weights[half].sum(), number, half))
    return part


def _divided(graph: Graph, part: np.ndarray, count: int) -> np.ndarray:
    """Parts [vertex] divided into at most `count` smaller ones, each connected and of about equal cost.

    Branches of a spanning tree of each part become parts as soon as they weigh enough.
    """
    weights, (start, members) = np.bincount(part, graph.weights), cells_of(part, int(part.max()) + 1)
    shares = shared_out(weights, count, np.diff(start))
    sets = [members[a:b] for a, b in zip(start[:-1], start[1:], strict=True)]
    vertices, branch = branches(graph, sets, weights / shares * (1 - 1e-9))
    root = np.empty(graph.num_vertices, np.int64)
    root[vertices] = branch
    return np.unique(root, return_inverse=True)[1]


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


def branches(graph: Graph, sets: list[np.ndarray], shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices of disjoint connected sets [vertex], and the root of the branch in which each lies [vertex].

    Branches of a spanning tree of each set are cut off as soon as they weigh its share [set], so that they weigh little
    more, as the tree allows.
    """
    trees = _Trees(graph, sets)
    below, roots = trees.cut(shares)
    later = trees.order[len(sets) :]
    later = later[roots[later]]
    of_set, place = np.unique(trees.of[later], return_index=True)
    light = (below[trees.first] < shares / 2)[of_set]
    roots[later[place[light]]] = False  # what is left over joins the branch beside it
    return trees.members, trees.members[trees.labels(roots)]


def halves(graph: Graph, sets: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two connected halves of each connected set of two vertices or more, cut where they weigh about the same.

    The half at the rim of the set comes first, vertices in the order of a search from there.
    """
    trees = _Trees(graph, sets)
    below, roots = trees.cut(np.full(len(sets), np.inf))
    after = trees.order[len(sets) :]
    of_set = trees.of[after]
    uneven = np.abs(2 * below[after] - below[trees.first][of_set])
    best = np.lexsort((np.arange(len(after)), uneven, of_set))
    roots[after[best[np.flatnonzero(np.diff(of_set[best], prepend=-1))]]] = True
    of_set = trees.of[trees.order]
    lower = trees.labels(roots)[trees.order] != trees.first[of_set]
    half = 2 * of_set + lower
    order = trees.members[trees.order[np.argsort(half, kind="stable")]]
    pieces = np.split(order, np.cumsum(np.bincount(half, minlength=2 * len(sets)))[:-1])
    return list(zip(pieces[::2], pieces[1::2], strict=True))


class _Trees:
    """Spanning trees of connected sets, each by a breadth-first search from a vertex at its rim; vertices are numbered
    set after set.

    members  [vertex] vertex of the graph;   of  [vertex] its set
    order    vertices, those at the same distance from their roots together, of each set in the order of its search
    levels   [distance + 1] places in `order`;   first  [set] roots;   parent  [vertex]
    """

    def __init__(self, graph: Graph, sets: list[np.ndarray]):
        self.members = np.concatenate(sets)
        self.of = np.repeat(np.arange(len(sets)), [len(members) for members in sets])
        self._weights = graph.weights[self.members]
        self._start, self._near = self._inside(graph)
        self._search(np.cumsum([0, *(len(members) for members in sets[:-1])]))
        rim = np.empty(len(sets), np.int64)
        rim[self.of[self.order]] = self.order  # the last of each set
        self._search(rim)

    def _inside(self, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
        """First entry [vertex + 1] and neighbours [entry] within the sets."""
        number = np.zeros(graph.num_vertices, np.int64)  # from 1: few of its pages are touched where the sets are small
        number[self.members] = np.arange(len(self.members)) + 1
        entries, row = _joined_sets(graph.start, self.members)
        near = number[graph.neighbour[entries]] - 1
        kept = (near >= 0) & (self.of[near] == self.of[row])
        counts = np.bincount(row[kept], minlength=len(self.members))
        return np.concatenate([[0], np.cumsum(counts)]), near[kept]

    def _search(self, roots: np.ndarray) -> None:
        self.first, self.parent = roots, np.zeros(len(self.members), np.int64)
        seen = np.zeros(len(self.members), bool)
        seen[roots] = True
        found = [roots]
        while len(found[-1]):
            entries, row = _joined_sets(self._start, found[-1])
            near = self._near[entries]
            fresh = np.flatnonzero(~seen[near])
            fresh = fresh[np.sort(np.unique(near[fresh], return_index=True)[1])]
            new = near[fresh]
            self.parent[new], seen[new] = found[-1][row[fresh]], True
            found.append(new)
        self.order, self.levels = np.concatenate(found), np.cumsum([0, *map(len, found)])

    def _deeper(self) -> list[np.ndarray]:
        """Vertices at each distance from the roots but zero, the nearest first."""
        return [self.order[a:b] for a, b in zip(self.levels[1:-1], self.levels[2:], strict=True)]

    def cut(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weight [vertex] of the branch below each vertex, without what is cut off, and whether it is a root [vertex]:
        of its tree, or of a branch that weighs a share [set] or more."""
        below, roots = self._weights.copy(), np.zeros(len(self.members), bool)
        for level in reversed(self._deeper()):
            roots[level] = below[level] >= shares[self.of[level]]
            kept = level[~roots[level]][::-1]
            np.add.at(below, self.parent[kept], below[kept])
        roots[self.first] = True
        return below, roots

    def labels(self, roots: np.ndarray) -> np.ndarray:
        """The root [vertex] above each vertex."""
        label = np.arange(len(self.members))
        for level in self._deeper():
            kept = level[~roots[level]]
            label[kept] = label[self.parent[kept]]
        return label


def _joined_sets(start: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Entries of some rows of a compressed list, one row after the other, and the place in `rows` of each entry's."""
    sizes = start[rows + 1] - start[rows]
    first = np.cumsum(sizes) - sizes
    row = np.repeat(np.arange(len(rows)), sizes)
    return (start[rows] - first)[row] + np.arange(len(row)), row
