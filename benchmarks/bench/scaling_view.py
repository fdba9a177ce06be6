"""Scaling rows as a table, as predictions and as a picture."""

from __future__ import annotations

from petsc_hdg.errors import OptionError
from petsc_hdg.output.style import BOUNDARY_COLOURS, FAINT, INK, PAPER, matplotlib, type_settings
from petsc_hdg.value_checks import plural

from . import scaling_model as model
from .record import read_rows

COLUMNS = (
    *("mode", "scheme", "cell", "degree", "ranks", "unknowns/rank", "product us", "GDOF/s/rank", "efficiency", "halo"),
    *("kB sent", "iteration us", "efficiency", "one sum us", "set-up s"),
)
WIDTHS = (-7, -9, -14, 6, 6, 14, 11, 12, 11, 6, 9, 13, 11, 11, 9)
BEYOND = (1, 2, 4, 8, 16, 64, 256, 1024)
TARGETS = {"weak": 0.95, "strong": 0.85}
COLOURS = dict(zip(("cg_gpu", "sipg_gpu", "hdg_gpu", "poly_gpu"), BOUNDARY_COLOURS, strict=False))
STYLES = "-", "--", ":"  # of the curves of one scheme, the most unknowns first


def rows_of(files: list[str]) -> list[dict]:
    """Rows of files that `-json` wrote. Raises OptionError."""
    return [row for name in files for row in read_rows(name, "ranks", "files that bench scaling -json wrote")]


def group(row: dict) -> tuple:
    """What rows of one curve have in common."""
    return (*model.key(row), row["mode"], row["asked"])


def compared(rows: list[dict]) -> list[dict]:
    """The cases with their efficiencies, beside the fewest ranks of the same curve."""
    cases = model.split(rows)[0]
    base: dict = {}
    for r in sorted(cases, key=lambda r: r["ranks"]):
        base.setdefault(group(r), r)
    return [r | efficiencies(r, base[group(r)]) for r in cases]


def efficiencies(row: dict, base: dict) -> dict:
    """Of product and iteration; and the share of a product that waits for the halo."""
    ranks = row["ranks"] / base["ranks"] if row["mode"] == "strong" else 1.0
    return {
        "product_efficiency": base["product_seconds"] / (ranks * row["product_seconds"]),
        "iteration_efficiency": base["iteration_seconds"] / (ranks * row["iteration_seconds"]),
        "halo_share": model.exposed_seconds(row) / row["product_seconds"],
    }


def header() -> str:
    """Names of the columns."""
    return _joined(COLUMNS)


def line(r: dict) -> str:
    """A row that has been compared."""
    return _joined(
        (
            *(r["mode"], r["scheme"], r["cell"], r["degree"], r["ranks"], r["dofs_rank"][1]),
            f"{1e6 * r['product_seconds']:.1f}",
            f"{r['dofs'] / r['ranks'] / r['product_seconds'] / 1e9:.3f}",
            *(f"{r['product_efficiency']:.3f}", f"{r['halo_share']:.3f}", f"{r['halo_bytes'] / 1e3:.1f}"),
            *(f"{1e6 * r['iteration_seconds']:.1f}", f"{r['iteration_efficiency']:.3f}"),
            f"{1e6 * r['single_reduction_seconds']:.1f}" if "single_reduction_seconds" in r else "",
            f"{sum(r['setup_seconds'].values()):.1f}",
        )
    )


def _joined(values) -> str:
    cells = (f"{v:<{-w}}" if w < 0 else f"{v:>{w}}" for v, w in zip(values, WIDTHS, strict=True))
    return "  " + " ".join(cells)


def report(rows: list[dict], png: str, network) -> None:
    """Print what the model says beside what was measured, and beyond; draw the picture. Raises OptionError."""
    cases, links = model.split(rows)
    if not cases:
        raise OptionError("These files hold no cases of bench scaling; give files that its -json wrote")
    for r in links:
        halos = ", ".join(f"{nbytes / 1024:.0f} KiB {1e6 * seconds:.0f} us" for nbytes, seconds in r["halo"])
        print(
            f"  {plural(r['ranks'], 'rank')}: halo of {halos or 'nothing'}; sum {1e6 * r['allreduce_seconds']:.1f} us"
        )
    for c in model.checked(rows):
        said = (
            f"{what} {1e6 * c[what][0]:.0f} us predicted, {1e6 * c[what][1]:.0f} measured "
            f"({c[what][0] / c[what][1] - 1:+.0%})"
            for what in ("product", "iteration")
        )
        title = f"{c['mode']} {c['scheme']} {c['cell']} P{c['degree']}, {plural(c['ranks'], 'rank')}"
        print(f"  {title} by fewer: {'; '.join(said)}")
    for curve in predicted(rows, network):
        ends = ", ".join(f"{k}: {e:.3f}" for k, e in zip(curve["ranks"], curve["iteration"], strict=True))
        title = f"{curve['mode']} {curve['scheme']} {curve['cell']} P{curve['degree']}, {curve['unknowns']:.2g} a rank"
        print(f"  predicted efficiency of an iteration, {title}: {ends}")
    if png:
        draw(rows, png, network)


def predicted(rows: list[dict], network, ranks=BEYOND) -> list[dict]:
    """Efficiencies by the models, for each curve measured; nodes have as many ranks as the largest run."""
    found, made = [], model.models(rows)
    cases = compared(rows)
    for g in dict.fromkeys(group(r) for r in cases):
        mine = [r for r in cases if group(r) == g]
        last = max(mine, key=lambda r: r["ranks"])
        whole, per_node = last["dofs_rank"][1] * last["ranks"], max(1, last["ranks"] // last["nodes"])
        share = [last["dofs_rank"][1] if last["mode"] == "weak" else whole / k for k in ranks]
        ends = [
            made[model.key(last)].efficiency(last["mode"], n, k, per_node=per_node, network=network)
            for n, k in zip(share, ranks, strict=True)
        ]
        names = ("mode", "scheme", "cell", "degree")
        found.append(
            {name: last[name] for name in names}
            | {"unknowns": last["dofs_rank"][1], "ranks": list(ranks)}
            | {"product": [e[0] for e in ends], "iteration": [e[1] for e in ends], "group": g}
        )
    return found


# Picture ---------------------------------------------------------------------------------------------------------


def draw(rows: list[dict], png: str, network) -> None:
    """Efficiencies over ranks: points measured, lines predicted. Raises OptionError."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    cases, curves = compared(rows), predicted(rows, network, [2**k for k in range(11)])
    modes = [mode for mode in TARGETS if any(r["mode"] == mode for r in cases)]
    with matplotlib().rc_context(type_settings()):
        figure = Figure((4.6 * len(modes) + 0.4, 4.4), facecolor=PAPER)
        FigureCanvasAgg(figure)
        for i, mode in enumerate(modes):
            axes = figure.add_subplot(1, len(modes), i + 1)
            _curves(axes, mode, [r for r in cases if r["mode"] == mode], [c for c in curves if c["mode"] == mode])
        figure.text(0.02, 0.985, cases[0]["device"], size=11, weight="bold", color=INK, va="top")
        said = "points measured, lines by the model; one colour per scheme"
        figure.text(0.02, 0.935, said, color=FAINT, va="top")
        figure.tight_layout(rect=(0, 0, 1, 0.92))
    try:
        figure.savefig(png, dpi=160)
    except OSError as error:
        raise OptionError(f"The picture {png} cannot be written ({error.strerror}); give another -png") from None
    print(f"  {png}: {len(curves)} curves")


def _curves(axes, mode: str, cases: list[dict], curves: list[dict]) -> None:
    axes.axhline(TARGETS[mode], color=FAINT, linewidth=0.8, linestyle=":")
    for curve in sorted(curves, key=lambda c: (list(COLOURS).index(c["scheme"]), -c["unknowns"])):
        colour = COLOURS[curve["scheme"]]
        larger = sum(c["scheme"] == curve["scheme"] and c["unknowns"] > curve["unknowns"] for c in curves)
        style = STYLES[min(larger, len(STYLES) - 1)]
        mine = [r for r in cases if group(r) == curve["group"]]
        points = [r["ranks"] for r in mine], [r["iteration_efficiency"] for r in mine]
        axes.plot(*points, "o", color=colour, markersize=5, fillstyle="none" if larger else "full")
        title = f"{curve['scheme'].removesuffix('_gpu')} P{curve['degree']}, {curve['unknowns']:.1e}"
        axes.plot(curve["ranks"], curve["iteration"], color=colour, linewidth=1.1, linestyle=style, label=title)
    axes.set(xscale="log", ylim=(0, 1.1), xlabel="ranks", ylabel="efficiency of a CG iteration")
    axes.set_title(f"{mode} scaling: unknowns per rank on the most ranks")
    axes.set_xticks([1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1024"])
    axes.title.set_size(9)
    axes.legend(frameon=False, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncol=3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
