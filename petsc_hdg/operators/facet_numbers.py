"""Numbers of facets that follow the state of a nonlinear physics: penalties, stabilization."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from mpi4py.MPI import IN_PLACE

from .vectors import Sums

GROWTH = 1.5  # of a number at a state, from which on the one that belongs to another state does not serve
EXCESS = 10.0  # sum over that of another state, from which on numbers do not serve there


class FacetNumbers:
    """Numbers [shape] in a buffer of an operator's device, which belong to a state until the operator's `restart`.
    Subclasses find those of a state by a collective `update(*state)`.

    shape     [component, facet of a cell, stride] or [facet of a cell, stride, component]
    is_known  whether these are the numbers of some state, with the operator's data
    version   another number for each set of them
    keeps_larger  whether `serve` takes the larger numbers of two states, unless those before are too large in total
    """

    keeps_larger, version = False, 0

    def __init__(self, operator, shape: tuple[int, ...], components_first: bool):
        self.op, self.disc, self.arrays = operator, operator.discretization, operator.arrays
        self.shape, self.size = shape, int(np.prod(shape))
        self.buffer = self.arrays.zeros(self.size)
        self.is_known = False
        self._components = shape[0] if components_first else shape[-1]
        entries = self.size // self._components
        self._steps = (entries, entries, 1) if components_first else (entries, 1, self._components)

    @cached_property
    def _sums(self) -> Sums:
        return Sums(self.arrays, "facet_numbers.cl", self._components, NC=self._components)

    @cached_property
    def _before(self):
        return self.arrays.empty(self.size)

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
        self.arrays.copy(self.buffer, self._before, self.size)
        version = self.version
        self.update(*state)
        old, new, grown, _ = self.compared(self._before)
        exceeds = (old > EXCESS * new).any()
        serves = not (exceeds or grown.any())
        if serves:
            self.arrays.copy(self._before, self.buffer, self.size)
            self.version = version
        elif not exceeds and self.keeps_larger:
            self._sums.run("facet_numbers_join", self.size, self._before, self.buffer)
        return serves

    def compared(self, before) -> np.ndarray:
        """Sums [4, component] over all ranks' cells: magnitudes in a buffer `before`, magnitudes now, how many have
        grown, how many there are. Collective."""
        where = *self._steps, max(1, self.disc.stride), self.disc.mesh.num_cells, GROWTH
        sums = self._sums.of("facet_numbers_compare", *where, before, self.buffer).T.copy()
        self.disc.mesh.comm.Allreduce(IN_PLACE, sums)
        return sums

    def raise_to(self, least: np.ndarray) -> None:
        """Raise the numbers to the least value of each component."""
        for c, value in enumerate(least):
            self._sums.run("facet_numbers_raise", *self._steps, c, float(value), self.buffer)

    def values(self) -> np.ndarray:
        """The numbers [shape] on the host."""
        return self.arrays.to_host(self.buffer, self.shape, name="penalties")

    def write(self, values: np.ndarray) -> None:
        """Take numbers [shape] from the host."""
        self.version += 1
        if values.size:
            self.arrays.upload(self.buffer, np.ascontiguousarray(values, self.arrays.real), "penalties")
