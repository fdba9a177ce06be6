"""A magnified disc that shows the mesh beside a 2D picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import OptionError, collectively
from ..reference import ReferenceElement
from .style import INK, PAPER, shade

_SIZE = 0.2  # radius of the magnified disc, relative to the root of an area
_CELLS_ACROSS = 12  # each as wide as the root of its area


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


def pick_focus(comm, element: ReferenceElement, points: np.ndarray, wish) -> Lens | None:
    """The lens of `wish`: True, (x, y) or (x, y, radius); True looks at the smallest cells. Collective.

    None if the cells are so large that nothing is to be magnified. Raises OptionError on all ranks.
    """
    given = np.empty(0)
    with collectively(comm):
        if wish is not True:
            given = np.atleast_1d(np.asarray(wish, float))
            if given.shape not in ((2,), (3,)):
                raise OptionError(f"inset is {wish!r}; True, (x, y) or (x, y, radius) is accepted.")
    if len(given) == 3:
        return Lens(given[:2], float(given[2]))
    centres, sizes = points.mean(axis=1), np.sqrt(_areas(element, points))
    score = np.linalg.norm(centres - given, axis=1) if len(given) else sizes
    focus, size = _best(comm, score, centres, sizes)
    usual = comm.allreduce(float(sizes.sum())) / max(1, comm.allreduce(len(sizes)))
    radius = 0.5 * _CELLS_ACROSS * min(usual, 2.5 * size)
    if 1.8 * radius > _SIZE * np.sqrt(comm.allreduce(float((sizes**2).sum()))):
        return None
    return Lens(given, radius) if len(given) else Lens(_centred(comm, centres, focus, radius), radius)


def _best(comm, score, centres, sizes) -> tuple[np.ndarray, float]:
    """Centre and size of the cell with the lowest score of all ranks. Collective."""
    i = int(np.argmin(score)) if len(score) else -1
    mine = (float(score[i]), centres[i], float(sizes[i])) if i >= 0 else (np.inf, np.zeros(2), 1.0)
    return min(comm.allgather(mine), key=lambda found: found[0])[1:]


def _centred(comm, centres, focus, radius: float) -> np.ndarray:
    """The focus moved to the middle of the cells around it, so that the disc is filled. Collective."""
    for _ in range(3):
        near = centres[np.linalg.norm(centres - focus, axis=1) < radius]
        total, count = comm.allreduce(near.sum(axis=0)), comm.allreduce(len(near))
        focus = total / count if count else focus
    return focus


def _areas(element: ReferenceElement, points: np.ndarray) -> np.ndarray:
    gradients = element.tabulate(element.nodes.mean(axis=0, keepdims=True), 1)[1:, 0]
    half = 0.5 if element.cell == "triangle" else 1.0
    return half * np.abs(np.linalg.det(gradients @ points))


def place_lens(lens: Lens, points, lower, upper) -> PlacedLens:
    """Put the magnified disc where the picture is empty, near its place.

    points [n, 2] cover the domain; lower and upper [2] are the corners of the box around it. The disc may lie outside
    the box: the cost of a place weighs how much the picture grows, and how far the disc is from what it shows.
    """
    extent = upper - lower
    length = np.sqrt(extent.prod())
    size = _SIZE * length
    axes = [np.linspace(low - 1.3 * size, high + 1.3 * size, 60) for low, high in zip(lower, upper, strict=True)]
    centres = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    clear = _clearance(centres, points[:: max(1, len(points) // 6000)])
    grown = np.maximum(upper, centres + size) - np.minimum(lower, centres - size)
    growth = grown.prod(axis=1) / extent.prod() - 1
    distance = np.linalg.norm(centres - lens.focus, axis=1) / length
    cost = growth + 0.5 * distance + 1e3 * np.maximum(0, 1.2 - clear / size) - 0.1 * np.minimum(clear / size, 1.6)
    return PlacedLens(lens.focus, lens.radius, centres[np.argmin(cost)], float(size))


def _clearance(centres: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Distance [centre] to the nearest of the points."""
    parts = np.array_split(points, -(-len(points) // 200))
    return np.min([np.linalg.norm(part[:, None] - centres, axis=2).min(axis=0) for part in parts], axis=0)


def draw_lens(axes, scene, placed: PlacedLens, shades) -> None:
    """Draw the disc, what is seen of the Plane through it, and the lines that tie it to its place."""
    from matplotlib.patches import Circle

    for circle, width in (((placed.focus, placed.radius), 0.9), ((placed.centre, placed.size), 1.2)):
        ring = Circle(*circle, fill=False, edgecolor=INK, linewidth=width, zorder=8, path_effects=_halo())
        axes.add_patch(ring)
    disc = Circle(placed.centre, placed.size, facecolor=PAPER, edgecolor="none", zorder=4)
    axes.add_patch(disc)
    _tie(axes, placed)
    drawn = [
        scene.edges.drawn(axes, 0.5, shades, 0.8, placed.magnified, zorder=6),
        scene.interfaces.drawn(axes, 1.6, shades, None, placed.magnified, zorder=6),
        scene.outline.drawn(axes, 1.3, INK, None, placed.magnified, zorder=6),
    ]
    if scene.triangles is not None:
        drawn += _shaded(axes, scene, placed, shades)
    for artist in drawn:
        artist.set_clip_path(disc)


def _shaded(axes, scene, placed: PlacedLens, shades) -> list:
    """The shaded triangles near the focus."""
    from matplotlib.tri import Triangulation

    near = np.linalg.norm(scene.points - placed.focus, axis=1) < 1.6 * placed.radius
    seen = scene.triangles[near[scene.triangles].any(axis=1)]
    if len(seen) == 0:
        return []
    mesh = Triangulation(*placed.magnified(scene.points).T, seen)
    return [shade(axes, mesh, scene.values, shades, zorder=5)]


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
        axes.plot(*ends.T, color=INK, linewidth=0.6, zorder=3, path_effects=_halo())


def _halo() -> list:
    """A light rim that lets dark lines be seen on dark colours."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.0, foreground=PAPER, alpha=0.6)]
