"""Random samples of what a physics reads, which tell what its derivatives are like."""

from __future__ import annotations

import numpy as np

SAMPLES = 4  # the first half of positive numbers alone


def random_inputs(physics, dim: int, seed: int, positive: bool = False) -> tuple[tuple, tuple, np.ndarray]:
    """State u [component], u_t, u_x [component, dim]; what else `Interpreter.g_blocks` takes: a, a_x, t, the shift of
    u_t (1 if it is read), x [dim], constants; and a vector [dim] for a normal, not of length 1.

    positive: all numbers of any seed are.
    """
    random, low = np.random.default_rng(seed), 0.1 if positive or seed < SAMPLES // 2 else -1.0
    count, aux = physics.num_components, physics.num_auxiliary
    a, a_x = random.uniform(low, 1, aux), random.uniform(low, 1, (aux, dim))
    x, normal = random.uniform(low, 1, (2, dim))
    constants, t = random.uniform(low, 1, len(physics.constants)), random.uniform(0.1, 1)
    state = random.uniform(low, 1, count), np.zeros(count), random.uniform(low, 1, (count, dim))
    return state, (a, a_x, t, float(physics.uses_time_derivative), x, constants), normal
