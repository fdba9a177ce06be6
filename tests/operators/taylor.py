"""Order of what is left of a residual after its derivative, by Taylor's theorem."""

from __future__ import annotations

import numpy as np


def assert_second_order(residual, x, d, product, record_property) -> None:
    """F(x + h d) - F(x) - h J d is of second order in h; residual(x, out) computes F, product is J d."""
    f, moved = x.duplicate(), x.duplicate()
    residual(x, f)
    remainders = []
    for h in (0.1, 0.05, 0.025):
        residual(x + h * d, moved)
        remainders.append((moved - f - h * product).norm())
    orders = np.log2(np.divide(remainders[:-1], remainders[1:]))
    record_property("orders", orders.tolist())
    assert remainders[0] > 1e-8 and (abs(orders - 2) < 0.15).all(), (remainders, orders)
