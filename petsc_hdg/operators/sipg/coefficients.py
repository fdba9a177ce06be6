"""Derivatives of a linear physics of one component at a place, with given or random constants and auxiliary data."""

from __future__ import annotations

from functools import cached_property

import numpy as np

SYMMETRY = 1e-13  # of a tensor's largest entry


class Coefficients:
    """Derivatives of f0 and f1 by the value, its rate and the gradient at a random place.

    tensor: of f1 by gradients [dim, dim].   mass: of f0 by values, u_t following by `shift`.
    constants: None for random ones by `seed`, which show what the derivatives depend on.
    """

    def __init__(self, disc, t: float, seed: int | None, constants=None, shift: float = 1.3):
        dim, self._physics, random = disc.dim, disc.physics, np.random.default_rng(seed)
        count, self._interpreter = self._physics.num_auxiliary, self._physics.interpreter(dim)
        a, given = random.uniform(0.5, 1.0, count), random.uniform(0.5, 1.0, len(self._physics.constants))
        self._constants = given if constants is None else constants[: len(given)]
        self._place, self._shift = (a, np.zeros((count, dim)), t, shift, random.uniform(0.5, 1.0, dim)), shift
        self._zero, self._zero_x, self._units = np.zeros(1), np.zeros((1, dim)), np.eye(dim)[:, None]
        columns = [self._along(du_x=unit) for unit in self._units]
        self.tensor = np.stack([f1[0] for _, f1 in columns], axis=1)
        self._of_gradient = np.array([f0[0] for f0, _ in columns])

    @property
    def _state(self) -> tuple:
        return self._zero, self._zero, self._zero_x

    def _along(self, du=None, du_t=None, du_x=None) -> tuple[np.ndarray, np.ndarray]:
        """f0 [1], f1 [1, dim] along a direction, at zero."""
        direction = [self._zero if d is None else d for d in (du, du_t)] + [self._zero_x if du_x is None else du_x]
        return self._interpreter.pw_jacobian(*self._state, *direction, *self._place, self._constants)

    @cached_property
    def _by_value(self) -> list:
        """f0 and f1 along the value, and along its rate."""
        return [self._along(**{name: np.ones(1)}) for name in ("du", "du_t")]

    @property
    def mass(self) -> float:
        return float(self._along(du=np.ones(1), du_t=np.full(1, self._shift))[0][0])

    @property
    def has_reaction(self) -> bool:
        """True if f0 depends on the value or its rate."""
        return any(f0[0] != 0 for f0, _ in self._by_value)

    @property
    def is_symmetric(self) -> bool:
        """True if f0 depends on the value alone, and f1 on the gradient by a symmetric tensor."""
        apart = np.abs(self.tensor - self.tensor.T).max() <= SYMMETRY * np.abs(self.tensor).max()
        return bool(apart and not self._of_gradient.any() and not any(f1.any() for _, f1 in self._by_value))

    @property
    def natural_read_gradients(self) -> bool:
        """True if natural conditions depend on the gradient."""
        normal = np.full(len(self._units), len(self._units) ** -0.5)
        jacobian, state = self._interpreter.pw_boundary_jacobian, (*self._state, self._zero, self._zero)
        conditions = range(len(self._physics.natural))
        rest = *self._place, normal, self._constants
        return any(jacobian(k, *state, unit, *rest)[0][0] for k in conditions for unit in self._units)
