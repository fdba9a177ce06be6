"""Agreement about mesh points that several ranks hold, through the DM's point star forest."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from ..petsc import c_library


class PointExchange:
    """Sums and logical ors over all copies of each point of a DMPlex. Every method is collective.

    Arrays have one entry for each point of the chart [point].
    """

    def __init__(self, dm, comm):
        self.comm = comm
        self.sf = dm.getPointSF()
        self.chart = dm.getChart()
        self._leaves = c_library.shared_points(dm) if comm.size > 1 else None
        self.active = bool(comm.allreduce(int(self._leaves is not None), MPI.MIN))

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Sum over all copies [point] int32 or float, the same on every rank that holds the point."""
        values = np.ascontiguousarray(values, float if np.asarray(values).dtype.kind == "f" else np.int32)
        root = values.copy()
        if not self.active:
            return root
        self.sf.reduceBegin(_unit(values), values, root, MPI.SUM)
        self.sf.reduceEnd(_unit(values), values, root, MPI.SUM)
        return self.from_owners(root)

    def from_owners(self, values: np.ndarray) -> np.ndarray:
        """The value [point] int32 or float of the rank that owns a point, at all copies of it."""
        result = values.copy()
        if self.active:
            self.sf.bcastBegin(_unit(values), values, result, MPI.REPLACE)
            self.sf.bcastEnd(_unit(values), values, result, MPI.REPLACE)
        return result

    def any(self, mask: np.ndarray) -> np.ndarray:
        """Logical or over all copies [point] bool."""
        return self.sum(mask) > 0 if self.active else np.array(mask, bool)

    def owned(self) -> np.ndarray:
        """Points that this rank owns [point] bool: those that are no leaf of the star forest."""
        start, end = self.chart
        mask = np.ones(end - start, bool)
        if self.active:
            mask[self._leaves - start] = False
        return mask


def _unit(values: np.ndarray) -> MPI.Datatype:
    return MPI.DOUBLE if values.dtype.kind == "f" else MPI.INT32_T
