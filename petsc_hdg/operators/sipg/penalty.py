"""Penalties of interior penalty on a device: found from the physics, and grown where a solution needs more."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from mpi4py.MPI import MAX, MIN

from ...discretizations.base import cell_fastest
from ..facet_numbers import FacetNumbers


class SIPGPenalty(FacetNumbers):
    """The penalties [component, facet of the cell, stride] of an interior penalty operator, and the launch that finds
    them: 0 where a facet has no term, negative where the diffusivity is.
    """

    keeps_larger = True

    def __init__(self, operator):
        disc = operator.discretization
        shape = disc.physics.num_components, disc.num_facets_of_cell, disc.stride
        super().__init__(operator, shape, components_first=True)
        self.factor = 1.0  # of what the formula gives

    @cached_property
    def _side_numbers(self):
        """Buffer [facet of the cell, stride] of the discretization's `side_numbers`, or None."""
        numbers = self.disc.side_numbers
        return (
            None if numbers is None else self.arrays.to_device(cell_fastest(numbers.T, self.disc.stride), "penalties")
        )

    @cached_property
    def least(self):
        """Buffer [component, stride] of the least trace of the diffusivity in extended cells, or None."""
        disc = self.disc
        return self.arrays.zeros(disc.physics.num_components * disc.stride) if disc.sees_least else None

    def update(self, vector, rate, t: float, alone: bool = False) -> None:
        """Find the penalties of a state. Collective, unless `alone`: each base cell of polytopes then sees the least
        diffusivity of its own."""
        op, disc, kernels = self.op, self.disc, self.op.penalty_kernels
        cells, given = disc.mesh.num_cells, {"numbers": self._side_numbers, "least": self.least}
        if disc.sees_least:
            extended, kernel = cells + disc.neighbours.num_ghosts, kernels["sipg_least"]
            kernel.launch(extended, op.arguments(kernel, extended, vector, rate, t=t, **given))
            if disc.element_of_cell is not None and not alone:
                values = disc.least_of_elements(self.least_values()[:, :cells])
                self.arrays.upload(self.least, cell_fastest(values.T, disc.stride), "penalties")
        kernel = kernels["sipg_penalty"]
        kernel.launch(cells, op.arguments(kernel, cells, vector, rate, t=t, **given))
        if self.factor != 1:
            self.write(self.factor * self.values())
        self.is_known = True

    def least_values(self) -> np.ndarray:
        """The least traces [component, stride] on the host."""
        return self.arrays.to_host(self.least, (self.disc.physics.num_components, self.disc.stride), name="penalties")

    def owned(self) -> np.ndarray:
        """Penalties of owned cells [component, facet of the cell, cell] on the host."""
        return self.values()[:, :, : self.disc.mesh.num_cells]

    def range(self) -> tuple[float, float]:
        """The least penalty of a facet and the largest, of all ranks; the largest is 0 if none is known. Collective."""
        comm = self.disc.mesh.comm
        found = np.abs(self.owned()) if self.is_known else np.zeros(0)
        low = comm.allreduce(found[found > 0].min(initial=np.inf), MIN)
        return low, comm.allreduce(found.max(initial=0.0), MAX)
