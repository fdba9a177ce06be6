"""Chapter 4 of Gorlani 2015 (gorlani_2015.json, gorlani_2015_times.json).

    python benchmarks/papers/gorlani.py
    python benchmarks/papers/gorlani.py -fe_device gpu -scale gpu -results benchmarks/results/papers_h100

-Δu = f on n × n squares by interior penalty of degree p. Rows by their table:

quadrature  table 4.1: errors of Gauss-Lobatto rules for powers of x
one_cell    tables 4.3 to 4.5: errors on one square of solutions A to E (examples/poisson_sipg.py)
errors      tables 4.6 to 4.14: errors on n × n squares. Six steps of Richardson's method with fast diagonalization
            solve the systems, so errors are not those of a stopping criterion.
times       tables 4.15 to 4.17: a product by parts: the volume terms, recomputed at the quadrature points (`volume`);
            the fluxes of all facets (`flux`); and whole products in one pass, of any physics on any geometry
            (`fused`), and with constant coefficients on rectangles (`affine`). A part that does not fit the device is
            left out. Meshes beyond 512 × 512 are copies of one of that size.

Tables 4.19 to 4.21 are of rows of `bench scaling`:

    mpiexec -n 4 python benchmarks/bench scaling -schemes sipg_gpu -degree 8 -unknowns 1327104 21233664 -json s.json
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from functools import cache, partial
from math import log
from pathlib import Path

from paper_tables import NONE, RESULTS, Results, Table, ms, pick, printed, run

PAPER, TIMES = printed("gorlani_2015"), printed("gorlani_2015_times")
NAMES, NORMS = "ABCDE", ("L2", "H1", "Linf")
SMALLEST = 1e-11  # errors below are rounding of the paper's solver
TILE = 512  # squares along a side of the largest mesh that is made
GPUS = (1, 2, 4, 8, 16, 64, 256, 1024)
SCALING = ("scaling_h200x4", "scaling_h200x2")  # files of benchmarks/results, the first that has a case
NETWORK = (5e-6, 2.5e10)
CHANGES = {"small": ((4, 8, 16), (2, 3)), "full": ((4, 8, 16, 32, 64, 128, 256, 512, 1024), (2, 3, 4, 5, 6))}
MESHES = 8  # of which the thesis has degrees above 3
ONE_CELL = {"small": (2, 8, 21), "full": range(2, 40)}
TIMED = {  # n of table 4.15, p of 4.16 and the n of both that the paper has 512 of
    "small": ((16, 32), (2, 4, 8), 32),
    "full": ((64, 128, 256), (2, 4, 8, 16), 64),
    "gpu": ((128, 256, 512, 1024, 2048), (2, 4, 8, 16, 32), 512),
}
THESIS = ("volume_mvm1", "volume_mvm0", "volume", "flux")  # its kernels; the first two are of stored matrices
# Of each part: the operator's -sipg_kernel, its launch, reals of vectors that an unknown moves.
PARTS = {
    "volume": ("split", "split volume", 2),
    "flux": ("split", "split flux", 3),
    "fused": ("auto", "fused product", 2),
    "affine": ("auto", "affine product", 2),
}


# Measuring -----------------------------------------------------------------------------------------------------------


def groups(device, given, copy):
    """Groups of one row each."""
    from bench.group import Group

    def group(name: str, measure, *arguments):
        return Group((name,), lambda names: {name: partial(measure, *arguments)})

    meshes, degrees, n = TIMED[given.scale]
    tiles = Tiles(TILE)
    cases = dict.fromkeys([*((n, p) for p in degrees), *((n, 4) for n in meshes)])
    for n, p in cases:
        yield group(f"times n {n} p {p}", times_row, tiles, device, given, copy, n, p)
    if given.scale == "gpu":  # errors are those of any device, and rows of times are what a GPU is for
        return
    for points in range(2, 9):
        yield group(f"quadrature {points} points", quadrature_row, points)
    for p in ONE_CELL[given.scale]:
        yield group(f"one cell p {p}", errors_row, 1, p)
    meshes, degrees = CHANGES[given.scale]
    for p in degrees:
        for n in meshes if p < 4 else meshes[:MESHES]:
            yield group(f"errors n {n} p {p}", errors_row, n, p)


def parts_of(tile, device, given, degree: int, cells: int) -> dict[str, float]:
    """Seconds of each part that can be measured."""
    from bench.sipg import Launches

    from petsc_hdg.commands.bench import median_seconds
    from petsc_hdg.errors import DeviceError, OptionError

    asked = argparse.Namespace(fe_precision="double", cells=cells)
    found = {}
    for kernel in {kernel: None for kernel, *_ in PARTS.values()}:
        try:
            op = tile.operator(device, asked, degree, kernel, 0)
            launches = Launches(op).of
        except (DeviceError, OptionError) as error:
            print(f"    {kernel}: {error}", flush=True)
            continue
        for name, (of, launch, _) in PARTS.items():
            if of == kernel and launch in launches:
                found[name] = median_seconds(device, launches[launch], given.repeat)
        del op, launches
        gc.collect()
    return {name: found[name] for name in PARTS if name in found}


class Tiles:
    """Meshes of n × n squares for operators; those larger than the tile are copies of it."""

    def __init__(self, largest: int):
        self.largest, self._kept = largest, {}

    def of(self, n: int):
        """The mesh to copy. Raises ValueError if copies do not make up n × n."""
        from bench.sipg import Tile

        side = min(n, self.largest)
        if n % side:
            raise ValueError(f"{n} × {n} squares are not copies of {side} × {side}; give another tile")
        if side not in self._kept:
            self._kept = {side: Tile("quadrilateral", (side, side), "box")}
        return self._kept[side]


def times_row(tiles: Tiles, device, given, copy: float, n: int, degree: int) -> dict:
    """Seconds, GB/s and fractions of copy of the parts of a product."""
    seconds = parts_of(tiles.of(n), device, given, degree, n * n)
    unknowns = (n * (degree + 1)) ** 2
    rate = {name: 8 * PARTS[name][2] * unknowns / s for name, s in seconds.items()}
    row = {"table": "times", "n": n, "p": degree, "unknowns": unknowns, "seconds": seconds, "copy_GBs": copy / 1e9}
    row["GBs"] = {name: value / 1e9 for name, value in rate.items()}
    return row | {"fraction_of_copy": {name: value / copy for name, value in rate.items()}}


def quadrature_row(points: int) -> dict:
    """Largest error where a rule is exact, and largest relative difference from the printed errors elsewhere."""
    from petsc_hdg.reference import gauss_lobatto

    x, weights = gauss_lobatto(points - 1)
    column = PAPER["table4_1_quadrature_of_powers_on_1_2"]["points"].index(points)
    exact, differences = [], []
    for line in PAPER["table4_1_quadrature_of_powers_on_1_2"]["rows"]:
        value = (2 ** (line["power"] + 1) - 1) / (line["power"] + 1)
        error = abs(value - weights @ (1 + x) ** line["power"])
        if line["power"] <= 2 * points - 3:
            exact.append(error / value)
        else:
            differences.append(abs(error / line["errors"][column] - 1))
    row = {"table": "quadrature", "points": points, "exact_to": 2 * points - 3}
    return row | {"largest_where_exact": float(max(exact)), "largest_difference": float(max(differences, default=0))}


def errors_row(n: int, degree: int) -> dict:
    """Errors of the solutions that the thesis has for a mesh, else of E: name → norm → error; on one square with the
    penalty of tables 4.3 to 4.5."""
    example = poisson()
    scale = 1 / degree**2 if n == 1 else 2.0
    problem = fast(create_problem(chosen(), n, degree, scale), n, 100.0 if n == 1 else 200.0 * degree**2 * n)
    names = [name for name in NAMES if example.paper_row(name, n, degree)] or ["E"]
    found = {name: example.errors(problem, solve(problem, name), name) for name in names}
    return {"table": "one_cell" if n == 1 else "errors", "n": n, "p": degree, "errors": found}


@cache
def poisson():
    """The module examples/poisson_sipg.py."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    import poisson_sipg

    return poisson_sipg


@cache
def chosen():
    """All solutions in one physics, of which constants choose one, so that a degree is compiled once."""
    import petsc_hdg as fe
    from petsc_hdg.physics import Symbols

    symbols = Symbols(2, {"u": 1}, constants=tuple(NAMES))
    x, y = symbols.x
    exact = sum(symbols.constant(name) * poisson().SOLUTIONS[name] for name in NAMES)
    return fe.Physics(
        {"u": 1},
        f0=exact.diff(x, 2) + exact.diff(y, 2),
        f1=symbols.grad("u"),
        constants=dict.fromkeys(NAMES, 0.0),
        boundary=[fe.Dirichlet("boundary", "exact")],
        exact=exact,
        name="Gorlani",
    )


def create_problem(physics, n: int, degree: int, scale: float = 2.0):
    """The problem on n × n squares with the penalty scale · 100 p²/h."""
    from petsc4py import PETSc

    import petsc_hdg as fe
    from petsc_hdg.options import Options

    settings = {"backend": "sipg_gpu", "sipg_penalty": "paper", "sipg_penalty_scale": scale, "pmat": "none"}
    mesh = fe.Mesh.box((n, n), simplex=False, comm=PETSc.COMM_SELF)
    return fe.Problem(mesh, physics, Options(degree=degree, check_kernels=False, **settings))


def solve(problem, name: str):
    """The solution called so."""
    problem.set_constants(**{k: float(k == name) for k in NAMES})
    return problem.solve()


def fast(problem, n: int, penalty: float):
    """The problem with a solver of a few steps: Richardson's with fast diagonalization."""
    from fast_diagonal import FastDiagonal
    from petsc4py import PETSc

    ksp = problem.snes.getKSP()
    ksp.setType("richardson")
    ksp.setNormType(PETSc.KSP.NormType.NONE)
    ksp.setTolerances(max_it=6)
    ksp.getPC().setType("python")
    ksp.getPC().setPythonContext(FastDiagonal(problem, n, penalty))
    return problem


# Tables --------------------------------------------------------------------------------------------------------------


def tables(results: Results | None = None) -> list[Table]:
    """The thesis' tables and ours."""
    results = results or Results("gorlani", {"times": "gorlani_h100"})
    return [
        quadrature_table(results),
        one_cell_table(results),
        *(errors_table(results, name, k) for k, name in enumerate(NAMES)),
        gpus_table(results),
        times_table(results, "n"),
        times_table(results, "p"),
        bandwidth_table(results),
        Table("Table 4.18: occupancy", {"": ""}, [], OCCUPANCY),
        *scaling_tables([scaling_rows(RESULTS / f"{name}.json") for name in SCALING]),
    ]


OCCUPANCY = (
    "Scope: theoretical occupancy of CUDA kernels on compute capability 3.5 (volume 100 %, fluxes 62.5 %). OpenCL "
    "does not report it; the fractions of copy of table 4.17 replace it."
)


def quadrature_table(results: Results) -> Table:
    scope = {
        "points": "",
        "exact to degree, paper": "gray cells",
        "error where exact": "relative",
        "difference elsewhere": "of the printed errors, relative",
    }
    rows = []
    for points in PAPER["table4_1_quadrature_of_powers_on_1_2"]["points"]:
        ours = pick(results.pocl, table="quadrature", points=points)
        rows.append(
            [points, 2 * points - 3, ours.get("largest_where_exact", NONE), ours.get("largest_difference", NONE)]
        )
    note = (
        "Scope: the same rules and powers 1 to 14; errors are printed with six digits, so differences below 5e-6 are "
        "none."
    )
    return Table("Table 4.1: Gauss-Lobatto rules", scope, rows, note)


def in_space(name: str, degree: int) -> bool:
    """Whether a solution is a polynomial of the space."""
    return degree >= {"C": 3, "D": 2}.get(name, 99)


def pair(value, other) -> list:
    """A printed error and ours with as many digits."""
    return [NONE if value is None else f"{value:.6g}", NONE if other is None else f"{other:.6g}"]


def norms_of(line: dict, ours: dict, name: str) -> list:
    found = ours.get("errors", {}).get(name, {})
    return [v for norm in NORMS for v in pair(line[norm], found.get(norm))]


def norm_scope(**first: str) -> dict[str, str]:
    return first | {f"{norm}{who}": "" for norm in ("L2", "H1", "L∞") for who in (", paper", "")}


def measured(rows: list, printed: int) -> str:
    """How many of the printed rows a table has, where some are missing."""
    return f" Measured are {len(rows)} of the {printed} printed rows." if len(rows) < printed else ""


def one_cell_table(results: Results) -> Table:
    rows, printed = [], PAPER["tables4_3_to_4_5_one_cell_penalty_100"]
    for name, lines in printed.items():
        for line in lines:
            ours = pick(results.pocl, table="one_cell", p=line["p"])
            if ours:
                rows.append([name, line["p"], *norms_of(line, ours, name)])
    note = (
        "Scope: the same square, solutions, penalty (100) and norms at the nodes. Degrees go to 40 on quadrilaterals. "
        "Errors near 1e-15 are rounding: the paper stops conjugate gradients at 1e-15, ours are of a direct solver."
    )
    note += measured(rows, sum(map(len, printed.values())))
    return Table("Tables 4.3 to 4.5: one cell", norm_scope(solution="", p=""), rows, note)


def errors_table(results: Results, name: str, place: int) -> Table:
    rows, printed = [], PAPER["tables4_6_to_4_10_errors"][name]
    for line in printed:
        ours = pick(results.pocl, table="errors", n=line["n"], p=line["p"])
        if ours:
            rows.append([line["n"], line["p"], *norms_of(line, ours, name)])
    note = (
        "Scope: the same meshes and norms at the nodes. The entries hold for the penalty 200 p²/h, where the text "
        "says 100. Printed errors below about 1e-11 are rounding of conjugate gradients."
    ) + measured(rows, len(printed))
    return Table(f"Table 4.{6 + place}: errors of solution {name}", norm_scope(n="", p=""), rows, note)


def gpus_table(results: Results) -> Table:
    scope = {"GPUs, paper": "", "n": "", "p": ""} | {f"{k}{who}": "" for k in ("L2", "H1") for who in (", paper", "")}
    rows = []
    for gpus, lines in PAPER["tables4_11_to_4_14_errors_of_E_by_gpus"].items():
        for line in lines:
            found = pick(results.pocl, table="errors", n=line["n"], p=line["p"]).get("errors", {}).get("E", {})
            rows.append(
                [gpus, line["n"], line["p"], *pair(line["L2"], found.get("L2")), *pair(line["H1"], found.get("H1"))]
            )
    note = (
        "Scope: errors do not depend on the number of GPUs but for rounding; ours are of one device. At n = 1024 and "
        "p = 3 our L2 error is rounding of a direct solver. Meshes from 2048 × 2048 on, 38 million unknowns and more, "
        "are left out: p = 2 on 1024 × 1024 takes 4.2 GB and 74 processor seconds on a CPU, and 2048 × 2048 four and "
        "eight times as much; errors of single precision are rounding."
    )
    return Table("Tables 4.11 to 4.14: errors of solution E on several GPUs", scope, rows, note, keys=3)


TABLES = {"n": "table4_15_n_p4_ms", "p": "table4_16_p_n512_ms"}
FIXED = {"n": ("p", 4), "p": ("n", 512)}  # what the thesis keeps fixed in each table


def times_table(results: Results, key: str) -> Table:
    """Tables 4.15 and 4.16, with the exponents ζ of growth where the key doubles."""
    scope = {key: ""} | {f"{name}, paper": "K20x" for name in THESIS}
    scope |= {f"{name}, H100": "ms, exponent ζ" for name in PARTS}
    other, value = FIXED[key]
    rows, last = [], {}
    for line in TIMES[TABLES[key]]:
        ours = pick(results.h100, **{"table": "times", key: line[key], other: value}).get("seconds", {})
        row = [line[key], *(line.get(name, NONE) for name in THESIS)]
        for name in PARTS:
            text = NONE if name not in ours else f"{1e3 * ours[name]:.4g}"
            if name in ours and name in last:
                text += f", {log(ours[name] / last[name], 4 if key == 'n' else 2):.2f}"
            row.append(text)
        rows.append(row)
        last = ours
    number = 15 if key == "n" else 16
    title = f"Table 4.{number}: times of kernels, {'p = 4' if key == 'n' else '512 × 512 squares'}, ms"
    note = (
        "Scope: `volume` and `flux` copy the thesis' kernels, for any geometry of quadrilaterals in a structured mesh; "
        "`fused` is one pass for any physics on any mesh, and `affine` assumes constant coefficients on rectangles. "
        "The thesis' volume_mvm kernels multiply by stored matrices, which ours do not. "
        "The K20x has a twelfth of the H100's bandwidth."
    )
    return Table(title, scope, rows, note)


def bandwidth_table(results: Results) -> Table:
    scope = {"p": "", "volume, paper": "GB/s, profiler", "flux6a, paper": "GB/s", "flux6b, paper": "GB/s"}
    for head in results.by_device:
        scope |= {f"{name}, {head}": "GB/s, of copy" for name in PARTS}
    rows = []
    for line in TIMES["table4_17_p_n512_GBs"]:
        row = [line["p"], line["volume"], line["flux6a"], line["flux6b"]]
        for head, found in results.by_device.items():
            n = (
                512
                if head == "H100"
                else max((r["n"] for r in found if r.get("table") == "times" and r["p"] == line["p"]), default=0)
            )
            ours = pick(found, table="times", n=n, p=line["p"])
            for name in PARTS:
                rate = ours.get("GBs", {}).get(name)
                row.append(NONE if rate is None else f"{rate:.4g}, {ours['fraction_of_copy'][name]:.2f}")
        rows.append(row)
    note = (
        "Scope: the thesis has bandwidth by NVIDIA's profiler, of 250 GB/s peak; ours are compulsory bytes over time: "
        "vectors read and written once. PoCL rows are of smaller meshes."
    )
    return Table("Table 4.17: bandwidth, 512 × 512 squares", scope, rows, note)


# Several GPUs --------------------------------------------------------------------------------------------------------


def scaling_rows(path: Path) -> list[dict]:
    """Rows of `bench scaling` for interior penalty on quadrilaterals, and what ranks pay for each other."""
    if not path.exists():
        return []
    rows = [r for r in json.loads(path.read_text(encoding="utf-8")) if "ranks" in r]
    return [r for r in rows if r["kernel"] == "links" or (r["scheme"], r["cell"]) == ("sipg_gpu", "quadrilateral")]


def scaling_tables(runs: list[list[dict]]) -> list[Table]:
    """Tables 4.19 to 4.21, with the model's efficiency for other numbers of GPUs. runs: rows of each."""
    return [
        scaling_table("Table 4.19: weak scaling, p = 8, ms", runs, "weak", (128, 256, 512, 1024, 2048), (8,)),
        scaling_table("Table 4.20: strong scaling, 1024 × 1024 squares, ms", runs, "strong", (1024,), (8, 16)),
        scaling_table("Table 4.21: strong scaling, 2048 × 2048 squares, ms", runs, "strong", (2048,), (4, 8)),
    ]


def scaling_table(title: str, runs: list[list[dict]], mode: str, sides, degrees) -> Table:
    device = next((r["device"] for rows in runs for r in rows if r["kernel"] != "links"), "")
    scope = {"squares": "on each GPU" if mode == "weak" else "in all", "p": "", "GPUs": "", "paper, ms": "K20x"}
    scope |= {"paper, efficiency": "", "ms": device, "efficiency": "", "model": "efficiency of ours"}
    lines = []
    for side in sides:
        for degree in degrees:
            theirs = printed_times(mode, degree, side)
            found = (measured_curve(rows, mode, degree, side) for rows in runs)
            ours, model = next((curve for curve in found if curve[0]), ({}, {}))
            for k in sorted({*theirs, *ours, *model}):
                row = [f"{side} × {side}", degree, k, theirs.get(k, NONE)]
                row.append(theirs[1] / theirs[k] / (k if mode == "strong" else 1) if k in theirs else NONE)
                row += [ms(ours[k]["product_seconds"]), ours[k]["product_efficiency"]] if k in ours else [NONE, NONE]
                lines.append([*row, model.get(k, NONE)])
    note = (
        "Scope: our kernel is `affine`, for constant coefficients on rectangles; the thesis' takes any geometry and a "
        "hundred times longer, so its halo is easier to hide. Numbers of GPUs that were not measured are the model's. "
        "Sizes and degrees without a figure were not run."
    )
    return Table(title, scope, lines, note, keys=3)


def measured_curve(rows: list[dict], mode: str, degree: int, side: int) -> tuple[dict[int, dict], dict[int, float]]:
    """GPUs → row, and GPUs → efficiency of the product by the model, of one case of a run."""
    from bench import scaling_view

    ours = {r["ranks"]: r for r in scaling_view.compared(rows) if is_case(r, mode, degree, side)}
    groups = [scaling_view.group(r) for r in ours.values()]
    curves = scaling_view.predicted(rows, NETWORK, GPUS) if groups else []
    model = next((dict(zip(c["ranks"], c["product"], strict=True)) for c in curves if c["group"] == groups[0]), {})
    return ours, model


def is_case(row: dict, mode: str, degree: int, side: int) -> bool:
    cells = row["cells"] / (row["ranks"] if mode == "weak" else 1)
    return (row["mode"], row["degree"], round(cells**0.5)) == (mode, degree, side)


def printed_times(mode: str, degree: int, side: int) -> dict[int, float]:
    """GPUs → ms in the thesis, where it has this case."""
    if mode == "weak":
        found = TIMES["table4_19_weak_p8_ms"].get(str(side), {})
    else:
        found = TIMES[f"table4_{20 if side == 1024 else 21}_strong_n{side}_ms"].get(str(degree), {})
    return {int(gpus): value for gpus, value in found.items()}


if __name__ == "__main__":
    import petsc4py

    petsc4py.init(sys.argv[:1])
    sys.exit(run("gorlani", __doc__, groups))
