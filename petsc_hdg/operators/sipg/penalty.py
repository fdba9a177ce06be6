"""Penalties of interior penalty on a device: found from the physics, and grown where a solution needs more."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from mpi4py.MPI import MAX, MIN

from ...discretizations.base import cell_fastest

GROWTH = 1.5  # of the normal diffusivity at a solution that the factor of the penalty makes up for


class SIPGPenalty:
    """The penalties of an interior penalty operator, and the launch that finds them.

    sigma: buffer [component, facet of the cell, stride], 0 where a facet has no term, negative where the diffusivity
    is.   is_known: whether these are the penalties of the operator's data.
    """

    def __init__(self, operator):
        self.op, self.disc, self.arrays = operator, operator.discretization, operator.arrays
        self._shape = (self.disc.physics.num_components, self.disc.num_facets_of_cell, self.disc.stride)
        self.sigma = self.arrays.zeros(int(np.prod(self._shape)))
        self.is_known = False

    @cached_property
    def _side_numbers(self):
        """Buffer [facet of the cell, stride] of the discretization's `side_numbers`, or None."""
        numbers = self.disc.side_numbers
        return (
            None if numbers is None else self.arrays.to_device(cell_fastest(numbers.T, self.disc.stride), "penalties")
        )

    def update(self, vector, rate, t: float, grow: bool = False) -> None:
        """Find the penalties of a state; grow: only larger ones replace those there are."""
        op, disc, kernel = self.op, self.disc, self.op.kernels["sipg_penalty"]
        arguments = op.arguments(kernel, disc.mesh.num_cells, vector, rate, t=t)
        items = disc.num_facets_of_cell * disc.stride
        kernel(items, *arguments, op.neighbour, op.code, self.sigma, op.kinds, int(grow), self._side_numbers)
        self.is_known = True

    def ensure(self, vector, rate, t: float) -> None:
        """Find the penalties, if they are not known."""
        if not self.is_known:
            self.update(vector, rate, t)

    def grows(self, vector, rate) -> bool:
        """Whether a state needs larger penalties, which are taken then; else they stay as they are. Collective."""
        before = self.values()
        self.update(vector, rate, 0.0, grow=True)
        grown = bool((np.abs(self.values()) > GROWTH * np.abs(before)).any())
        if self.disc.mesh.comm.allreduce(int(grown)):
            return True
        self.arrays.upload(self.sigma, before, "penalties")
        return False

    def values(self) -> np.ndarray:
        """`sigma` [component, facet of the cell, stride] on the host."""
        return self.arrays.to_host(self.sigma, self._shape, name="penalties")

    def owned(self) -> np.ndarray:
        """The same of owned cells [component, facet of the cell, cell]."""
        return self.values()[:, :, : self.disc.mesh.num_cells]

    def range(self) -> tuple[float, float]:
        """The least penalty of a facet and the largest, of all ranks; the largest is 0 if none is known. Collective."""
        comm = self.disc.mesh.comm
        found = np.abs(self.owned()) if self.is_known else np.zeros(0)
        low = comm.allreduce(found[found > 0].min(initial=np.inf), MIN)
        return low, comm.allreduce(found.max(initial=0.0), MAX)
