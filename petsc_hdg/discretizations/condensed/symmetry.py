"""Whether the derivative of a physics is symmetric, told by random samples of what it reads."""

from __future__ import annotations

import numpy as np

from ..samples import SAMPLES, random_inputs

TOLERANCE = 1e-13


def has_symmetric_derivative(physics, dim: int) -> bool:
    """Whether g0 … g3 of a physics, and those of its natural conditions, make symmetric matrices.

    State, constants, auxiliary values, x, n and t are random: what is symmetric for some of their values only, is not.
    """
    return all(_is_symmetric(physics, dim, seed) for seed in range(SAMPLES))


def _is_symmetric(physics, dim: int, seed: int) -> bool:
    interpreter, count = physics.interpreter(dim), physics.num_components
    state, (a, a_x, t, shift, x, constants), normal = random_inputs(physics, dim, seed)
    zero, flat = np.zeros(count), np.zeros((count, dim))
    g0, g1, g2, g3 = interpreter.g_blocks(*state, a, a_x, t, shift, x, constants)
    pairs = [(g0, g0.T), (g1, g2.transpose(1, 0, 2)), (g3, g3.transpose(1, 0, 3, 2))]
    for condition in range(len(physics.natural)):
        rest = a, a_x, t, 0.0, x, normal / np.linalg.norm(normal), constants
        slope, units = interpreter.pw_boundary_jacobian, np.eye(count * dim).reshape(-1, count, dim)
        given = np.array([slope(condition, *state, du, zero, flat, *rest) for du in np.eye(count)])
        by_gradient = np.array([slope(condition, *state, zero, zero, dq, *rest) for dq in units])
        pairs += [(given, given.T), (by_gradient, 0 * by_gradient)]
    scale = max(np.abs(one).max(initial=0.0) for one, _ in pairs)
    return all(np.abs(one - other).max(initial=0.0) <= TOLERANCE * scale for one, other in pairs)
