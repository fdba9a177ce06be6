"""Discrete upwinding: diffusion between unknowns whose coupling has the sign of convection (Kuzmin, Turek 2002)."""

from __future__ import annotations

import numpy as np


def add_upwinding(discretization, values: np.ndarray) -> None:
    """Add to cell matrices, in place, the least diffusion that leaves no positive coupling by convection.

    values: what `matrices` of a CGOperator gives, [dof, dof, stride] of cells first. With the symmetric part s and the
    antisymmetric part k of a cell's matrix, unknowns i ≠ j of one component get d = max(0, |k_ij| + min(s_ij, 0)):
    nothing where k = 0, and nothing between components. Row sums do not change.
    """
    disc = discretization
    count = disc.num_dofs
    cells = values[: count * count * disc.stride].reshape(count, count, disc.stride)[:, :, : disc.mesh.num_cells]
    component = np.concatenate([s.first_component + np.arange(s.num_dofs) % s.components for s in disc.spaces])
    for i in range(count):
        for j in range(i):
            if component[i] == component[j]:
                k, s = (cells[i, j] - cells[j, i]) / 2, (cells[i, j] + cells[j, i]) / 2
                d = np.maximum(0, np.abs(k) + np.minimum(s, 0))
                cells[i, j] -= d
                cells[j, i] -= d
                cells[i, i] += d
                cells[j, j] += d
