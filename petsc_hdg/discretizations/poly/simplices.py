"""The penalty of Dong, Georgoulis and Kappas 2021, appendix A: simplices inside a polytope over each of its facets.

With κ_F a simplex in K that has F as a facet, the penalty of a side is C_σ p² C_INV |F|/|K|, C_INV = |K| / sup |κ_F|,
or, where K is p-coverable, the smaller of that and p^{2 (d - 1)}. All choices below err towards a larger penalty.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from .outline import cell_points, joined, portions

STRENGTH = 10.0  # C_σ
ROUNDING = 1e-10  # of lengths over those of a simplex
MOST_PAIRS = 1 << 20  # pairs of facets held at a time
LATTICE = {2: 8, 3: 4}  # intervals along an axis of the bounding box where it is looked at whether cells are near


def paper_numbers(outline, polytopes, degrees: np.ndarray) -> np.ndarray:
    """STRENGTH p² C_INV |F|/|K| [item] of each item of an Outline, degrees [polytope]; degree 0 counts as 1.

    |F|/|κ_F| is d over the height of κ_F. Where the covering gives the number, |F| counts as |∂K| / STRENGTH at least:
    the appendix takes the number of facets of a polytope as bounded, and agglomerates have many small ones.
    """
    dim, owner = outline.mesh.dim, outline.polytope
    degree = np.maximum(degrees, 1).astype(float)
    volume, centroid = volumes(outline.mesh, polytopes)
    by_simplex = dim / heights(outline, centroid)
    surface = np.bincount(owner, outline.area, polytopes.count)[owner]
    by_cover = (degree ** (2 * dim - 2) / volume)[owner] * np.maximum(outline.area, surface / STRENGTH)
    coverable = is_coverable(outline.mesh, polytopes, degree)[owner]
    return STRENGTH * degree[owner] ** 2 * np.where(coverable, np.minimum(by_simplex, by_cover), by_simplex)


def volumes(mesh, polytopes) -> tuple[np.ndarray, np.ndarray]:
    """Volume [polytope] and centroid [polytope, dim]."""
    start, cells = polytopes.cells
    x, weight = cell_points(mesh, cells, 1)
    volume = np.add.reduceat(weight.sum(axis=1), start[:-1])
    return volume, np.add.reduceat(np.einsum("cq,cqd->cd", weight, x), start[:-1]) / volume[:, None]


# Heights --------------------------------------------------------------------------------------------------------------


def heights(outline, points: np.ndarray) -> np.ndarray:
    """Height [item] over each facet of the highest simplex in its polytope that is found, points [polytope, dim].

    Tops are the vertices of the facet's own base cell, which is convex, and the polytope's point where the simplex does
    not leave the polytope.
    """
    mesh = outline.mesh
    tops = mesh.geometry.nodes[mesh.geometry.cell_nodes[outline.cell]]
    own = np.einsum("iad,id->ia", outline.middle[:, None] - tops, outline.normal).max(axis=1)
    if not mesh.shape.is_simplex:
        return own
    top = points[outline.polytope]
    height = np.einsum("id,id->i", outline.middle - top, outline.normal)
    wanted = np.flatnonzero(height > own * (1 + ROUNDING))
    height[np.setdiff1d(np.arange(len(height)), wanted)] = 0.0
    height[wanted[~_stays_inside(outline, wanted, top[wanted])]] = 0.0
    return np.maximum(own, height)


def _stays_inside(outline, items: np.ndarray, tops: np.ndarray) -> np.ndarray:
    """True if the simplex over each facet `items`, with a top [item, dim] on the inner side, lies in its polytope.

    It does if no other facet of the polytope meets its interior, that is (sufficient, and in two dimensions necessary)
    if its own planes or that of the facet lie between them.
    """
    inside = np.ones(len(items), bool)
    sizes = np.diff(outline.start)[outline.polytope[items]]
    for part in portions(np.arange(len(items)), sizes, MOST_PAIRS):
        others, first = joined(outline.start, outline.polytope[items[part]])
        which = np.repeat(np.arange(len(part)), np.diff(first, append=len(others)))
        corners = np.concatenate([outline.corners[items[part]], tops[part][:, None]], axis=1)
        apart = _apart(outline, corners, which, others) | (items[part][which] == others)
        inside[part] = np.logical_and.reduceat(apart, first) if len(others) else True
    return inside


def _apart(outline, corners: np.ndarray, which: np.ndarray, others: np.ndarray) -> np.ndarray:
    """True if a plane is seen between the simplices corners[which] [simplex, corner, dim] and facets `others`."""
    inverse = np.linalg.inv(corners[:, 1:] - corners[:, :1])
    away = outline.corners[others] - corners[which, :1]
    rest = away @ inverse[which]  # barycentric coordinates of all corners but the first
    barycentric = np.concatenate([1 - rest.sum(axis=2, keepdims=True), rest], axis=2)
    beyond = (barycentric < ROUNDING).all(axis=1).any(axis=1)
    side = np.einsum("pad,pd->pa", corners[which] - outline.middle[others, None], outline.normal[others])
    small = ROUNDING * np.abs(side).max(axis=1)
    return beyond | (side.max(axis=1) <= small) | (side.min(axis=1) >= -small)


# Coverings ------------------------------------------------------------------------------------------------------------


def is_coverable(mesh, polytopes, degree: np.ndarray) -> np.ndarray:
    """True if each polytope [polytope] is found to be p-coverable with degrees p [polytope].

    The covering looked at is that of the bounding box by d! simplices, each with the box's diameter and at least
    |K| / d!: it does where no point of the box is farther from K than that diameter over p². Distances are those of a
    lattice's points to vertices and midpoints of base cells, plus what may be between lattice points: upper bounds. So
    all polytopes are coverable for p = 1, well filled boxes for p = 2 (in two dimensions 3), and none above.
    """
    lower, upper = polytopes.boxes(mesh)
    width = upper - lower
    diameter, steps = np.linalg.norm(width, axis=1), LATTICE[mesh.dim]
    room = diameter / degree**2 - diameter / (2 * steps)
    found = degree <= 1
    open_ = np.flatnonzero(~found & (room > 0))
    for part in portions(open_, np.diff(polytopes.cells[0])[open_], MOST_PAIRS >> 3):
        found[part] = _farthest(mesh, polytopes, part, lower[part], width[part] / steps, steps) <= room[part]
    return found


def _farthest(mesh, polytopes, part, lower, step, steps: int) -> np.ndarray:
    """Largest distance [polytope] of points of a lattice to the nearest vertex or midpoint of a base cell."""
    start, cells = polytopes.cells
    rows, first = joined(start, part)
    nodes = mesh.geometry.nodes[mesh.geometry.cell_nodes[cells[rows]]]
    near = np.concatenate([nodes, nodes.mean(axis=1, keepdims=True)], axis=1)
    of_cell = np.repeat(np.arange(len(part)), np.diff(first, append=len(rows)))
    most = np.zeros(len(part))
    for place in product(range(steps + 1), repeat=mesh.dim):
        x = lower + np.array(place) * step
        distance = np.linalg.norm(near - x[of_cell][:, None], axis=2).min(axis=1)
        most = np.maximum(most, np.minimum.reduceat(distance, first))
    return most
