"""Looks of the pictures: colours, type, and the figure that carries them."""

from __future__ import annotations

import numpy as np

from ..errors import OptionError

INK = "#1f2430"  # text, outlines
FAINT = "#8a90a0"  # second text, ticks
PAPER = "#ffffff"
ROUNDING = 1e-12  # relative difference of values that are the same
DUSK = ["#161d52", "#38297c", "#70328c", "#b23f86", "#e4606d", "#f79a62", "#fdd892", "#fffbe0"]
_BALANCE = ["#123f6d", "#2f7fb5", "#8cc3dc", "#f5f3ee", "#f0a98a", "#cc5146", "#7a1528"]
_TYPE = {"font.family": "DejaVu Sans", "font.size": 9, "mathtext.fontset": "dejavusans", "axes.unicode_minus": True}
BOUNDARY_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#6a3d9a", "#4d4d4d")


def matplotlib():
    """The package matplotlib. Raises OptionError if it is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise OptionError(
            "Pictures need matplotlib, which is not installed; get it by: pip install matplotlib"
        ) from None
    return matplotlib


def type_settings() -> dict:
    """Settings for matplotlib.rc_context."""
    return _TYPE


def colours(values: np.ndarray, name: str | None = None, size: float = 0.0):
    """A colour map and a norm for values [n]: sequential, or diverging about 0 for values of both signs.

    name: a colour map of matplotlib instead. Raises OptionError if it has none of this name.
    size: largest value of the whole field, of which these are a part; they are constant if they agree to its rounding.
    """
    mpl = matplotlib()
    low, high = float(values.min()), float(values.max())
    if high - low <= ROUNDING * max(abs(low), abs(high), size):
        low, high = low - 0.5, high + 0.5
    largest = max(abs(low), abs(high))
    signed = min(-low, high) > 0.25 * largest
    norm = mpl.colors.Normalize(-largest, largest) if signed else mpl.colors.Normalize(low, high)
    if name is not None:
        if name not in mpl.colormaps:
            raise OptionError(
                f"Colour map '{name}' is not known to matplotlib; 'viridis', 'magma', 'coolwarm' are some it has."
            )
        return mpl.colormaps[name], norm
    title, ends = ("balance", _BALANCE) if signed else ("dusk", DUSK)
    return mpl.colors.LinearSegmentedColormap.from_list(title, ends, 512), norm


def contrasting(colours: np.ndarray) -> np.ndarray:
    """For each colour [n, 3 or 4] one [n, 4] that can be seen on it: white on dark ones, ink on light ones."""
    mpl = matplotlib()
    bright = np.asarray(colours)[:, :3] @ (0.2126, 0.7152, 0.0722)
    return np.where(bright[:, None] < 0.42, mpl.colors.to_rgba("white"), mpl.colors.to_rgba(INK))


def shade(axes, mesh, values: np.ndarray, shades, zorder: float = 1.0):
    """Shaded triangles in axes whose limits are set. matplotlib's tripcolor makes a path of each, only to find limits.

    mesh: matplotlib's Triangulation.   values: [point].   shades: of `colours`.
    """
    from matplotlib.collections import TriMesh

    field = TriMesh(mesh, array=values, cmap=shades[0], norm=shades[1], zorder=zorder)
    return axes.add_collection(field, autolim=False)


def new_figure(aspect: float, title: str, subtitle: str, legend: bool):
    """A figure with axes of the given height to width, room for a title above and a colour bar at the right.

    Returns figure, axes, colour bar axes.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    width = min(8.0, 6.0 / aspect)
    width, height = max(2.2, width), max(1.4, width * aspect)
    left, right, below = 0.55, 1.15, 0.75 if legend else 0.45
    above = 0.25 + 0.32 * bool(title) + 0.22 * bool(subtitle)
    total = (left + width + right, below + height + above)
    figure = Figure(total, facecolor=PAPER)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((left / total[0], below / total[1], width / total[0], height / total[1]))
    bar = min(height, 3.6)
    bar_axes = figure.add_axes(
        ((left + width + 0.25) / total[0], (below + (height - bar) / 2) / total[1], 0.13 / total[0], bar / total[1])
    )
    x, y = left / total[0], 1 - 0.16 / total[1]
    if title:
        figure.text(x, y, title, size=13, weight="bold", color=INK, va="top")
    if subtitle:
        figure.text(x, y - 0.32 * bool(title) / total[1], subtitle, size=9, color=FAINT, va="top")
    return figure, axes, bar_axes


def side_by_side(figures: list, dpi: int):
    """A figure of figures from left to right, their upper edges at one height, drawn with `dpi` pixels per inch."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    images = []
    for figure in figures:
        figure.set_dpi(dpi)
        figure.canvas.draw()
        images.append(np.asarray(figure.canvas.buffer_rgba()))
    height, width = max(image.shape[0] for image in images), sum(image.shape[1] for image in images)
    joined, left = Figure((width / dpi, height / dpi), dpi=dpi, facecolor=PAPER), 0
    FigureCanvasAgg(joined)
    for image in images:
        own_height, own_width = image.shape[:2]
        place = left / width, 1 - own_height / height, own_width / width, own_height / height
        axes = joined.add_axes(place)
        axes.imshow(image, aspect="auto", interpolation="nearest")
        axes.set_axis_off()
        left += own_width
    return joined


def colour_bar(figure, axes, mappable, label: str) -> None:
    """A slim colour bar with its label above, within the figure."""
    bar = figure.colorbar(mappable, cax=axes)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2.5, width=0.6, color=FAINT, labelcolor=INK, labelsize=8)
    above = bar.ax.set_title(label, size=9, color=INK, loc="left", pad=7)
    beyond = above.get_window_extent(figure.canvas.get_renderer()).x1 - 0.99 * figure.bbox.x1
    above.set_x(-max(0.0, beyond) / bar.ax.bbox.width)


def quiet_axes(axes, lower, upper) -> None:
    """Equal scales, no frame, few small ticks between the corners [2] lower and upper."""
    from matplotlib.ticker import MaxNLocator

    axes.set_aspect("equal")
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=2.5, width=0.6, color=FAINT, labelcolor=FAINT, labelsize=7.5)
    for axis, low, high in zip((axes.xaxis, axes.yaxis), lower, upper, strict=True):
        ticks = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(low, high)
        slack = 1e-9 * (high - low)
        axis.set_ticks(ticks[(ticks >= low - slack) & (ticks <= high + slack)])
