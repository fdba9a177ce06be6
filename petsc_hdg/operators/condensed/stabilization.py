"""The automatic stabilization of hybridizable DG for nonlinear physics: found at a state, facet by facet."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...device import Kernel, kernels_of
from ..facet_numbers import FacetNumbers

FLOOR = 0.1  # least tau, of the mean over the mesh: where a diffusivity vanishes at one state, it may not at the next


class Stabilization(FacetNumbers):
    """tau [facet of the cell, stride, component] of a condensed operator at the state of trace and interior.

    It stays as it is while Newton's method goes on, so that the Jacobian is exact, and is found anew between solves.
    """

    def __init__(self, operator):
        disc = operator.discretization
        shape = disc.num_facets_of_cell, max(1, disc.stride), disc.components
        super().__init__(operator, shape, components_first=False)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`hdg_stabilization`."""
        return kernels_of({"hdg_stabilization": self.disc.stabilization_spec()}, self.op.device)

    def find(self, trace, interior, t: float, found) -> None:
        """Find the stabilization of a state, 0 where there is none, in a buffer. Not collective after ghosts came."""
        kernel = self.kernels["hdg_stabilization"]
        self.op.local.launch(kernel, (0, self.disc.mesh.num_cells), trace, interior, t, found=found)

    def update(self, trace, interior, t: float) -> None:
        """Find tau of a state, up or down. Collective."""
        trace.end()
        self.find(trace, interior, t, self.buffer)
        _, sums, _, counts = self.compared(self.buffer)
        means = sums / np.maximum(1.0, counts)
        self.raise_to(np.where(means > 0, FLOOR * means, 1.0))
        self.version += 1
        self.is_known = True

    def give(self, values: np.ndarray) -> None:
        """Take tau [shape] until the operator's `restart`."""
        self.write(values)
        self.is_known = True

    def scale(self, factor: float) -> None:
        """Multiply tau, until it is found anew."""
        self.write(factor * self.values())
