"""Congruent cells: those whose trace matrices are the same because their geometry and data are, up to translation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..threads import in_threads, stable_order, stable_order_of

TOLERANCE = 1e-11  # of a cell's extent, by which vertex differences of congruent cells may differ
CHUNK = 1 << 15  # items compared at a time
MANY = 1 / 8  # of the items left, that agree with the first: where as many do the next is tried so
ROUNDING = 16 * 2.0**-52  # of the largest coordinate, likewise


@dataclass(frozen=True)
class Shapes:
    """shape [cell] int32: number of each cell's shape.   representative [shape] int32: its first cell."""

    shape: np.ndarray
    representative: np.ndarray

    @property
    def count(self) -> int:
        return len(self.representative)


def congruent_cells(disc, aux_rows: np.ndarray, most: int) -> Shapes | None:
    """Shapes of a CondensedDiscretization's cells for auxiliary data [row, stride]; None if these are more than `most`,
    or if matrices depend on more than geometry, cell-wise data and natural conditions. Not collective.
    """
    depends = disc.dependence
    count = disc.mesh.num_cells
    if depends.on_place or not count or most < 1:
        return None
    labels, starts = _conditions(disc, depends.natural), disc.auxiliary.starts
    for component in depends.auxiliary:
        labels = _refined(labels, aux_rows[starts[component] : starts[component + 1], : len(labels)])
    return same_geometry(disc.mesh.geometry, labels, most)


def same_geometry(geometry, labels: np.ndarray, most: int) -> Shapes | None:
    """Shapes of the first cells of a Geometry up to translation, cells of different labels [cell] being different."""
    nodes = geometry.nodes[geometry.cell_nodes[: len(labels)]]
    edges = (nodes[:, 1:] - nodes[:, :1]).reshape(len(labels), -1)
    tolerance = TOLERANCE * np.abs(edges).max(axis=1) + ROUNDING * np.abs(nodes).max()
    return group(edges, tolerance, labels, most)


def _conditions(disc, natural: tuple[int, ...]) -> np.ndarray:
    """A number [cell] that tells which conditions with a derivative hold on which facets; its own where one varies."""
    labels = np.zeros(disc.mesh.num_cells, dtype=np.int64)
    cells, facets, condition = disc.natural_facets
    kind = np.array(natural, dtype=np.int64)[condition] if len(condition) else condition
    masks = np.zeros((disc.num_facets_of_cell, len(labels)), dtype=np.int64)
    same = kind == 1
    np.bitwise_or.at(masks, (facets[same], cells[same]), np.left_shift(np.int64(1), condition[same]))
    if same.any():
        labels = _refined(labels, masks)
    varying = np.unique(cells[kind == 2])
    labels[varying] = labels.max(initial=0) + 1 + np.arange(len(varying))
    return labels


def _refined(labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Labels [cell] that also tell apart different values of each of `rows` [row, cell]."""
    for row in rows:
        values, place = np.unique(row, return_inverse=True)
        if len(values) > 1:
            labels = np.unique(labels * len(values) + place.ravel(), return_inverse=True)[1].ravel()
    return labels


def group(data: np.ndarray, tolerance: np.ndarray, labels: np.ndarray, most: int) -> Shapes | None:
    """Items of one label whose rows of data [item, number] agree within `tolerance` [item]; None for more than `most`.

    Items are compared with the first one, then with the first of those left, while many agree. The others are sorted
    by a random combination of their numbers, neighbours closer than the tolerance are compared with the first of them,
    and those that differ are sorted again by another combination. A sample of many items is tried first.
    """
    every = len(data) // (2 * most + 1)
    if every > 1 and group(*(each[::every] for each in (data, tolerance, labels)), most) is None:
        return None
    random = np.random.default_rng(5)
    shape, found = np.full(len(data), -1, dtype=np.int32), []
    left, many = np.arange(len(data)), True
    while len(left) and many and len(found) < most:
        agree = _agreeing(data, tolerance, labels, left)
        shape[left[agree]] = len(found)
        found.append(int(left[0]))
        many = np.count_nonzero(agree) > MANY * len(left)
        left = left[~agree]
    while len(left):
        weights = random.uniform(0.5, 1.5, data.shape[1])
        start, order = _runs(data[left] @ weights, tolerance[left] * weights.sum(), labels[left])
        if len(found) + len(start) > most:
            return None
        members = left[order]
        run = np.repeat(np.arange(len(start)), np.diff(np.append(start, len(members))))
        first = np.minimum.reduceat(members, start)
        agree = np.abs(data[members] - data[first[run]]).max(axis=1, initial=0.0) <= tolerance[first[run]]
        shape[members[agree]] = len(found) + run[agree]
        found += first.tolist()
        left = np.sort(members[~agree])
    by_cell = np.argsort(found, kind="stable")
    number = np.empty(len(found), dtype=np.int32)
    number[by_cell] = np.arange(len(found), dtype=np.int32)
    return Shapes(number[shape], np.array(found, dtype=np.int32)[by_cell])


def _agreeing(data: np.ndarray, tolerance: np.ndarray, labels: np.ndarray, left: np.ndarray) -> np.ndarray:
    """True where items [left] agree with the first of them."""
    first, agree = left[0], np.empty(len(left), bool)

    def compare(begin: int) -> None:
        items = left[begin : begin + CHUNK]
        difference = np.abs(data[items] - data[first]).max(axis=1, initial=0.0)
        agree[begin : begin + CHUNK] = (difference <= tolerance[first]) & (labels[items] == labels[first])

    in_threads(compare, range(0, len(left), CHUNK))
    return agree


def _runs(key: np.ndarray, tolerance: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts of runs of close keys of one label, and the order [item] that makes them."""
    order = stable_order_of([labels, key]) if labels.any() else stable_order(key)
    key, tolerance, labels = key[order], tolerance[order], labels[order]
    gap = np.diff(key) > np.maximum(tolerance[1:], tolerance[:-1])
    return np.flatnonzero(np.concatenate([[True], gap | (np.diff(labels) != 0)])), order
