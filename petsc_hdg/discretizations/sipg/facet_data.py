"""Data of a facet's terms from the cell behind it: fewer numbers than the cell has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...reference import facet_quadrature

ZERO = 1e-12  # below which a weight, or a function on a facet, is rounding


@dataclass(frozen=True)
class FacetData:
    """Functions of a cell that have a given one's values and normal derivatives on a facet, zero at most nodes.

    Terms of interior penalty on the facet are the same for both, so that these numbers stand for the whole cell.

    nodes    [F, sent] nodes of the cell where the stand-in for facet F is not zero
    start    [F sent + 1], node, weight [entry]: its value at each as weights of the values at the cell's nodes
    """

    nodes: np.ndarray
    start: np.ndarray
    node: np.ndarray
    weight: np.ndarray

    @property
    def sent(self) -> int:
        return self.nodes.shape[1]


def facet_data(cell: str, element, order: np.ndarray) -> FacetData | None:
    """The stand-ins of a nodal element on each facet, None where they need all nodes.

    order [node]: the element's number of each node of the cell's rows.
    """
    rules, normals = facet_quadrature(cell, 2 * element.degree)
    found = []
    for rule, normal in zip(rules, normals, strict=True):
        table = element.tabulate(rule.points, 1)[:, :, order]
        found.append(_on_facet(table[0], np.tensordot(normal, table[1:], 1)))
    nodes = np.array([nodes for nodes, _ in found])
    if nodes.shape[1] == element.num_basis:
        return None
    weights = np.concatenate([weights for _, weights in found])
    rows, node = np.nonzero(weights)
    start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(weights)))])
    return FacetData(nodes.astype(np.int32), start.astype(np.int32), node.astype(np.int32), weights[rows, node])


def _on_facet(values: np.ndarray, slopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes [sent] and weights [sent, node] from functions' values and normal derivatives [point, node] on a facet.

    Values are given by the nodes on the facet; of the others, as many as normal derivatives have dimensions stand for
    all, those with the largest derivatives first.
    """
    on = np.abs(values).max(axis=0) > ZERO
    inside = np.flatnonzero(~on)
    chosen = inside[_independent(slopes[:, inside])]
    weights = np.zeros((int(on.sum()) + len(chosen), values.shape[1]))
    weights[np.arange(on.sum()), np.flatnonzero(on)] = 1.0
    weights[on.sum() :, inside] = np.linalg.lstsq(slopes[:, chosen], slopes[:, inside], rcond=None)[0]
    weights[np.abs(weights) < ZERO] = 0.0
    return np.concatenate([np.flatnonzero(on), chosen]), weights


def _independent(columns: np.ndarray) -> list[int]:
    """Numbers of columns of [row, column] that span them all: each the one that the ones before say least of."""
    left, least, chosen = columns.copy(), None, []
    while True:
        sizes = np.linalg.norm(left, axis=0)
        column = int(sizes.argmax())
        least = 1e-9 * sizes[column] if least is None else least
        if sizes[column] <= least:
            return chosen
        chosen.append(column)
        direction = left[:, column] / sizes[column]
        left -= np.outer(direction, direction @ left)
