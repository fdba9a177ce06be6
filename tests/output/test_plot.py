"""Pictures: they show the values where they are, they are not blank, and what is refused."""

import sys

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from mpi4py import MPI
from samples import BOXES, box, node_places

from petsc_hdg.errors import OptionError
from petsc_hdg.output import plane, plot
from petsc_hdg.output import surface as surfaces
from petsc_hdg.output.inset import Lens, place_lens
from petsc_hdg.output.plot import Picture
from petsc_hdg.output.style import BOUNDARY_COLOURS, DUSK, colours
from petsc_hdg.reference import ReferenceElement

COMM = MPI.COMM_SELF
BACKGROUND = np.ones(3)


def picture(path) -> np.ndarray:
    """Pixels [row, column, 3]."""
    return imread(path)[..., :3]


def near(pixels, colour) -> int:
    """Number of pixels of a colour."""
    return int(np.count_nonzero(np.abs(pixels - to_rgb(colour)).max(axis=2) < 0.03))


def drawn(pixels) -> np.ndarray:
    """Pixels [n, 3] that are not background, left to right."""
    columns = pixels.transpose(1, 0, 2).reshape(-1, 3)
    return columns[np.abs(columns - BACKGROUND).max(axis=1) > 0.02]


@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize("cell", BOXES)
def test_brightness_follows_the_values(tmp_path, cell, degree):
    """The colour map grows brighter, and so must a picture of u = x from left to right."""
    mesh = box(cell, COMM)
    x = node_places(mesh, degree)
    plot(tmp_path / "a.png", COMM, cell, degree, x, x[..., 0], dpi=60, view=(-90.0, 15.0))
    pixels = picture(tmp_path / "a.png")
    height, width = pixels.shape[:2]
    row = pixels[height // 2, : int(0.85 * width)] @ (0.2126, 0.7152, 0.0722)
    inside = row[(row < 0.98)]
    assert len(inside) > 0.5 * width
    fifths = [part.mean() for part in np.array_split(inside[5:-5], 5)]
    assert all(a < b - 0.03 for a, b in zip(fifths, fifths[1:], strict=False)), fifths


@pytest.mark.parametrize("cell", ["tetrahedron", "hexahedron"])
def test_the_near_side_is_seen(tmp_path, cell):
    """Looking along y, the side y = 0 hides the rest; there u = y is darkest."""
    x = node_places(box(cell, COMM), 1)
    plot(tmp_path / "a.png", COMM, cell, 1, x, x[..., 1], dpi=60, view=(-90.0, 0.0))
    pixels = picture(tmp_path / "a.png")
    middle = pixels[pixels.shape[0] // 2, pixels.shape[1] // 4 : pixels.shape[1] // 2]
    assert np.abs(middle - to_rgb(DUSK[0])).max() < 0.15


def test_everything_at_once_in_2d(tmp_path):
    mesh = box("triangle", COMM)
    x = node_places(mesh, 2)
    sides = {name: mesh.boundary_facets(name) for name in ("left", "top")}
    plain, full = tmp_path / "plain.png", tmp_path / "full.png"
    plot(plain, COMM, "triangle", 2, x, x, dpi=60)
    plot(
        full,
        COMM,
        "triangle",
        2,
        x,
        x,
        title="A title",
        subtitle="more",
        label="|u|",
        mesh_lines=True,
        inset=(1.0, 0.5, 0.1),
        cell_regions=x.mean(axis=1)[:, 0] > 1,
        boundaries=sides,
        displacement=0.1 * x**2,
        dpi=60,
    )
    assert len(np.unique((drawn(picture(full)) * 255).astype(int), axis=0)) > 500
    for colour in BOUNDARY_COLOURS[:2]:
        assert near(picture(full), colour) > 8 > near(picture(plain), colour)


def texts(figure) -> list[str]:
    """Every text of a figure."""
    from matplotlib.text import Text

    return [found.get_text() for found in figure.findobj(Text)]


def test_vectors_say_that_a_magnitude_is_shown(tmp_path):
    x = node_places(box("triangle", COMM), 1)
    figure = plot(None, COMM, "triangle", 1, x, x)
    assert "magnitude" in texts(figure)
    assert "magnitude" not in texts(plot(None, COMM, "triangle", 1, x, x[..., 0]))
    assert "length" in texts(plot(None, COMM, "triangle", 1, x, x, label="length"))


@pytest.mark.parametrize("cell", ["triangle", "tetrahedron"])
def test_pictures_side_by_side(tmp_path, cell):
    """As wide as both together, each as it is alone."""
    x = node_places(box(cell, COMM), 1)
    paths = [tmp_path / f"{name}.png" for name in ("both", "first", "second")]
    plot(paths[0], COMM, cell, 1, x, {"first": x[..., 0], "second": x}, dpi=60)
    plot(paths[1], COMM, cell, 1, x, x[..., 0], title="first", dpi=60)
    plot(paths[2], COMM, cell, 1, x, x, title="second", dpi=60)
    both, first, second = (picture(path) for path in paths)
    assert both.shape[1] == first.shape[1] + second.shape[1]
    for alone, there in ((first, both[:, : first.shape[1]]), (second, both[:, first.shape[1] :])):
        np.testing.assert_allclose(there[: len(alone)], alone, atol=0.01)
    with pytest.raises(OptionError, match="give at least one field"):
        plot(None, COMM, cell, 1, x, {})


@pytest.mark.parametrize("cell", ["tetrahedron", "hexahedron"])
def test_deformed_surface_with_mesh(tmp_path, cell):
    mesh = box(cell, COMM)
    x = node_places(mesh, 2)
    bend = np.stack((0 * x[..., 0], 0 * x[..., 0], x[..., 0] ** 2), axis=-1)
    plot(tmp_path / "a.png", COMM, cell, 2, x, displacement=bend, mesh_lines=True, dpi=60)
    plot(tmp_path / "b.png", COMM, cell, 2, x, bend, mesh_lines=True, dpi=60)
    assert len(np.unique((drawn(picture(tmp_path / "a.png")) * 255).astype(int), axis=0)) > 300
    assert picture(tmp_path / "a.png").shape != picture(tmp_path / "b.png").shape


@pytest.mark.parametrize("cell", ["tetrahedron", "hexahedron"])
def test_a_field_that_the_surface_hides_is_shown_by_a_cut(cell):
    """Its values inside, in a plane through the middle where cells have faces there; else, or by wish, the surface."""
    element, x = ReferenceElement(cell, 2), node_places(box(cell, COMM), 2)
    lower, upper = x.min(axis=(0, 1)), x.max(axis=(0, 1))
    hidden = np.prod((x - lower) * (upper - x), axis=2, keepdims=True)
    tags = np.zeros(len(x), np.int64)

    def surface(values, **wish):
        return surfaces.collect_surface(COMM, element, x, values, tags, {}, None, Picture(**wish))

    noise = 1e-17 * np.sin(1e3 * x[..., :1])
    for values in (hidden, hidden + noise):
        shown = surface(values)
        assert shown.note == "cut through the middle" and shown.values.max() > 0.9 * hidden.max()
        assert np.isclose(shown.points[..., 1].min(), (lower[1] + upper[1]) / 2)
        assert np.isclose(shown.points[..., 1].max(), upper[1])
        whole = surface(values, cut=False)
        _, norm = colours(whole.values, None, whole.size)
        assert whole.note == "" and (norm.vmin, norm.vmax) == pytest.approx((-0.5, 0.5), abs=1e-9)
    assert surface(x[..., :1]).note == surface(1 + noise).note == "" != surface(x[..., :1], cut=True).note


STAND_IN = """
import os
import numpy as np

class PolyData:
    def __init__(self, points, faces=None, lines=None):
        assert points.shape[1] == 3 and len(faces if lines is None else lines) % (4 if lines is None else 3) == 0

class Plotter:
    def __init__(self, off_screen, window_size, lighting):
        self.size, self.camera, self.meshes = window_size, type("Camera", (), {})(), 0

    def add_mesh(self, mesh, scalars, rgb, lighting, line_width=1.0, opacity=1.0):
        assert scalars.dtype == np.uint8 and line_width > 0 and 0 < opacity <= 1
        self.meshes += 1

    def enable_parallel_projection(self):
        pass

    reset_camera_clipping_range = enable_parallel_projection

    def screenshot(self, return_img, transparent_background):
        assert self.meshes > 1 and self.camera.parallel_scale > 0
        RESULT
        return np.tile(np.uint8([0, 255, 0, 255]), (self.size[1], self.size[0], 1))
"""


@pytest.mark.parametrize("result", ["pass", "os.abort()", "raise RuntimeError('no driver')", "self.size = (3, 3)"])
def test_pyvista_draws_surfaces_and_the_painter_where_it_cannot(tmp_path, monkeypatch, result):
    """By a stand-in that paints all green, in another process, which may crash."""
    x = node_places(box("hexahedron", COMM), 1)
    monkeypatch.setitem(sys.modules, "pyvista", None)  # not installed
    plot(tmp_path / "painted.png", COMM, "hexahedron", 1, x, x, dpi=40, mesh_lines=True)
    monkeypatch.delitem(sys.modules, "pyvista")
    (tmp_path / "pyvista.py").write_text(STAND_IN.replace("RESULT", result))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    plot(tmp_path / "drawn.png", COMM, "hexahedron", 1, x, x, dpi=40, mesh_lines=True)
    painted, drawn = picture(tmp_path / "painted.png"), picture(tmp_path / "drawn.png")
    green = near(drawn, "#00ff00") / drawn[..., 0].size
    assert painted.shape == drawn.shape and near(painted, "#00ff00") == 0
    assert green > 0.3 if result == "pass" else np.array_equal(painted, drawn)


def test_a_long_label_stays_in_the_picture():
    x = node_places(box("triangle", COMM), 1)
    figure = plot(None, COMM, "triangle", 1, x, x[..., 0], label="magnitude of the displacement")
    (bar,) = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert bar._left_title.get_window_extent(figure.canvas.get_renderer()).x1 <= figure.bbox.x1


def test_huge_meshes_become_dots(tmp_path, monkeypatch):
    monkeypatch.setattr(plane, "_MOST_TRIANGLES", 10)
    mesh = box("triangle", COMM)
    x = node_places(mesh, 2)
    scene = plane.collect_plane(
        COMM, ReferenceElement("triangle", 2), x, x[..., :1], np.zeros(len(x)), {}, None, Picture()
    )
    assert scene.triangles is None and "one dot" in scene.note and len(scene.points) == len(x)
    plot(tmp_path / "a.png", COMM, "triangle", 2, x, x[..., 0], dpi=60)


def test_inset_of_a_coarse_mesh_shows_the_whole_mesh():
    mesh = box("triangle", COMM)
    for unit in (1e-3, 1.0, 1e3):
        x = unit * node_places(mesh, 1)
        scene = plane.collect_plane(
            COMM, ReferenceElement("triangle", 1), x, x[..., :1], np.zeros(len(x)), {}, None, Picture(inset=True)
        )
        assert scene.lens is None and len(scene.edges.points) == mesh.num_facets


def test_lens_is_put_off_the_domain():
    corners = np.array((0.0, 0.0)), np.array((2.0, 1.0))
    points = np.stack(np.meshgrid(np.linspace(0, 2, 81), np.linspace(0, 1, 41)), axis=-1).reshape(-1, 2)
    placed = place_lens(Lens(np.array((0.2, 0.2)), 0.05), points, *corners)
    assert np.linalg.norm(points - placed.centre, axis=1).min() > placed.size
    assert np.allclose(placed.magnified(placed.focus), placed.centre) and placed.zoom > 2


def test_missing_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(OptionError, match="pip install matplotlib"):
        plot(tmp_path / "a.png", COMM, "triangle", 1, np.zeros((1, 3, 2)), np.zeros((1, 3)))


BAD = {
    "values": (dict(values=np.zeros((24, 5))), "'values' has shape"),
    "nothing": (dict(values=None), "nothing to draw"),
    "no cells": (dict(points=np.zeros((0, 3, 2)), values=np.zeros((0, 3))), "the mesh has no cells"),
    "option": (
        dict(colour="red"),
        "no option 'colour'; known are values, cell_regions, boundaries, displacement, title",
    ),
    "displacement": (
        dict(displacement=np.zeros((24, 3, 3))),
        "'displacement' has shape [24, 3, 3]; triangle cells take",
    ),
    "regions": (dict(cell_regions=[1, 2]), "'cell_regions' has shape [2]"),
    "boundaries": (dict(boundaries={"left": ([99], [0])}), "Boundary 'left' does not fit"),
    "inset": (dict(inset=(1, 2, 3, 4)), "True, (x, y) or (x, y, radius)"),
    "colour map": (dict(colour_map="mud"), "Colour map 'mud'"),
    "dpi": (dict(dpi=-1), "cannot be drawn"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused(tmp_path, case):
    changes, message = BAD[case]
    points = node_places(box("triangle", COMM), 1)
    given = {"points": points, "values": points[..., 0], **changes}
    with pytest.raises(OptionError) as error:
        plot(tmp_path / "a.png", COMM, "triangle", 1, **given)
    assert message in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("cell", BOXES)
def test_lines_between_regions(tmp_path, cell):
    """Lines are there with regions only, and grow with their width."""
    mesh = box(cell, COMM)
    x = node_places(mesh, 1)
    regions = np.arange(len(x))
    drawn_with = {}
    for name, more in {"none": {}, "thin": {"region_width": 0.3}, "wide": {"region_width": 2.0}}.items():
        given = {"cell_regions": regions, **more} if more else {}
        plot(tmp_path / f"{name}.png", COMM, cell, 1, x, 1 + 0 * x[..., 0], dpi=60, contours=0, **given)
        drawn_with[name] = picture(tmp_path / f"{name}.png")
    changed = [np.count_nonzero((drawn_with[name] != drawn_with["none"]).any(axis=2)) for name in ("thin", "wide")]
    amount = [np.abs(drawn_with[name] - drawn_with["none"]).sum() for name in ("thin", "wide")]
    assert 300 < changed[0] < changed[1] and 2 * amount[0] < amount[1]
