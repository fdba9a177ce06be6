"""Triangles of a domain whose upper side oscillates: the unit square up to y = 1 + (sin 2πmx)/4m.

cells, points = oscillating(500_000, waves=64)
mesh = petsc_hdg.Mesh.from_cells(cells, points)
"""

import numpy as np


def oscillating(triangles: int, waves: int) -> tuple[np.ndarray, np.ndarray]:
    """About so many triangles [cell, 3], in rows that follow the waves near the upper side, and points [point, 2]."""
    n = max(1, round((triangles / 2) ** 0.5))
    i, j = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    points = np.stack([i, j], axis=-1).reshape(-1, 2) / n
    points[:, 1] += points[:, 1] ** 4 * np.sin(2 * np.pi * waves * points[:, 0]) / (4 * waves)
    corner = (i * (n + 1) + j)[:-1, :-1].ravel()
    a, b, c, d = corner, corner + n + 1, corner + n + 2, corner + 1
    turned = ((i + j)[:-1, :-1].ravel() % 2 == 0)[:, None]
    cells = np.where(turned, np.stack([a, b, c, a, c, d], axis=1), np.stack([a, b, d, b, c, d], axis=1))
    return cells.reshape(-1, 3), points
