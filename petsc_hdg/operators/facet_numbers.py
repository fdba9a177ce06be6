"""Numbers of facets that follow the state of a nonlinear physics: penalties, stabilization."""

from __future__ import annotations

import numpy as np
from mpi4py.MPI import SUM

GROWTH = 1.5  # of a number at a state, from which on the one that belongs to another state does not serve
EXCESS = 10.0  # sum over that of another state, from which on numbers do not serve there


class FacetNumbers:
    """Numbers [shape] in a buffer of an operator's device, which belong to a state until the operator's `restart`.

    is_known: whether these are the numbers of some state, with the operator's data.
    """

    def __init__(self, operator, shape: tuple[int, ...]):
        self.op, self.disc, self.arrays = operator, operator.discretization, operator.arrays
        self.shape = shape
        self.buffer = self.arrays.zeros(int(np.prod(shape)))
        self.is_known = False

    def update(self, *state) -> None:
        """Find the numbers of a state. Collective."""
        raise NotImplementedError

    def ensure(self, *state) -> None:
        """Find the numbers, if they are not known. Collective."""
        if not self.is_known:
            self.update(*state)

    def serve(self, *state) -> bool:
        """Return True if the numbers suit a state: nowhere too small, nor too large in total; otherwise, or if none are
        known, update them. Collective."""
        if not self.is_known:
            self.update(*state)
            return False
        before = self.values()
        self.update(*state)
        now = self.values()
        old, new = self.by_component(before), self.by_component(now)
        sums = [each.sum(axis=1, dtype=float) for each in (old, new)]
        *sums, grown = self.disc.mesh.comm.allreduce(np.array([*sums, (new > GROWTH * old).any(axis=1)]), SUM)
        exceeds = (sums[0] > EXCESS * sums[1]).any()
        serves = not (exceeds or grown.any())
        self.write(before if serves else now if exceeds else self.joined(before, now))
        return serves

    def joined(self, before: np.ndarray, now: np.ndarray) -> np.ndarray:
        """Return the numbers that replace those of two states, where those before are not too large in total."""
        return now

    def by_component(self, values: np.ndarray) -> np.ndarray:
        """Magnitudes [component, facet of a cell] on this rank's cells."""
        raise NotImplementedError

    def values(self) -> np.ndarray:
        """The numbers [shape] on the host."""
        return self.arrays.to_host(self.buffer, self.shape, name="penalties")

    def write(self, values: np.ndarray) -> None:
        """Take numbers [shape] from the host."""
        if values.size:
            self.arrays.upload(self.buffer, np.ascontiguousarray(values, self.arrays.real), "penalties")
