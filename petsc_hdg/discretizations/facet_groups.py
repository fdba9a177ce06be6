"""Facets in groups of consecutive numbers, as a product with a dictionary reads them: few bytes a facet."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .facet_kinds import FacetKinds

LOWEST = -(1 << 15)  # of the 16 bits of a neighbour's number


@dataclass(frozen=True)
class FacetGroups:
    """Groups of `size` facets of consecutive numbers; items of a group are its facets, sorted by kind.

    Numbers in a group are counted from its first facet, so that groups of a mesh with a pattern are often the same
    and share their items.

    size   facets of a group, of which the last one may lack some
    heads  [group, 4] int32: which pattern, where its kinds and its far neighbours begin, how many neighbours it has
    entry  [pattern, item] uint16: place of the kind in the group's kinds, times size, plus place of the facet
    place  [pattern, slot - 1, item] uint16: that of the facet in each slot but the first, among the group's facets,
           then its neighbours from `size` on; size + most where there is none
    beside [pattern, most] uint16, as int16: the group's neighbours, ascending, less its first facet; from LOWEST on
           which of its far neighbours
    kinds  [·] int32 kinds of the groups' facets;   far [·] int32 numbers of neighbours beyond 16 bits
    """

    size: int
    heads: np.ndarray
    entry: np.ndarray
    place: np.ndarray
    beside: np.ndarray
    kinds: np.ndarray
    far: np.ndarray

    @property
    def count(self) -> int:
        return len(self.heads)

    @property
    def most(self) -> int:
        """Neighbours of a group, at most."""
        return self.beside.shape[1]

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What the kernels read."""
        return self.heads, self.entry, self.place, self.beside, self.kinds, self.far

    def apart(self) -> FacetGroups:
        """The same with a pattern for each group, and `place` [group, slot - 1, item] int32 the facet itself, -1 where
        there is none."""
        pattern, _, start, _ = self.heads.T
        first = self.size * np.arange(self.count)[:, None]
        offset = self.beside[pattern].view(np.int16).astype(np.int64)
        is_far = offset < LOWEST + self.most
        beside = np.where(is_far, self.far[np.where(is_far, start[:, None] + offset - LOWEST, 0)], first + offset)
        numbers = np.concatenate([first + np.arange(self.size), beside, np.full((self.count, 1), -1)], axis=1)
        place = np.take_along_axis(numbers, self.place[pattern].reshape(self.count, -1).astype(np.int64), axis=1)
        heads = self.heads.copy()
        heads[:, 0] = np.arange(self.count)
        place = place.reshape(self.count, *self.place.shape[1:]).astype(np.int32)
        return replace(self, heads=heads, entry=self.entry[pattern], place=place)

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in self.arrays)


def facet_groups(kinds: FacetKinds, size: int) -> FacetGroups:
    """Groups of the facets of all kinds. size: a power of 2, 256 at most."""
    facets = len(kinds.kind)
    count = -(-facets // size)
    kind = np.full(count * size, kinds.count, dtype=np.int32)
    kind[:facets] = kinds.kind
    kind = kind.reshape(count, size)
    place = np.argsort(kind, axis=1, kind="stable").astype(np.int32)
    kind = np.take_along_axis(kind, place, axis=1)
    listed, start, local = _by_group(kind, np.ones(kind.shape, bool), kinds.count + 1)
    first = size * np.arange(count)[:, None]
    valid = first + place < facets
    entry = np.where(valid, local * size + place, 0).astype(np.uint16)
    where, beside, start_far, far, sizes = _neighbours(kinds.layout.neighbours[1:], first + place, valid, first)
    # A pattern is all that groups may share; kinds and far neighbours are a group's own, by place.
    chosen, pattern = _distinct(np.concatenate([entry, where.reshape(count, -1), beside], axis=1))
    heads = np.stack([pattern, start, start_far, sizes], axis=1).astype(np.int32)
    listed = np.append(np.minimum(listed, max(0, kinds.count - 1)), 0).astype(np.int32)
    return FacetGroups(size, heads, entry[chosen], where[chosen], beside[chosen], listed, far)


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One of each kind of rows [row, uint16], and which kind each row is: by a sum of their numbers with random
    weights, or if rows of one sum differ by the rows themselves."""
    words = np.zeros((len(rows), -(-rows.shape[1] // 4) * 4), dtype=np.uint16)
    words[:, : rows.shape[1]] = rows
    words = words.view(np.uint64)
    keys = np.zeros(len(rows), dtype=np.uint64)
    for weight, column in zip(
        np.random.default_rng(5).integers(1, 2**63, words.shape[1], np.uint64), words.T, strict=True
    ):
        keys += (weight | np.uint64(1)) * column
    _, chosen, kind = np.unique(keys, return_index=True, return_inverse=True)
    if (words[chosen[kind]] != words).any():
        _, chosen, kind = np.unique(
            words.view(f"V{8 * words.shape[1]}").ravel(), return_index=True, return_inverse=True
        )
    return chosen, kind.ravel()


def _by_group(numbers: np.ndarray, chosen: np.ndarray, most: int):
    """Distinct chosen numbers [·] < most of each group, ascending, one group after the other, where each group's begin,
    and the place of each number [group, …] among its group's (where not chosen: 0)."""
    group = np.broadcast_to(np.arange(len(numbers)).reshape(-1, *[1] * (numbers.ndim - 1)), numbers.shape)[chosen]
    keys, place = np.unique(group.astype(np.int64) * most + numbers[chosen], return_inverse=True)
    of_group, listed = np.divmod(keys, most)
    start = np.searchsorted(of_group, np.arange(len(numbers)))
    found = np.zeros(numbers.shape, dtype=np.int64)
    found[chosen] = place.ravel() - start[group]
    return listed, start, found


def _neighbours(neighbours: np.ndarray, facet: np.ndarray, valid: np.ndarray, first: np.ndarray):
    """Of groups: `place` and `beside` as FacetGroups has them, where far neighbours begin, these, and how many
    neighbours there are."""
    count, size = facet.shape
    found = neighbours[:, np.where(valid, facet, 0)].transpose(1, 0, 2)
    there = (found >= 0) & valid[:, None]
    outside = there & ((found < first[:, None]) | (found >= first[:, None] + size))
    listed, start, place = _by_group(found, outside, neighbours.shape[1] + 1)
    sizes = np.diff(np.append(start, len(listed)))
    most = max(1, int(sizes.max(initial=0)))
    where = np.where(outside, size + place, np.where(there, found - first[:, None], size + most)).astype(np.uint16)
    group = np.repeat(np.arange(count), sizes)
    offset = listed - first[group, 0]
    is_far = (offset < LOWEST + most) | (offset >= -LOWEST)
    before = np.concatenate([[0], np.cumsum(is_far)])
    start_far = before[start]
    beside = np.zeros((count, most), dtype=np.int16)
    number = np.where(is_far, LOWEST + before[:-1] - start_far[group], offset)
    beside[group, np.arange(len(listed)) - start[group]] = number
    return where, beside.view(np.uint16), start_far, np.append(listed[is_far], 0).astype(np.int32), sizes
