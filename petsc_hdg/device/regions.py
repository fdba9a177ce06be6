"""Blocks of memory with a part of each rank of a node, cut into regions."""

from __future__ import annotations

import weakref

from mpi4py import MPI

_ALIGNMENT = 4096
_SMALLEST, _LARGEST = 1 << 20, 1 << 27  # bytes of a block with room for other regions


class Block:
    """Memory of the ranks of a node, and the holes [start, size] in this rank's part.

    parts [rank of the node]
    """

    def __init__(self, size: int):
        self.size, self.parts = size, []
        self._holes = [(0, size)]

    def take(self, size: int) -> int | None:
        """Start of a hole of so many bytes, filled from now on."""
        for i, (start, room) in enumerate(self._holes):
            if room >= size:
                self._holes[i : i + 1] = [(start + size, room - size)] if room > size else []
                return start
        return None

    def give_back(self, start: int, size: int) -> None:
        """Free bytes that `take` has filled."""
        merged: list[tuple[int, int]] = []
        for hole in sorted([*self._holes, (start, size)]):
            if merged and sum(merged[-1]) == hole[0]:
                merged[-1] = merged[-1][0], merged[-1][1] + hole[1]
            else:
                merged.append(hole)
        self._holes = merged


class Region:
    """Bytes `start` … `start + size` of this rank's part of a block; they serve others once the region is gone."""

    def __init__(self, block: Block, number: int, start: int, size: int):
        self.number, self.start, self.size = number, start, size
        weakref.finalize(self, block.give_back, start, size).atexit = False


class Pool:
    """Blocks of the ranks of a node, cut into regions; more are made as they are needed, by a collective `_made(size)`
    of subclasses: a block of so many bytes of each rank, None where there is no room.

    Parts of a rank that is done with its region serve again: a region's readers have read before a new one is made.
    """

    def __init__(self, local):
        self.local = local
        self._blocks: list = []

    def region(self, nbytes: int) -> Region | None:
        """Memory of this rank that the others use, or None where there is no room for them all. Collective."""
        wanted = -(-max(1, int(nbytes)) // _ALIGNMENT) * _ALIGNMENT
        found = next(((b, at) for b, block in enumerate(self._blocks) if (at := block.take(wanted)) is not None), None)
        if self.local.allreduce(int(found is None), MPI.MAX):
            if found is not None:
                self._blocks[found[0]].give_back(found[1], wanted)
            if not self._grow(self.local.allreduce(wanted, MPI.MAX)):
                return None
            found = len(self._blocks) - 1, self._blocks[-1].take(wanted)
        return Region(self._blocks[found[0]], *found, wanted)

    def _grow(self, wanted: int) -> bool:
        last = self._blocks[-1].size if self._blocks else 0
        block = self._made(max(wanted, min(max(_SMALLEST, 2 * wanted, last), _LARGEST)))
        if block is not None:
            self._blocks.append(block)
        return block is not None
