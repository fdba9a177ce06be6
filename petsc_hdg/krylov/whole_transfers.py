"""Transfers between a level that ranks share and a coarser one that each rank has as a whole: one all-gather a cycle.

Interpolation reads the coarse numbers that are there. Restriction applies a rank's transposed rows to its own
residuals, gathers these parts of coarse numbers, and adds up the parts of each in the order of the ranks.
"""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ..device import AllGather, gathered
from ..petsc import csr
from ..threads import stable_order
from .sell_matrix import SellMatrix, cached, rows_of


class WholeTransfers:
    """Of an assembled interpolation [fine, coarse] with rows on several ranks, and its transpose. Collective to make.

    interpolation: `add(x, y)`, buffers [coarse of all ranks], [fine of this rank].   gather: AllGather
    """

    def __init__(self, mat: PETSc.Mat, arrays):
        starts, columns, values = rows_of(mat)
        count, total = len(starts) - 1, mat.getSize()[1]
        is_touched = np.zeros(total, bool)
        is_touched[columns] = True
        touched, local = np.flatnonzero(is_touched), (np.cumsum(is_touched) - 1).take(columns)
        rows = _matrix(count, total, starts, columns, values)
        parts = _matrix(count, len(touched), starts, local, values).transpose(PETSc.Mat())
        self.interpolation = SellMatrix(rows, arrays)
        self._restriction = SellMatrix(parts, arrays)
        comm = mat.comm.tompi4py()
        self.gather = AllGather(comm, len(touched), arrays)
        places = gathered(comm, touched)
        ends = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=total))])
        order = stable_order(places.astype(np.int32))
        self._sum = SellMatrix(_matrix(total, len(places), ends, order, np.ones(len(places))), arrays)
        self._part, self._parts = (arrays.zeros(max(1, size)) for size in (len(touched), len(places)))

    def apply(self, r, b) -> None:
        """b [coarse of all ranks] = restricted r [fine of this rank]. Collective."""
        self._restriction.apply(r, self._part)
        self.gather.gather(self._part, self._parts)
        self._sum.apply(self._parts, b)


def whole_transfers(mat: PETSc.Mat, arrays) -> WholeTransfers:
    """The WholeTransfers of an interpolation with its present values, shared by all callers. Collective."""
    return cached(mat, ("transfers", id(arrays.device), arrays.precision), lambda: WholeTransfers(mat, arrays))


def _matrix(rows: int, columns: int, starts, numbers, values) -> PETSc.Mat:
    """AIJ of this rank alone."""
    return csr.aij(((rows, rows), (columns, columns)), 1, starts, numbers, PETSc.COMM_SELF, values)
