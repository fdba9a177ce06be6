"""Pictures of solutions: in 2D shaded values with contour lines, in 3D the lit outer surface, whole or cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..errors import OptionError, PetscHdgError, collectively
from ..value_checks import path as given_path
from ..value_checks import plural
from . import style
from .arrays import at_nodes, cellwise, coordinates, element_for, named
from .atomic import atomic_file, check_target
from .facets import FacetSet
from .inset import PlacedLens, draw_lens, place_lens
from .plane import Plane, collect_plane
from .surface import collect_surface, draw_surface


@dataclass(frozen=True)
class Picture:
    """Settings of a picture; see `plot`."""

    title: str = ""
    subtitle: str = ""
    label: str = ""
    mesh_lines: bool = False
    inset: bool | tuple = False
    contours: int = 12
    scale: float | None = None
    colour_map: str | None = None
    view: tuple[float, float] = (-58.0, 24.0)
    cut: bool | None = None
    region_width: float = 1.2
    dpi: int = 200


def plot(
    path,
    comm,
    cell: str,
    degree: int,
    points,
    values=None,
    *,
    cell_regions=None,
    boundaries: Mapping | None = None,
    displacement=None,
    **picture,
):
    """Draw a field, and write it as PNG unless path is None. Collective over `comm` (mpi4py); rank 0 draws, and returns
    matplotlib's Figure; other ranks None.

    cell, degree, points [cell, node, dim]: cells and places of their nodes as for `write_vtu`.
    values [cell], or at the nodes of any degree [cell, node] or [cell, node, component]: colours; several components
        show their magnitude, and the label says so. {title: such values} are pictures side by side.
    cell_regions [cell] int: thin lines are drawn between regions, region_width points wide.
    boundaries: name → (cells [n], local facets [n]), as Mesh.boundary_facets gives: coloured lines with a legend (2D).
    displacement [cell, node, dim], at the nodes of any degree: the shape is drawn deformed by `scale` times this, with
        its first outline; `values` may be left out: the displacement's magnitude.
    scale: factor on the displacement (None: the largest becomes a tenth of the mesh's size).
    title, subtitle, label (of the colour bar): text.   contours: about how many contour lines (2D; 0: none).
    mesh_lines: draw the cells' edges.   inset: a magnified disc with the mesh (2D), True or (x, y) or (x, y, radius).
    colour_map: a name of matplotlib's (None: dark to light, or blue to red about 0 for values of both signs).
    view: azimuth and elevation in degrees (3D).
    cut: leave out the cells of the near half (3D; None: if the surface shows less than 5 % of the field's range).
    dpi: pixels per inch, the picture being some 8 inches wide.
    Very large meshes are drawn as dots, one for several cells; the picture says so.
    Raises OptionError on all ranks for arrays that do not fit, a missing matplotlib, or a path that cannot be written.
    """
    path, element, tags = None if path is None else given_path("The picture", path), None, None
    with collectively(comm):
        wish = _picture(picture)
        if comm.rank == 0:
            style.matplotlib()
            if path is not None:
                check_target(path, ".png")
        element = element_for(cell, degree)
        points = coordinates(points, element)
        if displacement is not None:
            displacement = at_nodes("displacement", displacement, element, len(points))
            displacement = coordinates(displacement, element, "displacement")
        if values is None and displacement is None:
            raise OptionError("There is nothing to draw; give values, a displacement, or both.")
        shown = displacement if values is None else values
        panels = _panels(shown if isinstance(shown, Mapping) else {"": shown}, wish, element, len(points))
        tags = _tags(cell_regions, len(points))
        boundaries = _facet_sets({} if boundaries is None else boundaries, len(points))
    collect, draw = (collect_plane, draw_plane) if element.dim == 2 else (collect_surface, draw_surface)
    scenes = []
    for values, panel in panels:
        _check_cells(comm, len(points), values)
        scenes.append((collect(comm, element, points, values, tags, boundaries, displacement, panel), panel))
    with collectively(comm):
        return _drawn(path, draw, scenes) if comm.rank == 0 else None


def _panels(given: Mapping, wish: Picture, element, num_cells: int) -> list[tuple[np.ndarray, Picture]]:
    """Values [cell, node, 1] and the wish of each picture, from {title, or "": values}."""
    if not given:
        raise OptionError("There is nothing to draw; give at least one field.")
    found = []
    for title, values in given.items():
        nodal = at_nodes("values", values, element, num_cells)
        label = wish.label
        if nodal.shape[2] > 1:
            nodal, label = np.linalg.norm(nodal, axis=2, keepdims=True), label or "magnitude"
        found.append((nodal, replace(wish, label=label, title=title or wish.title)))
    return found


def _drawn(path: Path | None, draw, scenes: list):
    """Draw scenes, side by side, and write them on this rank; the Figure. What fails in matplotlib is an OptionError,
    so that the other ranks hear of it."""
    dpi = scenes[0][1].dpi
    try:
        with style.matplotlib().rc_context(style.type_settings()):
            figures = [draw(*scene) for scene in scenes]
            figure = figures[0] if len(figures) == 1 else style.side_by_side(figures, dpi)
            if path is not None:
                with atomic_file(path) as file:
                    figure.savefig(file, format="png", dpi=dpi)
            return figure
    except PetscHdgError:
        raise
    except Exception as error:
        raise OptionError(f"The picture {path or ''} cannot be drawn: matplotlib says '{error}'.") from error


def _picture(given: dict) -> Picture:
    known = Picture.__dataclass_fields__
    for name in given:
        if name not in known:
            known = ("values", "cell_regions", "boundaries", "displacement", *known)
            raise OptionError(f"plot has no option '{name}'; known are {', '.join(known)}.")
    return Picture(**given)


def _tags(cell_regions, num_cells: int) -> np.ndarray:
    if cell_regions is None:
        return np.zeros(num_cells, np.int64)
    return cellwise("cell_regions", cell_regions, num_cells)[:, 0].astype(np.int64)


def _facet_sets(boundaries, num_cells: int) -> dict[str, FacetSet]:
    found = {}
    for name, pair in named("boundaries", boundaries).items():
        cells, local = (np.asarray(of) for of in pair) if len(pair) == 2 else (np.empty(0), np.empty(1))
        if cells.shape != local.shape or cells.max(initial=-1) >= num_cells:
            raise OptionError(f"Boundary '{name}' does not fit; give cells [n] below {num_cells} and local facets [n].")
        found[name] = FacetSet(cells.astype(int), local.astype(int))
    return found


def _check_cells(comm, num_cells: int, values: np.ndarray) -> None:
    """Raise OptionError on all ranks if there are no cells at all, or values that are not finite."""
    total = comm.allreduce(num_cells)
    with collectively(comm):
        if total == 0:
            raise OptionError("There is nothing to draw: the mesh has no cells.")
        bad = np.count_nonzero(~np.isfinite(values))
        if bad:
            raise OptionError(
                f"'values' is not finite in {plural(bad, 'entry', 'entries')} on rank {comm.rank}; a picture needs "
                "finite ones."
            )


def draw_plane(scene: Plane, wish):
    """The figure, of a Plane and a Picture."""
    from matplotlib.cm import ScalarMappable

    lower, upper = scene.corners()
    placed = None if scene.lens is None else place_lens(scene.lens, scene.points, lower, upper)
    first, last = _limits(lower, upper, placed)
    subtitle = "   ".join(text for text in (wish.subtitle, scene.note) if text)
    width, height = last - first
    figure, axes, bar_axes = style.new_figure(height / width, wish.title, subtitle, bool(scene.boundaries))
    axes.set_xlim(first[0], last[0]), axes.set_ylim(first[1], last[1])
    style.quiet_axes(axes, lower, upper)
    shades = style.colours(scene.values, wish.colour_map)
    _draw_field(axes, scene, shades, wish.contours)
    _draw_lines(axes, scene, shades, wish)
    if placed is not None:
        draw_lens(axes, scene, placed, shades)
    if scene.boundaries:
        _draw_boundaries(figure, axes, scene)
    style.colour_bar(figure, bar_axes, ScalarMappable(shades[1], shades[0]), wish.label)
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
    style.shade(axes, mesh, values, shades)
    if contours and np.ptp(values) > 1e-12 * np.abs(values).max():
        levels = MaxNLocator(contours).tick_values(values.min(), values.max())
        inks = style.contrasting(colour_map(norm(levels)))
        axes.tricontour(mesh, values, levels=levels, colors=inks, linewidths=0.5, alpha=0.4, linestyles="solid")


def _draw_lines(axes, scene: Plane, shades, wish) -> None:
    if scene.first is not None:
        scene.first.drawn(axes, 0.8, style.FAINT, linestyles=(0, (4, 3)), zorder=0.5)
    if wish.mesh_lines or scene.lens is None:
        scene.edges.drawn(axes, 0.3, shades, alpha=0.5)
    scene.interfaces.drawn(axes, wish.region_width, shades, alpha=0.9)
    scene.outline.drawn(axes, 1.0, style.INK)


def _draw_boundaries(figure, axes, scene: Plane) -> None:
    """Named boundaries in colour, their names under the picture."""
    lines = []
    for i, (name, curves) in enumerate(scene.boundaries.items()):
        lines.append(curves.drawn(axes, 2.2, style.BOUNDARY_COLOURS[i % len(style.BOUNDARY_COLOURS)], label=name))
    box = axes.get_position()
    figure.legend(
        handles=lines,
        loc="lower center",
        bbox_to_anchor=((box.x0 + box.x1) / 2, 0.05 / figure.get_figheight()),
        ncols=min(6, len(lines)),
        frameon=False,
        fontsize=8,
        labelcolor=style.INK,
        handlelength=1.4,
    )
