"""Pictures of 3D fields: the outer surface, or that of the far half, lit, seen from outside."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import numpy as np

from ..mesh.order import box
from ..reference import ReferenceElement, facet_cell
from .arrays import gather_rows
from .facets import FacetSet, lattice, outline_points, place_keys, skin, steps
from .painter import Seen
from .plane import deformed
from .style import FAINT, ROUNDING, colour_bar, colours, new_figure

_TRIANGLES = 5.0  # how many are worth drawing, times dpi squared; each has one colour
_MOST_STEPS = 40
_FINER = 2  # pixels of a rendered image for one of the picture, which smooths edges
_PATIENCE = 120.0  # seconds that PyVista may take for an image
_FLAT = 0.05  # part of the field's range below which the outer surface shows nothing of it


@dataclass(frozen=True)
class Surface:
    """The outer facets, on rank 0. points [facet, lattice point, 3], values [facet, lattice point].

    pieces [t, 3] and outline [edge, n + 1]: triangles and edges of one facet's lattice.   turned [facet] bool: whether
    the lattice's normal points inwards.   regions [facet] int: between different ones there are lines.
    """

    points: np.ndarray
    values: np.ndarray
    pieces: np.ndarray
    outline: np.ndarray
    turned: np.ndarray
    regions: np.ndarray
    note: str = ""
    size: float = 0.0  # largest value of the whole field

    def normals(self) -> np.ndarray:
        """Outward unit normals [facet, piece, 3]."""
        found = _normals(self.points[:, self.pieces]) * np.where(self.turned, -1.0, 1.0)[:, None, None]
        return found / np.maximum(np.linalg.norm(found, axis=2, keepdims=True), np.finfo(float).tiny)

    @property
    def beside(self) -> np.ndarray:
        """The piece [edge] that lies at the middle of each edge of a facet."""
        middle = self.outline.shape[1] // 2
        pairs = self.outline[:, [middle - 1, middle]]
        return np.array([np.flatnonzero(np.isin(self.pieces, pair).sum(axis=1) == 2)[0] for pair in pairs])

    def edge_keys(self) -> np.ndarray:
        """Numbers [facet, edge] for the places of the edges: the same for two facets that share an edge."""
        lower, size = self.points.min(axis=(0, 1)), np.ptp(self.points, axis=(0, 1)).max()
        return place_keys(self.points[:, self.outline[:, [0, -1]]].mean(axis=2), lower, size)


def collect_surface(
    comm, element: ReferenceElement, points, values, tags, boundaries, displacement, wish
) -> Surface | None:
    """Sample the outer facets on each rank and gather them: a Surface on rank 0, None elsewhere. Collective."""
    exterior, _ = skin(comm, element, points, np.zeros_like(tags))
    shape, note = deformed(comm, points, displacement, wish.scale)
    low, high = box(comm, values.reshape(-1, 1))[:, 0]
    outside = exterior.sample(element, element.degree, values)
    size, seen = max(abs(low), abs(high)), np.ptp(box(comm, outside.reshape(-1, 1)))
    if wish.cut or (wish.cut is None and seen < _FLAT * (high - low) > _FLAT * ROUNDING * size):
        exterior = _far_half(comm, element, points, view_axes(*wish.view)[2])
        note = "   ".join(text for text in (note, "cut through the middle") if text)
    kind = facet_cell(element.cell)
    n = steps(kind, _MOST_STEPS, comm.allreduce(len(exterior.cells)), int(_TRIANGLES * wish.dpi**2))
    found = exterior.sample(element, n, shape)
    pieces, outline = lattice(kind, n)[1], outline_points(kind, n)
    outwards = found.mean(axis=1) - shape.mean(axis=1)[exterior.cells]
    turned = np.einsum("fd,fd->f", _normals(found[:, pieces]).sum(axis=1), outwards) < 0
    shown, colour = gather_rows(comm, found), gather_rows(comm, exterior.sample(element, n, values)[..., 0])
    turned, regions = gather_rows(comm, turned), gather_rows(comm, tags[exterior.cells])
    return Surface(shown, colour, pieces, outline, turned, regions, note, size) if comm.rank == 0 else None


def _far_half(comm, element: ReferenceElement, points: np.ndarray, eye: np.ndarray) -> FacetSet:
    """Outer facets of the cells beyond the middle, along the axis that points most to the eye [3]. Collective."""
    axis = np.abs(eye).argmax()
    depth = points[..., axis].mean(axis=1) * np.sign(eye[axis])
    low, high = box(comm, depth[:, None])[:, 0]
    kept = np.flatnonzero(depth <= (low + high) / 2 + 1e-9 * (high - low))
    found, _ = skin(comm, element, points[kept], np.zeros(len(kept), np.int64))
    return FacetSet(kept[found.cells], found.local)


def _normals(corners: np.ndarray) -> np.ndarray:
    """Normals [..., 3] of triangles [..., 3, 3], their length twice the area."""
    return np.cross(corners[..., 1, :] - corners[..., 0, :], corners[..., 2, :] - corners[..., 0, :])


def draw_surface(scene: Surface, wish):
    """The figure: an orthographic view, drawn by PyVista where it is installed, else far pieces first."""
    from matplotlib.cm import ScalarMappable

    right, up, eye = view_axes(*wish.view)
    flat = scene.points @ np.stack((right, up), axis=1)
    lower, upper = flat.min(axis=(0, 1)), flat.max(axis=(0, 1))
    margin = 0.04 * (upper - lower).max()
    (x0, y0), (x1, y1) = lower - margin, upper + margin
    subtitle = "   ".join(text for text in (wish.subtitle, scene.note) if text)
    figure, axes, bar_axes = new_figure((y1 - y0) / (x1 - x0), wish.title, subtitle, False)
    axes.set_xlim(x0, x1), axes.set_ylim(y0, y1)
    axes.set_aspect("equal")
    axes.axis("off")
    colour_map, norm = colours(scene.values, wish.colour_map, scene.size)
    seen = Seen.of(scene, np.stack((right, up, eye), axis=1), colour_map(norm(scene.values)), wish)
    dpi = _FINER * wish.dpi
    pixels = np.rint(figure.get_size_inches() * axes.get_position().size * dpi).astype(int)
    image = rendered(seen, lower - margin, upper + margin, tuple(np.maximum(pixels, 1).tolist()), dpi)
    if image is None:
        axes.add_collection(seen.collection())
    else:
        axes.imshow(image, extent=(x0, x1, y0, y1), interpolation="antialiased")
    _triad(axes, right, up, (x0, y0), 0.07 * (upper - lower).max())
    colour_bar(figure, bar_axes, ScalarMappable(norm, colour_map), wish.label)
    return figure


def rendered(
    seen: Seen, lower: np.ndarray, upper: np.ndarray, pixels: tuple[int, int], dpi: float
) -> np.ndarray | None:
    """An image [row, column, RGBA] of `pixels` (width, height) between corners [2], dpi of them an inch; None where
    PyVista is not installed or draws nothing."""
    try:
        if find_spec("pyvista") is None:
            return None
        given, script = BytesIO(), Path(__file__).with_name("render_script.py").read_text(encoding="utf-8")
        np.savez(given, lower=lower, upper=upper, pixels=pixels, dpi=dpi, **asdict(seen))
        command = [sys.executable, "-c", script]  # not by its path, whose folder would be searched for packages
        done = subprocess.run(command, input=given.getvalue(), capture_output=True, timeout=_PATIENCE, check=True)
        image = np.load(BytesIO(done.stdout))
        return image if image.shape == (pixels[1], pixels[0], 4) else None
    except (OSError, ValueError, EOFError, subprocess.SubprocessError):
        return None


def view_axes(azimuth: float, elevation: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unit vectors [3] to the right, up, and towards the eye; angles in degrees, the third axis is up."""
    a, e = np.radians((azimuth, elevation))
    eye = np.array((np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)))
    right = np.array((-np.sin(a), np.cos(a), 0.0))
    return right, np.cross(eye, right), eye


def _triad(axes, right, up, corner, length: float) -> None:
    """The directions of x, y, z in the lower left corner."""
    origin = np.array(corner) + 1.1 * length
    for name, along in zip("xyz", np.stack((right, up), axis=1), strict=True):
        tip = origin + length * along
        axes.plot(*zip(origin, tip, strict=True), color=FAINT, linewidth=0.9, solid_capstyle="round", clip_on=False)
        axes.text(*(origin + 1.3 * length * along), name, size=8, color=FAINT, ha="center", va="center")
