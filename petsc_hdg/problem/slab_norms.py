"""Norms of the error of a space-time solution, gathered slab by slab."""

from __future__ import annotations

import numpy as np

from . import input_data


class SlabNorms:
    """A monitor of SpaceTime.march: called after a slab, it adds the slab's part.

    values  {"L2(L2)", "L2(H1)"}: over space and time, by degree + 2 Gauss points on each interval between starts of
            local steps; {"max L2", "max H1"}: the largest at ends of slabs. H1 is the seminorm.

    Raises PhysicsError if the physics gives no exact solution.
    """

    def __init__(self, space_time):
        input_data.require_exact(space_time.problem.physics)
        self.space_time = space_time
        self._squares, self._most = np.zeros(2), np.zeros(2)

    def __call__(self, t: float, u) -> None:
        """Add the slab that ends at t with the state u. Collective."""
        problem, slab = self.space_time.problem, self.space_time.slab
        points, weights = np.polynomial.legendre.leggauss(slab.basis.degree + 2)
        breaks = slab.time + slab.length * np.array([float(b) for b in slab.basis.breaks])
        for begin, end in zip(breaks[:-1], breaks[1:], strict=True):
            for x, w in zip(points, weights, strict=True):
                time = begin + (end - begin) * (1 + x) / 2
                found = problem.errors(self.space_time.at(time), time)
                self._squares += w * (end - begin) / 2 * np.array([found["L2"], found["H1"]]) ** 2
        found = problem.errors(u, t)
        self._most = np.maximum(self._most, [found["L2"], found["H1"]])

    @property
    def values(self) -> dict[str, float]:
        """The norms so far."""
        return dict(zip(("L2(L2)", "L2(H1)", "max L2", "max H1"), [*np.sqrt(self._squares), *self._most], strict=True))
