"""Painter's algorithm: lit triangles and lines of a closed surface in order of depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .style import INK, contrasting

_CREASE = np.cos(np.radians(35.0))  # facets that meet at a larger angle have a line between them
_AMBIENT = 0.7


@dataclass(frozen=True)
class Painted:
    """Things to draw, far ones first.

    shapes [n, 3, 2] (lines are triangles of no area); fill, stroke [n, 4] in RGBA; width [n] of the stroke in points.
    """

    shapes: np.ndarray
    fill: np.ndarray
    stroke: np.ndarray
    width: np.ndarray

    @classmethod
    def of(cls, surface, frame: np.ndarray, colour: np.ndarray, wish) -> Painted:
        """The visible part of a Surface.

        frame [3, 3]: columns point right, up and to the eye.   colour [facet, lattice point, 4].   wish: the Picture.
        """
        places = surface.points @ frame
        normals = surface.normals() @ frame
        faces, depth = _faces(surface, places, normals, colour)
        step = np.abs(np.diff(places[:, surface.pieces, 2], axis=2)).max(axis=(1, 2), initial=0.0)
        edge_normals = normals[:, surface.beside]
        visible = edge_normals[..., 2] > 0
        creased, between = _creased(surface, edge_normals)
        groups = [(faces, depth)]
        under = colour[:, surface.outline].mean(axis=2)
        for mask, width, alpha, below in (
            (visible & ~creased if wish.mesh_lines else None, 0.35, 0.5, None),
            (visible & ~creased & between if between.any() else None, wish.region_width, 0.9, under),
            (visible & creased, 0.9, 0.9, None),
        ):
            if mask is not None:
                groups.append(_lines(surface, places, mask, width, alpha, step, below))
        order = np.argsort(np.concatenate([depth for _, depth in groups]), kind="stable")
        parts = zip(*(group for group, _ in groups), strict=True)
        return cls(*(np.concatenate(part)[order] for part in parts))

    def collection(self):
        """As a collection of matplotlib."""
        from matplotlib.collections import PolyCollection

        return PolyCollection(
            self.shapes,
            facecolors=self.fill,
            edgecolors=self.stroke,
            linewidths=self.width,
            joinstyle="bevel",
            capstyle="butt",
            snap=False,
        )


def _faces(surface, places, normals, colour):
    """(shapes, fill, stroke, width) of the triangles that face the eye, and their depths."""
    towards = normals[..., 2] > 0
    corners = places[:, surface.pieces][towards]
    light = np.array((-0.45, 0.62, 0.64))
    shade = _AMBIENT + (1 - _AMBIENT) * np.maximum(0.0, normals[towards] @ light)
    fill = colour[:, surface.pieces].mean(axis=2)[towards]
    fill[:, :3] *= shade[:, None]
    return (corners[..., :2], fill, fill, np.full(len(fill), 0.3)), corners[..., 2].mean(axis=1)


def _lines(surface, places, mask, width: float, alpha: float, step, under=None):
    """(shapes, fill, stroke, width) of the segments of chosen facet edges [facet, edge], and their depths.

    step [facet]: how far lines are put before the triangles beside them.   under [facet, edge, 4]: colours below, from
    which the lines are told; None: they are drawn in ink.
    """
    from matplotlib.colors import to_rgba

    curves = places[:, surface.outline][mask]
    ends = np.stack((curves[:, :-1], curves[:, 1:], curves[:, 1:]), axis=2).reshape(-1, 3, 3)
    count = len(ends)
    stroke = np.tile(to_rgba(INK, alpha), (count, 1))
    if under is not None:
        stroke[:, :3] = np.repeat(contrasting(under[mask])[:, :3], curves.shape[1] - 1, axis=0)
    depth = ends[..., 2].mean(axis=1) + np.repeat(step[np.nonzero(mask)[0]], curves.shape[1] - 1)
    return (ends[..., :2], np.zeros((count, 4)), stroke, np.full(count, width)), depth


def _creased(surface, edge_normals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Facet edges [facet, edge] at which the surface has a crease, and those between two regions."""
    middle = surface.edge_keys().ravel()
    normals = edge_normals.reshape(-1, 3)
    order = np.argsort(middle, kind="stable")
    paired = np.flatnonzero(middle[order[1:]] == middle[order[:-1]])
    first, second = order[paired], order[paired + 1]
    sharp = np.einsum("nd,nd->n", normals[first], normals[second]) < _CREASE
    regions = np.repeat(surface.regions, edge_normals.shape[1])
    creased, between = np.zeros((2, len(middle)), bool)
    creased[first[sharp]] = creased[second[sharp]] = True
    apart = regions[first] != regions[second]
    between[first[apart]] = between[second[apart]] = True
    return creased.reshape(edge_normals.shape[:2]), between.reshape(edge_normals.shape[:2])
