"""Numbers of facets that follow the state of a nonlinear physics: penalties, stabilization."""

from __future__ import annotations

import numpy as np

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
        """Whether the numbers suit a state; else, or where none are known, they follow it from now on. Collective."""
        if not self.is_known:
            self.update(*state)
            return False
        before = self.values()
        self.update(*state)
        now = self.joined(before, self.values())
        serves = not self.disc.mesh.comm.allreduce(int(self.differ(before, now)))
        self.write(before if serves else now)
        return serves

    def joined(self, before: np.ndarray, now: np.ndarray) -> np.ndarray:
        """Numbers that follow those of two states. Collective."""
        return now

    def differ(self, before: np.ndarray, now: np.ndarray) -> bool:
        """Whether numbers now are such that those before do not serve."""
        return bool((np.abs(now) > GROWTH * np.abs(before)).any())

    def values(self) -> np.ndarray:
        """The numbers [shape] on the host."""
        return self.arrays.to_host(self.buffer, self.shape, name="penalties")

    def write(self, values: np.ndarray) -> None:
        """Take numbers [shape] from the host."""
        if values.size:
            self.arrays.upload(self.buffer, np.ascontiguousarray(values, self.arrays.real), "penalties")
