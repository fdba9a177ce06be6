"""Draw triangles and lines by PyVista, as a script: arrays of numpy.savez from stdin, an image of numpy.save to stdout.

It is a process of its own, since VTK ends one that has neither a display nor a driver to draw without.
"""

from __future__ import annotations

import sys
from io import BytesIO

import numpy as np

BEFORE = 1e-3  # how far lines are before the surface, as a part of its extent


def image(seen, lower, upper, pixels, dpi) -> np.ndarray:
    """The image [row, column, RGBA] of the arrays of a painter.Seen, see surface.rendered."""
    import pyvista

    plotter = pyvista.Plotter(off_screen=True, window_size=pixels.tolist(), lighting="none")
    triangles, segments, widths = seen["triangles"], seen["segments"], seen["width"]
    faces = np.insert(np.arange(3 * len(triangles)).reshape(-1, 3), 0, 3, axis=1)
    surface = pyvista.PolyData(triangles.reshape(-1, 3), faces=faces.ravel())
    plotter.add_mesh(surface, scalars=in_bytes(seen["fill"]), rgb=True, lighting=False)
    size = np.ptp(triangles, axis=(0, 1)).max()
    for width in np.unique(widths):
        chosen = widths == width
        ends = segments[chosen].reshape(-1, 3) + (0, 0, BEFORE * size)
        lines = np.insert(np.arange(len(ends)).reshape(-1, 2), 0, 2, axis=1)
        stroke = seen["stroke"][chosen]  # of one opacity
        look = {"line_width": width * dpi / 72, "opacity": float(stroke[0, 3]), "lighting": False}
        plotter.add_mesh(pyvista.PolyData(ends, lines=lines.ravel()), scalars=in_bytes(stroke), rgb=True, **look)
    middle, top = (lower + upper) / 2, float(triangles[..., 2].max()) + size
    plotter.camera_position = [(*middle, top), (*middle, top - 1.0), (0, 1, 0)]
    plotter.enable_parallel_projection()
    plotter.camera.parallel_scale = float(upper[1] - lower[1]) / 2
    plotter.reset_camera_clipping_range()
    return np.asarray(plotter.screenshot(return_img=True, transparent_background=True))


def in_bytes(colours: np.ndarray) -> np.ndarray:
    """Colours [n, 3] as bytes, of those in RGBA."""
    return np.rint(255 * np.clip(colours[:, :3], 0, 1)).astype(np.uint8)


def main() -> None:
    """Read arrays, draw, write the image."""
    given = dict(np.load(BytesIO(sys.stdin.buffer.read())))
    drawn = image(given, *(given.pop(name) for name in ("lower", "upper", "pixels", "dpi")))
    np.save(sys.stdout.buffer, drawn)


if __name__ == "__main__":
    main()
