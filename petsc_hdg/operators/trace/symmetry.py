"""Symmetry of a trace matrix: by its values where they are assembled, else by random products."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

SYMMETRIC = {"double": 1e-9, "single": 1e-4}  # |xᵀKy - yᵀKx| over |xᵀKx| below which K counts as symmetric


def is_symmetric(operator) -> bool:
    """True if the matrix of a condensed operator's last `linearize` is symmetric. Collective."""
    comm, least = operator.discretization.mesh.comm, SYMMETRIC[operator.arrays.precision]
    if operator.format is None:
        values = operator.stores.values
        skew = float(np.abs(values - values.transpose(2, 1, 0)).max(initial=0.0))
        largest = float(np.abs(values).max(initial=0.0))
        return comm.allreduce(skew, MPI.MAX) <= least * comm.allreduce(largest, MPI.MAX)
    random = np.random.default_rng(11 + comm.rank)
    x, y = (random.uniform(-1, 1, operator.dofmap.num_owned) for _ in range(2))
    forth, back, size = _form(operator, y, x), _form(operator, x, y), _form(operator, x, x)
    return abs(forth - back) <= least * abs(size)


def _form(operator, x: np.ndarray, y: np.ndarray) -> float:
    """xᵀ K y. Collective."""
    arrays = operator.arrays
    given = arrays.to_device(y if y.size else np.zeros(1), "symmetry")
    out = arrays.empty(max(1, len(x)))
    operator.action(given, out)
    return operator.discretization.mesh.comm.allreduce(float(x @ arrays.to_host(out, len(x), name="symmetry")))
