"""The picture of a 2D field: shaded values, contour lines, outlines, names of boundaries, a magnified disc."""

from __future__ import annotations

import numpy as np

from .inset import PlacedLens, draw_lens, place_lens
from .plane import Plane
from .style import BOUNDARY_COLOURS, FAINT, INK, colour_bar, colours, contrasting, new_figure, quiet_axes, shade


def draw_plane(scene: Plane, wish):
    """The figure, of a Plane and a Picture."""
    from matplotlib.cm import ScalarMappable

    lower, upper = scene.corners()
    placed = None if scene.lens is None else place_lens(scene.lens, scene.points, lower, upper)
    first, last = _limits(lower, upper, placed)
    subtitle = "   ".join(text for text in (wish.subtitle, scene.note) if text)
    width, height = last - first
    figure, axes, bar_axes = new_figure(height / width, wish.title, subtitle, bool(scene.boundaries))
    axes.set_xlim(first[0], last[0]), axes.set_ylim(first[1], last[1])
    quiet_axes(axes, lower, upper)
    shades = colours(scene.values, wish.colour_map)
    _draw_field(axes, scene, shades, wish.contours)
    _draw_lines(axes, scene, shades, wish)
    if placed is not None:
        draw_lens(axes, scene, placed, shades)
    if scene.boundaries:
        _draw_boundaries(figure, axes, scene)
    colour_bar(figure, bar_axes, ScalarMappable(shades[1], shades[0]), wish.label)
    return figure


def _limits(lower, upper, placed: PlacedLens | None) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corner [2] of the axes: all that is drawn, and a margin."""
    if placed is not None:
        lower = np.minimum(lower, placed.centre - placed.size)
        upper = np.maximum(upper, placed.centre + placed.size)
    margin = 0.02 * (upper - lower).max()
    return lower - margin, upper + margin


def _draw_field(axes, scene: Plane, shades, contours: int) -> None:
    from matplotlib.ticker import MaxNLocator
    from matplotlib.tri import Triangulation

    colour_map, norm = shades
    values = scene.values
    if scene.triangles is None:
        axes.scatter(*scene.points.T, c=values, s=0.6, marker="s", linewidths=0, cmap=colour_map, norm=norm)
        return
    mesh = Triangulation(*scene.points.T, scene.triangles)
    shade(axes, mesh, values, shades)
    if contours and np.ptp(values) > 1e-12 * np.abs(values).max():
        levels = MaxNLocator(contours).tick_values(values.min(), values.max())
        inks = contrasting(colour_map(norm(levels)))
        axes.tricontour(mesh, values, levels=levels, colors=inks, linewidths=0.5, alpha=0.4, linestyles="solid")


def _draw_lines(axes, scene: Plane, shades, wish) -> None:
    if scene.first is not None:
        scene.first.drawn(axes, 0.8, FAINT, linestyles=(0, (4, 3)), zorder=0.5)
    if wish.mesh_lines or scene.lens is None:
        scene.edges.drawn(axes, 0.3, shades, alpha=0.5)
    scene.interfaces.drawn(axes, wish.region_width, shades, alpha=0.9)
    scene.outline.drawn(axes, 1.0, INK)


def _draw_boundaries(figure, axes, scene: Plane) -> None:
    """Named boundaries in colour, their names under the picture."""
    lines = []
    for i, (name, curves) in enumerate(scene.boundaries.items()):
        lines.append(curves.drawn(axes, 2.2, BOUNDARY_COLOURS[i % len(BOUNDARY_COLOURS)], label=name))
    box = axes.get_position()
    figure.legend(
        handles=lines,
        loc="lower center",
        bbox_to_anchor=((box.x0 + box.x1) / 2, 0.05 / figure.get_figheight()),
        ncols=min(6, len(lines)),
        frameon=False,
        fontsize=8,
        labelcolor=INK,
        handlelength=1.4,
    )
