"""Sizes of polytopes: volume, surface, diameter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .outline import find_outline, joined, portions

MOST_PAIRS = 1 << 20  # pairs of vertices held at a time


@dataclass(frozen=True)
class Shapes:
    """Numbers [polytope] of a rank's polytopes, in the mesh's length unit.

    volume, surface;  facets  of base cells on the surface
    diameter   largest distance of two points;  radius  d |K| / |∂K|, of simplices that of the inscribed ball
    """

    volume: np.ndarray
    surface: np.ndarray
    facets: np.ndarray
    diameter: np.ndarray
    radius: np.ndarray


def shape_numbers(mesh, polytopes) -> Shapes:
    """The shapes of `Polytopes` of a mesh. Not collective."""
    outline = find_outline(mesh, polytopes)
    volume = np.bincount(polytopes.of_cell, outline.measures.volumes, polytopes.count)
    surface = np.bincount(outline.polytope, outline.area, polytopes.count)
    return Shapes(volume, surface, np.diff(outline.start), diameters(outline), mesh.dim * volume / surface)


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
