"""Effect of changed data: on matrices, or on the right-hand side alone."""

from __future__ import annotations

import numpy as np


def constants_change(discretization, before: np.ndarray, now: np.ndarray) -> bool:
    """True if matrices read a constant that has another value now; both are [constant].

    The matrix of a nonlinear physics reads the states, and these follow all constants.
    """
    differs = np.flatnonzero(before != now)
    if not discretization.physics.is_linear:
        return bool(differs.size)
    return bool(np.isin(differs, discretization.dependence.constants).any())


def auxiliary_changes(discretization, name: str, before: np.ndarray, now: np.ndarray) -> bool:
    """True if matrices read a component of the auxiliary field `name` that has another value now.

    before, now: all auxiliary data [row, stride] of this rank. Other ranks may find otherwise.
    """
    field, first = discretization.auxiliary.field(name)
    components = range(first, first + field.components)
    if discretization.physics.is_linear:
        components = [c for c in components if c in discretization.dependence.auxiliary]
    starts = discretization.auxiliary.starts
    rows = [slice(starts[c], starts[c + 1]) for c in components]
    return any(not np.array_equal(before[part], now[part]) for part in rows)
