"""Graphs whose vertices are cells or polytopes and whose edges are shared facets, as compressed lists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Graph:
    """An undirected graph; each edge stands in it twice.

    start      [vertex + 1] int64: where the neighbours of each vertex begin
    neighbour  [entry] int64: ascending within a vertex
    shared     [entry] int64: facets that the two share
    weights    [vertex] float64: cost of each vertex
    """

    start: np.ndarray
    neighbour: np.ndarray
    shared: np.ndarray
    weights: np.ndarray

    @classmethod
    def from_pairs(cls, pairs: np.ndarray, weights: np.ndarray, shared: np.ndarray | None = None) -> Graph:
        """The graph of pairs [pair, 2] of different vertices; those given several times are one edge, summed."""
        n = len(weights)
        a, b = pairs.T.astype(np.int64)
        key = np.concatenate([a * n + b, b * n + a])
        if shared is None:
            key.sort()
            first = np.flatnonzero(np.diff(key, prepend=-1))
            shared = np.diff(first, append=len(key))
        else:
            order = np.argsort(key, kind="stable")
            key, shared = key[order], np.concatenate([shared, shared])[order]
            first = np.flatnonzero(np.diff(key, prepend=-1))
            shared = np.add.reduceat(shared, first) if len(first) else shared
        row, neighbour = np.divmod(key[first], max(n, 1))
        start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])
        return cls(start, neighbour, shared, np.asarray(weights, float))

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        return len(self.weights)

    def rows(self) -> np.ndarray:
        """Vertex that each entry belongs to [entry]."""
        return np.repeat(np.arange(self.num_vertices), np.diff(self.start))

    def components(self, part: np.ndarray) -> np.ndarray:
        """Smallest vertex of the connected piece of its part that each vertex lies in [vertex]; part [vertex]."""
        row = self.rows()
        inside = (part[row] == part[self.neighbour]) & (row < self.neighbour)
        a, b = row[inside], self.neighbour[inside]
        label = np.arange(self.num_vertices)
        while len(a):
            low, high = np.minimum(label[a], label[b]), np.maximum(label[a], label[b])
            np.minimum.at(label, high, low)  # labels are roots here: hook each to its smallest neighbour
            while (label[label] != label).any():
                label = label[label]
            apart = label[a] != label[b]
            a, b = a[apart], b[apart]
        return label

    def within(self, part: np.ndarray) -> Graph:
        """The graph without the edges between different parts; part [vertex]."""
        row = self.rows()
        kept = (part[row] == part[self.neighbour]) & (row < self.neighbour)
        return Graph.from_pairs(np.stack([row, self.neighbour], axis=1)[kept], self.weights, self.shared[kept])

    def quotient(self, part: np.ndarray, count: int) -> Graph:
        """The graph of `count` parts; part [vertex]."""
        a, b = part[self.rows()], part[self.neighbour]
        across = a < b
        weights = np.bincount(part, self.weights, minlength=count)
        return Graph.from_pairs(np.stack([a, b], axis=1)[across], weights, self.shared[across])


def by_first(part: np.ndarray) -> np.ndarray:
    """Parts [vertex] numbered anew 0, 1, … in the order in which they first occur."""
    _, first, part = np.unique(part, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return number[part]
