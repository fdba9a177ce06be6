"""How far the matrix of a conforming subspace is from the Galerkin product of the scheme's own."""

from __future__ import annotations

import numpy as np


def subspace_gap(problem, seeds) -> float:
    """Largest |Pᵀ A P x - A_0 x| over the largest |A_0 x|, of random vectors x, at the state zero."""
    calls, zero = problem.callbacks, problem.create_vec()
    calls.linearize(None, zero, calls.jacobian, calls.jacobian)
    calls.conforming.is_symmetric = True
    calls.conforming.update(zero)
    coarse, P, above = calls.conforming.mat, calls.conforming.interpolation, calls.conforming.above
    P = P if above is None else above.interpolation.matMult(P)
    x, y, z = (coarse.createVecLeft() for _ in range(3))
    fine, product = problem.create_vec(), problem.create_vec()
    worst = 0.0
    for seed in seeds:
        x.setArray(np.random.default_rng(seed).standard_normal(x.getSize()))
        P.mult(x, fine)
        calls.jacobian.mult(fine, product)
        P.multTranspose(product, y)
        coarse.mult(x, z)
        size = np.abs(z.getArray()).max()
        assert size > 1e-3
        worst = max(worst, np.abs(y.getArray() - z.getArray()).max() / size)
    return worst
