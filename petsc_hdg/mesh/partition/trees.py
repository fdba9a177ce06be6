"""Connected sets of vertices of a graph, cut along the branches of spanning trees: all sets at a time."""

from __future__ import annotations

import numpy as np

from ..graph import Graph


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
        entries, row = _joined(graph.start, self.members)
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
            entries, row = _joined(self._start, found[-1])
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


def _joined(start: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Entries of some rows of a compressed list, one row after the other, and the place in `rows` of each entry's."""
    sizes = start[rows + 1] - start[rows]
    first = np.cumsum(sizes) - sizes
    row = np.repeat(np.arange(len(rows)), sizes)
    return (start[rows] - first)[row] + np.arange(len(row)), row
