"""Boxes for scaling runs: a block of equal size for each rank, coarse on rank 0 and refined where it lies."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2, prod

import numpy as np
from petsc4py import PETSc

from petsc_hdg.database import defaults_in_database
from petsc_hdg.mesh import Mesh, create

COARSE = 8  # boxes along an edge of a rank's block before refinement, at least
SIMPLICES = ("triangle", "tetrahedron")
FLAT = ("triangle", "quadrilateral")


@dataclass(frozen=True)
class Blocks:
    """A box of parts[0] × parts[1] (× parts[2]) blocks, one a rank.

    faces [dim]: boxes before refinement.   upper [dim]: corner, the lower one is 0.   refinements: halvings of edges.
    """

    cell: str
    parts: tuple[int, ...]
    faces: tuple[int, ...]
    upper: tuple[float, ...]
    refinements: int

    @classmethod
    def weak(cls, cell: str, ranks: int, boxes: float) -> Blocks:
        """Blocks of about `boxes` boxes each; the whole grows with the ranks."""
        parts = parts_of(ranks, dimension(cell))
        side, refinements = _coarse(boxes ** (1 / len(parts)), COARSE)
        return cls(cell, parts, tuple(side * n for n in parts), tuple(float(n) for n in parts), refinements)

    @classmethod
    def strong(cls, cell: str, ranks: int, boxes: float, most_ranks: int) -> Blocks:
        """A unit box of about `boxes` boxes, the same for 1 … most_ranks ranks."""
        dim = dimension(cell)
        finest = max(parts_of(most_ranks, dim))
        side, refinements = _coarse(boxes ** (1 / dim), COARSE * finest)
        side = finest * max(1, round(side / finest))
        return cls(cell, parts_of(ranks, dim), (side,) * dim, (1.0,) * dim, refinements)

    @property
    def neighbours(self) -> int:
        """Blocks beside the one that has most of them."""
        return sum(min(2, n - 1) for n in self.parts)

    def owners(self) -> np.ndarray:
        """Rank of each box before refinement [box], boxes in the order of `Mesh.box`."""
        index = np.unravel_index(np.arange(prod(self.faces)), self.faces)
        place = [i * n // size for i, n, size in zip(index, self.parts, self.faces, strict=True)]
        return np.ravel_multi_index(place, self.parts)

    def mesh(self, comm) -> Mesh:
        """The mesh on the ranks of an mpi4py communicator, as many as there are blocks. Collective."""
        dm = create.box(self.faces, self.cell in SIMPLICES, 0.0, self.upper, comm).plex(comm)
        if comm.size > 1:
            self._deal(dm)
        with defaults_in_database("", {"dm_refine": str(self.refinements)}, unless="dm_refine"):
            dm.setFromOptions()
        return Mesh(dm)

    def _deal(self, dm) -> None:
        """Let the cells, all on one rank now, go where their boxes belong."""
        start, end = dm.getHeightStratum(0)
        owners = self.owners()
        target = np.repeat(owners, (end - start) // len(owners)) if end > start else owners[:0]
        sizes = np.bincount(target, minlength=prod(self.parts)).astype(PETSc.IntType)
        partitioner = dm.getPartitioner()
        partitioner.setType(PETSc.Partitioner.Type.SHELL)
        partitioner.setShellPartition(len(sizes), sizes, np.argsort(target, kind="stable").astype(PETSc.IntType))


def dimension(cell: str) -> int:
    """2 or 3."""
    return 2 if cell in FLAT else 3


def parts_of(ranks: int, dim: int) -> tuple[int, ...]:
    """`ranks` as a product of `dim` numbers, as equal as can be, the largest first."""
    if dim == 1:
        return (ranks,)
    divisors = [n for n in range(1, ranks + 1) if ranks % n == 0]
    found = [(n, *parts_of(ranks // n, dim - 1)) for n in divisors]
    return min((tuple(sorted(parts, reverse=True)) for parts in found), key=lambda parts: (sum(parts), parts))


def _coarse(side: float, least: int) -> tuple[int, int]:
    """Boxes along an edge and how often they are halved, for about `side` in the end."""
    refinements = max(0, int(log2(max(side, 1) / least)))
    return max(1, round(side / 2**refinements)), refinements
