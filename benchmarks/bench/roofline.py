"""The roofline picture: arithmetic rates of kernels over flops a compulsory byte, under what the device allows."""

from __future__ import annotations

import numpy as np

from petsc_hdg.errors import OptionError
from petsc_hdg.output.style import BOUNDARY_COLOURS, FAINT, INK, PAPER, matplotlib, type_settings
from petsc_hdg.value_checks import plural

from .record import read_rows

MARKERS = {"triangle": "^", "quadrilateral": "s", "tetrahedron": "v", "hexahedron": "D"}
# Groups of rows by the start of the kernel's name, in the order of their colours.
GROUPS = {
    "cg": "CG residual",
    "hdg": "HDG local stage",
    "trace": "HDG trace product",
    "sipg": "interior penalty",
    "poly": "polytopic assembly",
}
WHAT = "files that `bench -json` wrote"
ON_HOST = ("poly fill", "poly total", "poly AIJ")  # rows of what the host does, which no roof of a device covers


def draw(files: list[str], png: str) -> int:
    """Draw the rows of files that `-json` wrote, all of one device; returns 0. Raises OptionError."""
    rows = [row for name in files for row in read_rows(name, "bytes_compulsory", WHAT)]
    devices = {row["device"] for row in rows}
    if len(devices) != 1:
        raise OptionError(
            f"A roofline is that of one device; these rows are of {', '.join(sorted(devices)) or 'none'}."
        )
    points = [row for row in rows if row["flops"] and row["bytes_compulsory"] and _group(row)]
    if not points:
        raise OptionError(f"No row of {', '.join(files)} counts both flops and bytes: there is nothing to draw.")
    with matplotlib().rc_context(type_settings()):
        figure = _figure(points, rows, devices.pop())
    try:
        figure.savefig(png, dpi=160)
    except OSError as error:
        raise OptionError(f"The picture {png} cannot be written ({error.strerror}); give another -png.") from None
    print(f"  {png}: {plural(len(points), 'kernel')}")
    return 0


def _group(row: dict) -> str | None:
    start = row["kernel"].split()[0]
    return start if start in GROUPS and not row["kernel"].startswith(ON_HOST) else None


def _figure(points: list[dict], rows: list[dict], device: str):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((8.0, 5.2), facecolor=PAPER)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.09, 0.11, 0.88, 0.76))
    intensity = np.array([r["flops"] / r["bytes_compulsory"] for r in points])
    axes.set(xscale="log", yscale="log", xlabel="flops a compulsory byte", ylabel="GF/s")
    _roofs(axes, rows, min(0.05, intensity.min() / 2), max(100.0, 2 * intensity.max()))
    _kernels(axes, points)
    axes.grid(True, which="major", color=FAINT, alpha=0.25, linewidth=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(color=FAINT, labelcolor=INK)
    figure.text(0.09, 0.965, device, size=12, weight="bold", color=INK, va="top")
    figure.text(
        0.09, 0.915, "rows of the bench beside a copy and a peak measured in the same run", color=FAINT, va="top"
    )
    return figure


def _roofs(axes, rows: list[dict], low: float, high: float) -> None:
    """The bandwidth of a copy, and the peak where rows know it."""
    copy = float(np.median([r["copy_GBs_same_run"] for r in rows]))
    peaks = [r["peak_gflops_same_run"] for r in rows if r.get("peak_gflops_same_run")]
    peak, x = (float(np.median(peaks)) if peaks else None), np.geomspace(low, high, 200)
    axes.plot(x, copy * x if peak is None else np.minimum(copy * x, peak), color=INK, linewidth=1.4)
    knee = high if peak is None else peak / copy
    middle = np.sqrt(low * knee)
    if peak is not None:
        axes.text(high, 1.1 * peak, f"multiply-adds, {peak:.0f} GF/s", color=INK, size=8, ha="right")
        axes.set_ylim(top=4 * peak)
    axes.set_xlim(low, high)
    axes.set_ylim(bottom=min(copy * low, 0.5 * min(r["gflops"] for r in rows if r["gflops"])))
    (a, b), (c, d) = axes.transData.transform([(middle, copy * middle), (2 * middle, 2 * copy * middle)])
    along = {"rotation": np.degrees(np.arctan2(d - b, c - a)), "rotation_mode": "anchor", "ha": "center"}
    axes.annotate(
        *(f"copy, {copy:.0f} GB/s", (middle, copy * middle), (-5, 5)),
        **{"textcoords": "offset points", "color": INK, "size": 8, **along},
    )


def _kernels(axes, points: list[dict]) -> None:
    seen = {}
    for colour, (group, title) in zip(BOUNDARY_COLOURS, GROUPS.items(), strict=False):
        for r in (r for r in points if _group(r) == group):
            place = (r["flops"] / r["bytes_compulsory"], r["gflops"])
            look = {"s": 26, "color": colour, "alpha": 0.75, "linewidth": 0}
            axes.scatter(*place, marker=MARKERS.get(r["cell"], "o"), **look)
            seen[title] = {"marker": "o", "color": colour}
    cells = {r["cell"]: {"marker": MARKERS[r["cell"]], "color": FAINT} for r in points if r["cell"] in MARKERS}
    found = seen | dict(sorted(cells.items()))
    handles = [axes.plot([], [], linestyle="", markersize=5, **how)[0] for how in found.values()]
    axes.legend(handles, found, loc="lower right", frameon=False, fontsize=8)
