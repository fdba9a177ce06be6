"""AIJ matrices made from rows and filled anew: products, PETSc's inverted blocks, on one rank and on several."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from petsc_hdg.krylov.smoothers import inverse_blocks
from petsc_hdg.petsc import csr

BLOCK, BLOCKS = 3, 7


def wrong(comm: PETSc.Comm) -> float:
    """Largest difference of products and inverted blocks from numpy's, of a ring of blocks dealt to the ranks, filled
    twice; the last rank has no rows where there are several. Collective."""
    size, ranks = BLOCK * BLOCKS, max(1, comm.size - 1)
    bounds = BLOCK * np.minimum(np.arange(comm.size + 1) * BLOCKS // ranks, BLOCKS)
    own = slice(bounds[comm.rank], bounds[comm.rank + 1])
    ring = _ring()
    pattern = ring[own] > 0
    starts, columns = np.append(0, np.cumsum(pattern.sum(axis=1))), np.nonzero(pattern)[1]
    sizes = (own.stop - own.start, size)
    mat, worst = csr.aij((sizes, sizes), BLOCK, starts, columns, comm), 0.0
    for seed in (1, 2):
        dense = np.random.default_rng(seed).uniform(-1, 1, (size, size)) + 4 * np.eye(size)
        csr.fill(mat, dense[own][pattern])
        x, y = mat.createVecs()
        x.array = np.arange(own.start, own.stop)
        blocks = np.linalg.inv([dense[k : k + BLOCK, k : k + BLOCK] for k in range(0, size, BLOCK)])
        inverse = np.einsum("kij,kl->kilj", blocks, np.eye(BLOCKS)).reshape(size, size)
        for product, expected in ((mat, dense * ring), (inverse_blocks(mat), inverse)):
            product.mult(x, y)
            worst = max(worst, float(np.abs(y.array - (expected @ np.arange(size))[own]).max(initial=0)))
    return comm.tompi4py().allreduce(worst, max)


def _ring() -> np.ndarray:
    """One where the blocks of a ring have entries, else zero."""
    near = np.abs(np.subtract.outer(np.arange(BLOCKS), np.arange(BLOCKS)))
    return np.kron((near <= 1) | (near == BLOCKS - 1), np.ones((BLOCK, BLOCK)))


def test_rows_are_those_of_numpy():
    assert wrong(PETSc.COMM_SELF) < 1e-12


def test_ranks_have_their_rows(mpirun):
    code = """
import sys
sys.path[:0] = ["tests", "tests/petsc_library"]
from petsc4py import PETSc
from test_csr import wrong
assert wrong(PETSc.COMM_WORLD) < 1e-12
"""
    mpirun(3, "-c", code)
