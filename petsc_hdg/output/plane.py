"""Pictures of 2D fields."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..reference import ReferenceElement
from .facets import FacetSet, all_facets, skin
from .inset import Lens, draw_lens, pick_focus, place_lens
from .style import (
    BOUNDARY_COLOURS,
    FAINT,
    INK,
    INTERFACE,
    colour_bar,
    colours,
    contrasting,
    new_figure,
    quiet_axes,
)
from .subdivide import lattice, pieces_per_cell, steps
from .transfer import gather_rows

_TRIANGLES = 600_000  # how many are worth drawing
_MOST_TRIANGLES = 4_000_000  # more cells than this are drawn as dots
_DOTS = 1_000_000


@dataclass(frozen=True)
class Plane:
    """What is drawn, on rank 0. Curves are [curve, point, 2], places in the (deformed) mesh's length unit.

    points [n, 2], values [n], triangles [t, 3]: the shaded field; triangles is None for dots.
    """

    points: np.ndarray
    values: np.ndarray
    triangles: np.ndarray | None
    outline: np.ndarray
    interfaces: np.ndarray
    edges: np.ndarray
    edge_values: np.ndarray
    first_outline: np.ndarray | None
    boundaries: dict[str, np.ndarray] = field(default_factory=dict)
    lens: Lens | None = None
    note: str = ""


def collect_plane(
    comm, element: ReferenceElement, points, values, tags, boundaries, displacement, wish
) -> Plane | None:
    """Sample the field on each rank and gather it: a Plane on rank 0, None elsewhere. Collective."""
    exterior, between = skin(comm, element, points, tags)
    shape, note = points, ""
    if displacement is not None:
        scale = wish.scale if wish.scale is not None else automatic_scale(comm, points, displacement)
        shape, note = points + scale * displacement, f"displacement × {scale:.3g}"
    total = comm.allreduce(len(points))
    wanted = 1 if (element.cell, element.degree) == ("triangle", 1) else min(16, 4 * element.degree)
    n = steps(element.cell, wanted, total, _TRIANGLES)
    fine = max(n, min(4, wanted))
    curves = lambda facets, of: gather_rows(comm, facets.sample(element, fine, of))  # noqa: E731
    lens, edges = _mesh_edges(comm, element, shape, wish)
    parts = {
        "outline": curves(exterior, shape),
        "interfaces": curves(between, shape),
        "edges": curves(edges, shape),
        "edge_values": curves(edges, values),
        "first_outline": None if displacement is None else curves(exterior, points),
        "boundaries": {name: curves(facets, shape) for name, facets in boundaries.items()},
        "lens": lens,
    }
    if pieces_per_cell(element.cell, 1) * total > _MOST_TRIANGLES:
        field, note = _dots(comm, element, shape, values, total), f"{note}  one dot for several cells".strip()
    else:
        field = _triangles(comm, element, shape, values, n)
    return Plane(*field, note=note, **parts) if comm.rank == 0 else None


def automatic_scale(comm, points: np.ndarray, displacement: np.ndarray) -> float:
    """The factor that makes the largest displacement a tenth of the mesh's size. Collective."""
    flat = points.reshape(-1, points.shape[-1])
    largest = np.linalg.norm(displacement, axis=-1).max(initial=0.0)
    found = comm.allgather((flat.min(axis=0, initial=np.inf), flat.max(axis=0, initial=-np.inf), largest))
    size = np.max(np.max([f[1] for f in found], axis=0) - np.min([f[0] for f in found], axis=0))
    largest = max(f[2] for f in found)
    return float(0.1 * size / largest) if largest > 0 else 1.0


def _mesh_edges(comm, element, shape, wish) -> tuple[Lens | None, FacetSet]:
    """The lens, if one is wanted, and the cells' edges that are drawn: all, those seen through the lens, or none."""
    lens = pick_focus(comm, element, shape, wish.inset) if wish.inset else None
    if wish.mesh_lines:
        cells = np.arange(len(shape))
    elif lens is not None:
        reach = np.linalg.norm(shape - shape.mean(axis=1, keepdims=True), axis=2).max(axis=1, initial=0.0)
        cells = np.flatnonzero(np.linalg.norm(shape.mean(axis=1) - lens.focus, axis=1) < lens.radius + reach)
    else:
        cells = np.arange(0)
    return lens, all_facets(element, shape, cells)


def _triangles(comm, element, shape, values, n: int):
    """Points, values and triangles of all cells on rank 0."""
    places, pieces = lattice(element.cell, n)
    table = element.tabulate(places, 0)[0]
    points, found = gather_rows(comm, table @ shape), gather_rows(comm, table @ values)
    if comm.rank:
        return None
    triangles = (np.arange(len(points))[:, None, None] * len(places) + pieces).reshape(-1, 3)
    return points.reshape(-1, 2), found.ravel(), triangles


def _dots(comm, element, shape, values, total: int):
    """Centres and values there of every so many cells on rank 0."""
    stride = -(-total // _DOTS)
    table = element.tabulate(element.nodes.mean(axis=0, keepdims=True), 0)[0]
    points, found = gather_rows(comm, table @ shape[::stride]), gather_rows(comm, table @ values[::stride])
    return (points.reshape(-1, 2), found.ravel(), None) if comm.rank == 0 else None


def draw_plane(scene: Plane, wish):
    """The figure."""
    from matplotlib.cm import ScalarMappable

    limits, placed = _layout(scene, wish)
    (x0, x1), (y0, y1) = limits
    subtitle = "   ".join(text for text in (wish.subtitle, scene.note) if text)
    figure, axes, bar_axes = new_figure((y1 - y0) / (x1 - x0), wish.title, subtitle, bool(scene.boundaries))
    axes.set_xlim(x0, x1), axes.set_ylim(y0, y1)
    quiet_axes(axes)
    colour_map, norm = colours(scene.values, wish.colour_map)
    _draw_field(axes, scene, colour_map, norm, wish.contours)
    edge_colours = contrasting(colour_map(norm(scene.edge_values.mean(axis=(1, 2)))))
    _draw_lines(axes, scene, wish, edge_colours)
    if placed is not None:
        draw_lens(axes, scene, placed, colour_map, norm, edge_colours)
    colour_bar(figure, bar_axes, ScalarMappable(norm, colour_map), wish.label)
    return figure


def _layout(scene: Plane, wish):
    """Limits of the axes ((x0, x1), (y0, y1)) with a margin, and the lens with its place on the paper."""
    seen = (
        scene.outline.reshape(-1, 2)
        if scene.first_outline is None
        else np.concatenate((scene.outline.reshape(-1, 2), scene.first_outline.reshape(-1, 2)))
    )
    lower, upper = seen.min(axis=0), seen.max(axis=0)
    placed = None if scene.lens is None else place_lens(scene.lens, seen, scene.points, lower, upper)
    if placed is not None:
        lower = np.minimum(lower, placed.centre - placed.size)
        upper = np.maximum(upper, placed.centre + placed.size)
    margin = 0.02 * (upper - lower).max()
    return list(zip(lower - margin, upper + margin, strict=True)), placed


def _draw_field(axes, scene: Plane, colour_map, norm, contours: int) -> None:
    from matplotlib.ticker import MaxNLocator
    from matplotlib.tri import Triangulation

    if scene.triangles is None:
        axes.scatter(*scene.points.T, c=scene.values, s=0.6, marker="s", linewidths=0, cmap=colour_map, norm=norm)
        return
    mesh = Triangulation(*scene.points.T, scene.triangles)
    axes.tripcolor(mesh, scene.values, shading="gouraud", cmap=colour_map, norm=norm, rasterized=True)
    if contours and np.ptp(scene.values) > 0:
        levels = MaxNLocator(contours).tick_values(scene.values.min(), scene.values.max())
        axes.tricontour(
            mesh,
            scene.values,
            levels=levels,
            colors=contrasting(colour_map(norm(levels))),
            linewidths=0.5,
            alpha=0.45,
            linestyles="solid",
        )


def _draw_lines(axes, scene: Plane, wish, edge_colours) -> None:
    from matplotlib.collections import LineCollection

    if scene.first_outline is not None:
        axes.add_collection(
            LineCollection(scene.first_outline, colors=FAINT, linewidths=0.8, linestyles=(0, (4, 3)), zorder=0.5)
        )
    if wish.mesh_lines:
        axes.add_collection(
            LineCollection(scene.edges, colors=edge_colours, linewidths=0.3, alpha=0.5, capstyle="round")
        )
    for colour, width in INTERFACE:
        axes.add_collection(LineCollection(scene.interfaces, colors=colour, linewidths=width, capstyle="round"))
    axes.add_collection(LineCollection(scene.outline, colors=INK, linewidths=1.0, capstyle="round"))
    for i, (name, curves) in enumerate(scene.boundaries.items()):
        colour = BOUNDARY_COLOURS[i % len(BOUNDARY_COLOURS)]
        axes.add_collection(LineCollection(curves, colors=colour, linewidths=2.4, capstyle="round", label=name))
    if scene.boundaries:
        columns = min(6, len(scene.boundaries))
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.06),
            ncols=columns,
            frameon=False,
            fontsize=8,
            labelcolor=INK,
            handlelength=1.4,
        )
