"""A magnified disc that shows the mesh beside a 2D picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import OptionError, collectively
from ..reference import ReferenceElement
from .style import INK, INTERFACE, PAPER

_SIZE = 0.19  # radius of the magnified disc, relative to the root of the box's area
_CELLS_ACROSS = 9


@dataclass(frozen=True)
class Lens:
    """The disc that is looked at: focus [2] and radius, in the mesh's length unit."""

    focus: np.ndarray
    radius: float


@dataclass(frozen=True)
class PlacedLens(Lens):
    """A lens with the place [2] and radius of its magnified picture."""

    centre: np.ndarray
    size: float

    @property
    def zoom(self) -> float:
        return self.size / self.radius

    def magnified(self, points: np.ndarray) -> np.ndarray:
        """Places of points [..., 2] on the magnified disc."""
        return self.centre + self.zoom * (points - self.focus)


def pick_focus(comm, element: ReferenceElement, points: np.ndarray, wish) -> Lens:
    """The lens of `wish` (True, (x, y) or (x, y, radius)); by itself it looks at the smallest cells. Collective."""
    given = np.empty(0)
    with collectively(comm):
        if wish is not True:
            given = np.atleast_1d(np.asarray(wish, float))
            if given.shape not in ((2,), (3,)):
                raise OptionError(f"inset is {wish!r}; True, (x, y) or (x, y, radius) is accepted.")
    centres = points.mean(axis=1)
    sizes = np.sqrt(_areas(element, points))
    score = sizes if len(given) == 0 else np.linalg.norm(centres - given[:2], axis=1)
    best = int(np.argmin(score)) if len(score) else -1
    mine = (float(score[best]), centres[best], float(sizes[best])) if best >= 0 else (np.inf, np.zeros(2), 1.0)
    _, focus, size = min(comm.allgather(mine), key=lambda found: found[0])
    focus = given[:2] if len(given) else focus
    return Lens(focus, float(given[2]) if len(given) == 3 else 0.5 * _CELLS_ACROSS * size)


def _areas(element: ReferenceElement, points: np.ndarray) -> np.ndarray:
    gradients = element.tabulate(element.nodes.mean(axis=0, keepdims=True), 1)[1:, 0]
    half = 0.5 if element.cell == "triangle" else 1.0
    return half * np.abs(np.linalg.det(gradients @ points))


def place_lens(lens: Lens, outline, points, lower, upper) -> PlacedLens | None:
    """Put the magnified disc where the picture is empty, or beside it; None if it would magnify too little.

    outline [n, 2] and points [n, 2] cover the domain; lower and upper [2] are the corners of the box around it.
    """
    extent = upper - lower
    size = _SIZE * np.sqrt(extent.prod())
    if size < 1.8 * lens.radius:
        return None
    filled = np.concatenate((outline[:: max(1, len(outline) // 2000)], points[:: max(1, len(points) // 4000)]))
    x = np.linspace(lower[0] + size, upper[0] + 1.35 * size, 60)
    y = (
        np.linspace(lower[1] + size, upper[1] - size, 40)
        if extent[1] > 2 * size
        else np.array([(lower + upper)[1] / 2])
    )
    candidates = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    clear = np.min(
        [np.linalg.norm(part[:, None] - candidates, axis=2).min(axis=0) for part in np.array_split(filled, 40)], axis=0
    )
    beyond = np.maximum(0, candidates[:, 0] + size - upper[0])
    cost = 1e3 * np.maximum(0, 1.12 * size - clear) + 3 * beyond + 0.2 * np.linalg.norm(candidates - lens.focus, axis=1)
    cost -= np.minimum(clear, 1.4 * size)
    return PlacedLens(lens.focus, lens.radius, candidates[np.argmin(cost)], float(size))


def draw_lens(axes, scene, placed: PlacedLens, colour_map, norm, edge_colours) -> None:
    """Draw the disc, what is seen through it, and the lines that tie it to its place."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Circle
    from matplotlib.tri import Triangulation

    for circle, width in (((placed.focus, placed.radius), 0.9), ((placed.centre, placed.size), 1.2)):
        axes.add_patch(Circle(*circle, fill=False, edgecolor=INK, linewidth=width, zorder=8))
    disc = Circle(placed.centre, placed.size, facecolor=PAPER, edgecolor="none", zorder=4)
    axes.add_patch(disc)
    _tie(axes, placed)
    if scene.triangles is not None:
        near = np.linalg.norm(scene.points - placed.focus, axis=1) < 1.6 * placed.radius
        seen = scene.triangles[near[scene.triangles].any(axis=1)]
        if len(seen):
            mesh = Triangulation(*placed.magnified(scene.points).T, seen)
            shaded = axes.tripcolor(mesh, scene.values, shading="gouraud", cmap=colour_map, norm=norm, zorder=5)
            shaded.set_clip_path(disc)
    for curves, colour, width, alpha in (
        (scene.edges, edge_colours, 0.5, 0.8),
        *((scene.interfaces, colour, 1.4 * width, None) for colour, width in INTERFACE),
        (scene.outline, INK, 1.3, None),
    ):
        lines = LineCollection(
            placed.magnified(curves), colors=colour, linewidths=width, alpha=alpha, capstyle="round", zorder=6
        )
        axes.add_collection(lines)
        lines.set_clip_path(disc)


def _tie(axes, placed: PlacedLens) -> None:
    """The two outer tangents of the small and the large circle."""
    across = placed.centre - placed.focus
    distance = np.linalg.norm(across)
    if distance <= placed.size + placed.radius:
        return
    along = across / distance
    sine = (placed.radius - placed.size) / distance
    for side in (1.0, -1.0):
        normal = sine * along + side * np.sqrt(1 - sine**2) * np.array((-along[1], along[0]))
        ends = np.stack((placed.focus + placed.radius * normal, placed.centre + placed.size * normal))
        axes.plot(*ends.T, color=INK, linewidth=0.6, alpha=0.6, zorder=3)
