"""Voronoi-like meshes of the unit square: polygons around random points, evened out by Lloyd's steps. Needs scipy.

cells, points = voronoi(200, seed=1)
mesh = petsc_hdg.polygons(cells, points)
"""

import numpy as np
from scipy.spatial import Voronoi, cKDTree

NEAR = 1e-9  # vertices closer than that are one


def voronoi(n: int, seed: int = 0, lloyd: int = 3) -> tuple[list[np.ndarray], np.ndarray]:
    """Polygons, each as its vertices counterclockwise [vertex], and points [point, 2].

    n: cells.   seed: of the random points.   lloyd: times each point is moved to the centroid of its cell.
    """
    seeds = np.random.default_rng(seed).random((n, 2))
    for _ in range(lloyd):
        seeds = np.array([_centroid(points[cell]) for cells, points in [_bounded(seeds)] for cell in cells])
    return _bounded(seeds)


def _bounded(seeds: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Voronoi cells of points in the unit square, cut at its sides: there lie mirror images of the points."""
    mirrored = [np.where(np.arange(2) == axis, 2 * side - seeds, seeds) for axis in (0, 1) for side in (0, 1)]
    found = Voronoi(np.concatenate([seeds, *mirrored]))
    regions = [np.array(found.regions[k]) for k in found.point_region[: len(seeds)]]
    used, flat = np.unique(np.concatenate(regions), return_inverse=True)
    points = np.clip(found.vertices[used], 0, 1)
    points[points < NEAR] = 0
    points[points > 1 - NEAR] = 1
    same = np.arange(len(points))
    for a, b in sorted(cKDTree(points).query_pairs(NEAR)):
        same[b] = same[a]
    flat = same[flat.ravel()]
    ends = np.cumsum([len(region) for region in regions])[:-1]
    return [_around(cell, points, seed) for cell, seed in zip(np.split(flat, ends), seeds, strict=True)], points


def _around(cell: np.ndarray, points: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Different vertices of a convex cell, counterclockwise around a point inside."""
    cell = np.unique(cell)
    x, y = (points[cell] - centre).T
    return cell[np.argsort(np.arctan2(y, x))]


def _centroid(polygon: np.ndarray) -> np.ndarray:
    """Centroid of a polygon [vertex, 2]."""
    x, y = polygon, np.roll(polygon, -1, axis=0)
    cross = x[:, 0] * y[:, 1] - x[:, 1] * y[:, 0]
    return ((x + y) * cross[:, None]).sum(axis=0) / (3 * cross.sum())
