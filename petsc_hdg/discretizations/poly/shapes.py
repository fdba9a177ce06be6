"""Sizes of polytopes: volume, surface, diameter, inscribed ball."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .outline import find_outline, joined, portions, volumes

MOST_PAIRS = 1 << 20  # pairs of vertices, or of points and facets, held at a time
MOST_CENTRES = 64  # base cells of a polytope whose midpoints are tried as centres of inscribed balls


@dataclass(frozen=True)
class Shapes:
    """Numbers [polytope] of a rank's polytopes, in the mesh's length unit.

    volume, surface;  facets  of base cells on the surface;  centroid [polytope, dim]
    diameter   largest distance of two points;  inscribed  radius of a ball inside, the largest that was found
    """

    volume: np.ndarray
    surface: np.ndarray
    facets: np.ndarray
    centroid: np.ndarray
    diameter: np.ndarray
    inscribed: np.ndarray


def shape_numbers(mesh, polytopes) -> Shapes:
    """The shapes of `Polytopes` of a mesh. Not collective."""
    outline = find_outline(mesh, polytopes)
    volume, centroid = volumes(mesh, polytopes)
    return Shapes(
        volume=volume,
        surface=np.bincount(outline.polytope, outline.area, polytopes.count),
        facets=np.diff(outline.start),
        centroid=centroid,
        diameter=diameters(outline),
        inscribed=inscribed_radii(outline, polytopes, centroid),
    )


def diameters(outline) -> np.ndarray:
    """Largest distance [polytope] of two vertices on the surface."""
    owner = np.repeat(outline.polytope, outline.vertices.shape[1])
    pairs = np.unique(np.stack([owner, outline.vertices.ravel()], axis=1), axis=0)
    start = np.searchsorted(pairs[:, 0], np.arange(len(outline.start)))
    x = outline.mesh.geometry.nodes[pairs[:, 1]]
    found = np.zeros(len(x))
    for part in portions(np.arange(len(x)), np.diff(start)[pairs[:, 0]], MOST_PAIRS):
        others, first = joined(start, pairs[part, 0])
        away = x[others] - np.repeat(x[part], np.diff(first, append=len(others)), axis=0)
        found[part] = np.maximum.reduceat((away**2).sum(axis=1), first)
    return np.sqrt(np.maximum.reduceat(found, start[:-1])) if len(x) else np.zeros(0)


def inscribed_radii(outline, polytopes, centroid: np.ndarray) -> np.ndarray:
    """Radius [polytope] of the largest ball that is found inside each polytope: a lower bound of the largest there is.

    Centres are the centroid where a base cell holds it, and vertices and midpoints (of the inscribed ball of a simplex)
    of base cells, MOST_CENTRES of them at most; a ball reaches to the nearest facet of the surface.
    """
    centres, owner = _centres(outline, polytopes, centroid)
    radius = np.zeros(len(centres))
    for part in portions(np.arange(len(centres)), np.diff(outline.start)[owner], MOST_PAIRS):
        facets, first = joined(outline.start, owner[part])
        x = np.repeat(centres[part], np.diff(first, append=len(facets)), axis=0)
        away = np.full(len(facets), np.inf)
        for piece in _pieces(outline.corners.shape[1:]):
            away = np.minimum(away, distance(x, outline.corners[facets][:, piece]))
        radius[part] = np.minimum.reduceat(away, first)
    found = np.zeros(polytopes.count)
    np.maximum.at(found, owner, radius)
    return found


def distance(x: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Distance [item] of points x [item, dim] to simplices, corners [item, corner, dim], of any dimension."""
    away = x - corners[:, 0]
    if corners.shape[1] == 1:
        return np.linalg.norm(away, axis=1)
    edges = corners[:, 1:] - corners[:, :1]
    gram = edges @ np.swapaxes(edges, 1, 2)
    part = np.linalg.solve(gram, np.einsum("ied,id->ie", edges, away)[..., None])[..., 0]
    found = np.linalg.norm(away - np.einsum("ie,ied->id", part, edges), axis=1)
    outside = np.flatnonzero((part < 0).any(axis=1) | (part.sum(axis=1) > 1))
    rims = [distance(x[outside], np.delete(corners[outside], k, axis=1)) for k in range(corners.shape[1])]
    found[outside] = np.min(rims, axis=0)
    return found


def _pieces(shape: tuple[int, int]) -> list[list[int]]:
    """Corners of the simplices that a facet with corners [corner, dim] is made of."""
    corners, dim = shape
    return [list(range(dim))] if corners == dim else [[0, 1, 3], [0, 2, 3]]


def _centres(outline, polytopes, centroid) -> tuple[np.ndarray, np.ndarray]:
    """Points inside the polytopes [point, dim], and the polytope of each [point]."""
    mesh, (start, cells) = outline.mesh, polytopes.cells
    sizes = np.diff(start)
    rank = np.arange(len(cells)) - np.repeat(start[:-1], sizes)
    every = np.repeat(-(-sizes // MOST_CENTRES), sizes)
    chosen = cells[rank % every == 0]
    corners = mesh.geometry.nodes[mesh.geometry.cell_nodes[chosen]]
    owner = polytopes.of_cell[chosen]
    vertices = np.unique(
        np.stack([np.repeat(owner, corners.shape[1]), mesh.geometry.cell_nodes[chosen].ravel()], axis=1), axis=0
    )
    on_surface = np.zeros(len(mesh.geometry.nodes), bool)
    on_surface[outline.vertices] = True
    vertices = vertices[~on_surface[vertices[:, 1]]]
    if mesh.shape.is_simplex:
        all_corners = mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells]]
        inside = np.unique(polytopes.of_cell[_holds(all_corners, centroid[polytopes.of_cell])])
        points = [_incentres(corners), centroid[inside]]
    else:
        inside, points = np.zeros(0, owner.dtype), [corners.mean(axis=1)]
    points = np.concatenate([*points, mesh.geometry.nodes[vertices[:, 1]]])
    return points, np.concatenate([owner, inside, vertices[:, 0]])


def _holds(corners: np.ndarray, x: np.ndarray) -> np.ndarray:
    """True if simplices, corners [cell, corner, dim], hold points x [cell, dim]."""
    edges = np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2)
    part = np.linalg.solve(edges, (x - corners[:, 0])[..., None])[..., 0]
    return (part >= 0).all(axis=1) & (part.sum(axis=1) <= 1)


def _incentres(corners: np.ndarray) -> np.ndarray:
    """Centres [cell, dim] of the balls inscribed in simplices, corners [cell, corner, dim]."""
    weights = []
    for k in range(corners.shape[1]):
        facet = np.delete(corners, k, axis=1)
        edges = facet[:, 1:] - facet[:, :1]
        weights.append(np.sqrt(np.linalg.det(edges @ np.swapaxes(edges, 1, 2))))
    weights = np.stack(weights, axis=1)
    return np.einsum("ck,ckd->cd", weights, corners) / weights.sum(axis=1)[:, None]
