"""Test for quadrilaterals that are parallelograms, and hexahedra that are parallelepipeds."""

from __future__ import annotations

import numpy as np

CHUNK = 1 << 16  # cells looked at together
TOLERANCE = 16  # units of rounding of the largest coordinate


def are_parallelepipeds(nodes: np.ndarray, cell_nodes: np.ndarray) -> bool:
    """True if cells with corners cell_nodes [cell, 2^dim] (first axis fastest), at nodes [node, dim], are affine images
    of the unit square or cube, to the rounding of their coordinates.
    """
    dim = nodes.shape[1]
    corners = np.arange(1 << dim)[:, None] >> np.arange(dim) & 1
    most = TOLERANCE * np.finfo(float).eps * np.abs(nodes).max(initial=0.0)
    for start in range(0, len(cell_nodes), CHUNK):
        x = nodes[cell_nodes[start : start + CHUNK]]
        edges = x[:, 1 << np.arange(dim)] - x[:, :1]
        if np.abs(x[:, :1] + corners @ edges - x).max() > most:
            return False
    return True
