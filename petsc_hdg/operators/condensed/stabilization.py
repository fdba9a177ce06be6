"""The automatic stabilization of hybridizable DG for nonlinear physics: found at a state, facet by facet."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from mpi4py.MPI import SUM

from ...device import Kernel, kernels_of
from ..facet_numbers import FacetNumbers

FLOOR = 0.1  # least tau, of the mean over the mesh: where a diffusivity vanishes at one state, it may not at the next


class Stabilization(FacetNumbers):
    """tau [facet of the cell, stride, component] of a condensed operator at the state of trace and interior.

    It stays as it is while Newton's method goes on, so that the Jacobian is exact, and is found anew between solves.
    """

    def __init__(self, operator):
        disc = operator.discretization
        super().__init__(operator, (disc.num_facets_of_cell, max(1, disc.stride), disc.components))

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`hdg_stabilization`."""
        return kernels_of({"hdg_stabilization": self.disc.stabilization_spec()}, self.op.device)

    def found(self, trace, interior, t: float) -> np.ndarray:
        """Stabilization at a state [shape], 0 where there is none. Not collective once ghosts have come."""
        kernel = self.kernels["hdg_stabilization"]
        out = self.arrays.zeros(int(np.prod(self.shape)))
        self.op.local.launch(kernel, (0, self.disc.mesh.num_cells), trace, interior, t, found=out)
        return self.arrays.to_host(out, self.shape, name="penalties").astype(float)

    def update(self, trace, interior, t: float) -> None:
        """Find tau of a state, up or down. Collective."""
        trace.end()
        values = self.found(trace, interior, t)
        means = self._means(values)
        floor = np.where(means > 0, FLOOR * means, 1.0)
        self.give(np.maximum(values, floor))

    def give(self, values: np.ndarray) -> None:
        """Take tau [shape] until the operator's `restart`."""
        self.write(values)
        self.is_known = True

    def scale(self, factor: float) -> None:
        """Multiply tau, until it is found anew."""
        self.write(factor * self.values())

    def _means(self, values: np.ndarray) -> np.ndarray:
        """Means [component] over the facets of all ranks' cells. Collective."""
        magnitudes = self.by_component(values)
        sums = np.append(magnitudes.sum(axis=1, dtype=float), magnitudes.shape[1])
        sums = self.disc.mesh.comm.allreduce(sums, SUM)
        return sums[:-1] / max(1.0, sums[-1])

    def by_component(self, values: np.ndarray) -> np.ndarray:
        """Values [component, facet of a cell] on this rank's cells."""
        return np.moveaxis(values[:, : self.disc.mesh.num_cells], -1, 0).reshape(self.disc.components, -1)
