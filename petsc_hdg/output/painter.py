"""Lit triangles and lines of a closed surface as an eye sees them, drawn in order of depth (painter's algorithm)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .facets import pairs
from .style import INK, contrasting

_CREASE = np.cos(np.radians(35.0))  # facets that meet at a larger angle have a line between them
_AMBIENT = 0.7


@dataclass(frozen=True)
class Seen:
    """The sides of a surface that face an eye: to the right, up and towards the eye are the axes of its points.

    triangles [n, 3, 3] with their colours fill [n, 4] in RGBA;  segments [m, 2, 3] with stroke [m, 4], width [m] in
    points, and how far they are before what is beside them, nearer [m].
    """

    triangles: np.ndarray
    fill: np.ndarray
    segments: np.ndarray
    stroke: np.ndarray
    width: np.ndarray
    nearer: np.ndarray

    @classmethod
    def of(cls, surface, frame: np.ndarray, colour: np.ndarray, wish) -> Seen:
        """What is seen of a Surface.

        frame [3, 3]: columns point right, up and to the eye.   colour [facet, lattice point, 4].   wish: the Picture.
        """
        places = surface.points @ frame
        normals = surface.normals() @ frame
        step = np.abs(np.diff(places[:, surface.pieces, 2], axis=2)).max(axis=(1, 2), initial=0.0)
        edge_normals = normals[:, surface.beside]
        visible = edge_normals[..., 2] > 0
        creased, between = _creased(surface, edge_normals)
        under = colour[:, surface.outline].mean(axis=2)
        lines = [
            _lines(surface, places, mask, width, alpha, step, below)
            for mask, width, alpha, below in (
                (visible & ~creased & wish.mesh_lines, 0.35, 0.5, None),
                (visible & ~creased & between, wish.region_width, 0.9, under),
                (visible & creased, 0.9, 0.9, None),
            )
        ]
        return cls(*_faces(surface, places, normals, colour), *map(np.concatenate, zip(*lines, strict=True)))

    def collection(self):
        """As a collection of matplotlib, far things first; lines are triangles of no area."""
        from matplotlib.collections import PolyCollection

        shapes = np.concatenate([self.triangles, self.segments[:, [0, 1, 1]]])
        depth = shapes[..., 2].mean(axis=1)
        depth[len(self.triangles) :] = self.segments[..., 2].mean(axis=1) + self.nearer
        order = np.argsort(depth, kind="stable")
        return PolyCollection(
            shapes[order, :, :2],
            facecolors=np.concatenate([self.fill, np.zeros((len(self.segments), 4))])[order],
            edgecolors=np.concatenate([self.fill, self.stroke])[order],
            linewidths=np.concatenate([np.full(len(self.fill), 0.3), self.width])[order],
            joinstyle="bevel",
            capstyle="butt",
            snap=False,
        )


def _faces(surface, places, normals, colour) -> tuple[np.ndarray, np.ndarray]:
    """Triangles that face the eye and their colours in the light."""
    towards = normals[..., 2] > 0
    light = np.array((-0.45, 0.62, 0.64))
    shade = _AMBIENT + (1 - _AMBIENT) * np.maximum(0.0, normals[towards] @ light)
    fill = colour[:, surface.pieces].mean(axis=2)[towards]
    fill[:, :3] *= shade[:, None]
    return places[:, surface.pieces][towards], fill


def _lines(surface, places, mask, width: float, alpha: float, step, under=None):
    """Segments of chosen facet edges [facet, edge], their strokes, widths, and how far they are before the rest.

    step [facet]: how far lines are put before the triangles beside them.   under [facet, edge, 4]: colours below, from
    which the lines are told; None: they are drawn in ink.
    """
    from matplotlib.colors import to_rgba

    curves = places[:, surface.outline][mask]
    pieces = curves.shape[1] - 1
    segments = np.stack((curves[:, :-1], curves[:, 1:]), axis=2).reshape(-1, 2, 3)
    stroke = np.tile(to_rgba(INK, alpha), (len(segments), 1))
    if under is not None:
        stroke[:, :3] = np.repeat(contrasting(under[mask])[:, :3], pieces, axis=0)
    return segments, stroke, np.full(len(segments), width), np.repeat(step[np.nonzero(mask)[0]], pieces)


def _creased(surface, edge_normals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Facet edges [facet, edge] at which the surface has a crease, and those between two regions."""
    middle = surface.edge_keys().ravel()
    normals = edge_normals.reshape(-1, 3)
    first, second = pairs(middle)
    sharp = np.einsum("nd,nd->n", normals[first], normals[second]) < _CREASE
    regions = np.repeat(surface.regions, edge_normals.shape[1])
    creased, between = np.zeros((2, len(middle)), bool)
    creased[first[sharp]] = creased[second[sharp]] = True
    apart = regions[first] != regions[second]
    between[first[apart]] = between[second[apart]] = True
    return creased.reshape(edge_normals.shape[:2]), between.reshape(edge_normals.shape[:2])
