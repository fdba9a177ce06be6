"""Default options on hard problems: physics × scheme × degree × mesh, and the bar that solvers may not fall below.

    python benchmarks/defaults.py -jobs 2 -json now.json -compare before.json [-only REGEX]

A row is one problem with a known solution, solved without an option: Newton steps, linear iterations, the L2 error, the
least error of its schemes and interpolants, and how it ended: solved, wrong (an error above WRONG times the least one
and above NOTHING, and no warning), warned (the same, with a warning), refused (a sentence), or crash. The rows of a
physics and a scheme share a process; one that takes more than LIMIT seconds for a row is killed and the next rows get a
new one. -compare names rows that take more than MOST of their iterations, or are not solved any more; then, and if a
row is wrong or a crash, the exit status is 1. -only picks rows such as "wind 100 hdg_gpu 2 triangles".
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
import warnings
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SCHEMES = ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")
SIDES = {1: 36, 2: 20, 4: 8, 6: 8}  # degree -> cells along a side of the plane; multiples of 4, where coefficients jump
SIDES_IN_SPACE = {1: 8, 2: 4}
MESHES = ("squares", "triangles", "moved")  # moved: hexahedra of low degrees, quadrilaterals of high ones
LIMIT, WRONG, NOTHING = 300, 50, 1e-3  # seconds; factor of the least error; error (solutions are of size 1)
MOST, SPARE = 1.3, 2  # factor of iterations, and what is added to it
ENDS = ("solved", "warned", "refused", "wrong", "crash")


# Each physics: (function of Symbols, constants, settings). The function gives the solution, the flux f1(u, ∇u), what
# else f0 has of them, and the source where it is simpler than what sympy finds. Settings: see `solved`.


def wave(x):
    return sp.sin(2 * x[0] + 1) * sp.cos(3 * x[1]) * (sp.exp(x[2] / 2) if len(x) == 3 else 1)


def sines(x):
    return sp.prod(sp.sin(sp.pi * c) for c in x)


def along(x):
    """Distance along a direction that no mesh has."""
    return sum(c * d for c, d in zip(x, (0.8, 0.6) if len(x) == 2 else (0.6, 0.48, 0.64), strict=True))


def square(gradient):
    return sum(c * c for c in gradient)


def wind(s, in_flux=True):
    """A turning wind."""
    b, eps = sp.Matrix([s.x[1], -s.x[0], 0.3][: s.dim]), s.constant("eps")
    return wave(s.x), lambda u, g: eps * g - (u * b if in_flux else 0 * b), lambda u, g: 0 if in_flux else b.dot(g)


def surface(s, height):
    return height, lambda u, g: g / sp.sqrt(1 + square(g)), None


def scherk(s):
    """Scherk's surface: steep at the boundary, without a source."""
    x, y = (2.4 * (c - 0.5) for c in s.x[:2])
    return *surface(s, sp.log(sp.cos(y) / sp.cos(x)) / 2.4), 0


def growing(s):
    """1 + u²: u + u³/3 solves Poisson's equation with a load of about 50."""
    load = 50 * sines(s.x)
    return 2 * sp.sinh(sp.asinh(1.5 * load / (s.dim * sp.pi**2)) / 3), lambda u, g: (1 + u**2) * g, None, -load


def p_laplacian_load(s):
    """p = 4 and a load of 1: a solution about the middle, where the diffusivity vanishes."""
    r2 = sum((c - 0.5) ** 2 for c in s.x) + 1e-30
    return 0.75 * s.dim ** (-1 / 3) * (1 - r2 ** (2 / 3)), lambda u, g: (1e-10 + square(g)) * g, None, -1


def helmholtz(s):
    k = s.constant("k")
    return sp.sin(k * along(s.x) + 0.4), lambda u, g: g, lambda u, g: -(k**2) * u, 0


def elasticity(s):
    """A displacement without divergence."""
    bell = sines(s.x[:2]) * sp.exp(s.x[0]) * (sp.cos(s.x[2]) if s.dim == 3 else 1)
    exact = [sp.diff(bell, s.x[1]), -sp.diff(bell, s.x[0]), 0][: s.dim]
    return sp.Matrix(exact), lambda u, g: g + g.T + s.constant("lambda") * g.trace() * sp.eye(s.dim)


def neo_hookean(s):
    def stress(u, g):
        deformation = sp.eye(s.dim) + g
        volume = deformation.det()
        return deformation + (4 * sp.log(volume) - 1) / volume * deformation.adjugate().T

    exact = sp.Matrix([sp.sin(2 * s.x[1]), s.x[0] * s.x[1], s.x[0] ** 2][: s.dim])
    return s.constant("load") * exact, stress


def rotated(s):
    turn = sp.rot_axis3(-sp.pi / 6)[: s.dim, : s.dim]
    tensor = (turn * sp.diag(1, 1e-4, 1)[: s.dim, : s.dim] * turn.T).evalf()
    return wave(s.x), lambda u, g: tensor * g


def jumps(s, directions):
    """A coefficient κ that jumps on planes where u = w / κ vanishes, so that κ∇u is smooth."""
    side = sp.prod(sp.sin(4 * sp.pi * c) for c in s.x[:directions])
    smooth = side * (sp.cos(3 * s.x[1]) if directions == 1 else 1)
    kappa = 1 + (s.constant("jump") - 1) * sp.Heaviside(side)
    return smooth / kappa, lambda u, g: s.given("kappa") * g, None, sum(sp.diff(smooth, c, 2) for c in s.x)


def kappa(x, directions, jump):
    return np.where(np.sin(4 * np.pi * x[..., :directions]).prod(axis=-1) > 0, jump, 1.0)


def burgers(s):
    """A shock across the cells, 0.04 wide."""
    direction, place = sp.Matrix([sp.diff(along(s.x), c) for c in s.x]), along(s.x) - along([0.5] * s.dim)
    return -sp.tanh(25 * place), lambda u, g: 0.02 * g - u**2 / 2 * direction, None, 0


def front(s):
    """A front that reacts and drifts."""
    place = along(s.x) - 0.4 - 1.2 * s.t
    return (1 - sp.tanh(4 * place)) / 2, lambda u, g: 0.02 * g, lambda u, g: g[0] - 50 * u * (1 - u) * (u - 0.25)


TIME = {"end": 0.1, "steps": 5}
PHYSICS = {
    "diffusion": (lambda s: (wave(s.x), lambda u, g: g), {}, {}),
    **{f"wind {peclet:g}": (wind, {"eps": 1 / (72 * peclet)}, {}) for peclet in (1, 100, 1e4)},
    "wind in f0 100": (lambda s: wind(s, False), {"eps": 1 / 7200}, {}),
    "minimal surface": (scherk, {}, {}),
    "steep surface": (lambda s: surface(s, sp.sin(2 * sp.pi * s.x[0]) * sp.cos(sp.pi * s.x[1])), {}, {}),
    "1+u2 load 50": (growing, {}, {}),
    "p-Laplacian 4": (lambda s: (wave(s.x), lambda u, g: (1e-6 + square(g)) * g), {}, {}),
    "p-Laplacian 4 load 1": (p_laplacian_load, {}, {}),
    **{f"Helmholtz {k}": (helmholtz, {"k": k}, {}) for k in (5, 10.6, 20.7)},
    **{f"elasticity {nu}": (elasticity, {"lambda": 2 * nu / (1 - 2 * nu)}, {}) for nu in (0.3, 0.49, 0.4999)},
    "neo-Hookean": (neo_hookean, {"load": 0.3}, {"loads": (0.1, 0.2, 0.3)}),
    "stretched cells": (lambda s: (wave([s.x[0], 100 * s.x[1], *s.x[2:]]), lambda u, g: g), {}, {"height": 0.01}),
    "rotated tensor": (rotated, {}, {}),
    **{f"aligned jump {j:g}": (lambda s: jumps(s, 1), {"jump": j}, {"directions": 1}) for j in (1e2, 1e4, 1e6)},
    **{f"checkerboard {j:g}": (lambda s: jumps(s, 2), {"jump": j}, {"directions": 2}) for j in (1e2, 1e4, 1e6)},
    "Bratu": (lambda s: (sines(s.x), lambda u, g: g, lambda u, g: -5 * sp.exp(u)), {}, {}),
    "Burgers": (burgers, {}, {}),
    "heat": (lambda s: (wave(s.x) * sp.exp(-s.t), lambda u, g: g), {}, TIME),
    "reacting front": (front, {}, TIME),
}
ROWS = [(name, scheme, k, mesh) for name in PHYSICS for scheme in SCHEMES for k in SIDES for mesh in MESHES]


def physics(name: str, dim: int):
    """The physics of a name; sympy finds the source."""
    made, constants, settings = PHYSICS[name]
    auxiliary = {"kappa": 1} if "directions" in settings else {}
    exact, flux, reaction, source, *_ = *made(Symbols(dim, {"u": 1}, auxiliary)), None, None, None
    fields = {"u": len(exact) if isinstance(exact, sp.MatrixBase) else 1}
    s = Symbols(dim, fields, auxiliary)
    u, gradient = s.value("u"), s.grad("u")
    f0 = manufactured(s.x, exact, flux, reaction) if source is None else source
    if reaction is not None:
        f0 += reaction(u, gradient)
    if "end" in settings:
        f0 += s.rate("u") - sp.diff(exact, s.t)
    wall = fe.Dirichlet("boundary", "exact")
    return fe.Physics(
        fields, f0, flux(u, gradient), auxiliary=auxiliary, constants=constants, exact=exact, boundary=[wall], name=name
    )


def mesh_of(name: str, degree: int, height: float):
    """A box of cells, whose vertices may be moved by a quarter of a cell; none leaves the planes where κ jumps."""
    n, dim = (SIDES_IN_SPACE[degree], 3) if name == "moved" and degree in SIDES_IN_SPACE else (SIDES[degree], 2)
    upper = (1, height, 1)[:dim]
    if name != "moved":
        return fe.Mesh.box((n,) * dim, simplex=name == "triangles", upper=upper)
    at = np.stack(np.meshgrid(*dim * [np.linspace(0, 1, n + 1)], indexing="ij"), axis=-1)
    at += 0.25 / n * np.sin(4 * np.pi * at).prod(axis=-1, keepdims=True) * [1, -0.6, 0.8][:dim]
    number = np.arange((n + 1) ** dim).reshape((n + 1,) * dim)
    corners = np.stack(np.meshgrid(*dim * [(0, 1)], indexing="ij"), axis=-1).reshape(-1, dim)[:, ::-1]
    cells = [number[tuple(slice(c, n + c) for c in corner)].ravel() for corner in corners]
    return fe.Mesh.from_cells(np.stack(cells, axis=-1), at.reshape(-1, dim) * upper)


def solved(name: str, scheme: str, degree: int, mesh: str) -> dict:
    """A row. Settings of its physics: directions of jumps, loads, height of the box, end and steps in time."""
    _, constants, settings = PHYSICS[name]
    box = mesh_of(mesh, degree, settings.get("height", 1))
    problem = fe.Problem(box, physics(name, box.dim), backend=scheme, degree=degree)
    if "directions" in settings:
        problem.set_auxiliary("kappa", lambda x: kappa(x, settings["directions"], constants["jump"]))
    t, counts, u = settings.get("end", 0.0), [], None
    for load in settings.get("loads", (None,)):
        if load is not None:
            problem.set_constants(load=load)
        if t:
            u = problem.solve_in_time(problem.interpolate("exact"), t, t / settings["steps"])
        else:
            u = problem.solve(u)
        counts.append((problem.newton_iterations, problem.linear_iterations))
    newton, linear = (sum(column) for column in zip(*counts, strict=True))
    found = {"unknowns": problem.num_unknowns, "newton": newton, "linear": linear, "direct": problem.direct or ""}
    found["error"] = problem.errors(u, t)["L2"]
    if not t:
        found["nodal"] = problem.errors(problem.interpolate("exact"))["L2"]
    return {**found, "end": "solved"}


def work(names: list[str]) -> None:
    """Print a line of JSON for each row."""
    for name, *row in (json.loads(text) for text in names):
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                found = solved(name, *row)
            except Exception as error:  # a row, too
                ours = our_error(error)
                end = "refused" if ours else "crash"
                found = {"end": end, "text": str(ours) if ours else f"{type(error).__name__}: {error}"}
        if told and "text" not in found:
            found["text"] = str(told[-1].message)
        found |= {"seconds": round(time.perf_counter() - start, 1)}
        print(json.dumps({**dict(zip(("physics", "scheme", "degree", "mesh"), (name, *row), strict=True)), **found}))
        sys.stdout.flush()


def run(rows: list[tuple]) -> list[dict]:
    """Rows by processes of their own: a new one after each that dies or takes too long."""
    found, one = (
        [],
        {"POCL_MAX_PTHREAD_COUNT": "1", "OMP_NUM_THREADS": "1", "PETSC_OPTIONS": "", "PETSC_HDG_BUILD_OPTIONS": ""},
    )
    while len(found) < len(rows):
        call = [sys.executable, __file__, "-work", *map(json.dumps, rows[len(found) :])]
        process = subprocess.Popen(
            call, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, **one}
        )
        while True:
            patience = threading.Timer(LIMIT, process.kill)
            patience.start()
            line = process.stdout.readline()
            patience.cancel()
            if not line:
                break
            if line.startswith("{"):
                found.append(json.loads(line))
                show(found[-1])
        if process.wait() or len(found) < len(rows):
            keys = dict(zip(("physics", "scheme", "degree", "mesh"), rows[len(found)], strict=True))
            found.append({**keys, "end": "crash", "text": f"exit status {process.returncode} (-9: after {LIMIT} s)"})
            show(found[-1])
    return found


def called(row: dict) -> str:
    return f"{row['physics']} {row['scheme']} {row['degree']} {row['mesh']}"


def show(row: dict) -> None:
    shown = {name: value for name, value in row.items() if name not in ("physics", "scheme", "degree", "mesh")}
    print(f"{called(row):48} {json.dumps(shown, ensure_ascii=False)}", flush=True)


def judge(rows: list[dict]) -> None:
    """Least errors of the schemes on a mesh, and rows that are wrong beside them."""
    least = defaultdict(lambda: np.inf)
    for row in rows:
        if "error" in row:
            key = row["physics"], row["degree"], row["mesh"]
            least[key] = np.nanmin([least[key], row["error"], row.get("nodal", np.inf)])
    for row in rows:
        if "error" in row:
            row["least"] = best = least[row["physics"], row["degree"], row["mesh"]]
            if not row["error"] < max(WRONG * best, NOTHING):
                row["end"] = "warned" if row.get("text") else "wrong"


def table(rows: list[dict]) -> str:
    """Of each physics and scheme: ends other than solved, most iterations a step, rows that took LU."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["physics"], row["scheme"]].append(row)
    lines = ["| physics | " + " | ".join(SCHEMES) + " |", "| --- " * (1 + len(SCHEMES)) + "|"]
    for name in dict.fromkeys(row["physics"] for row in rows):
        cells = []
        for scheme in SCHEMES:
            group = groups[name, scheme]
            ends = [row["end"] for row in group]
            steps = [row["linear"] / max(row["newton"], 1) for row in group if "linear" in row]
            parts = [f"{max(steps):.0f}"] if steps else []
            parts += [f"{count} LU"] if (count := sum(bool(row.get("direct")) for row in group)) else []
            cells.append(", ".join(parts + [f"{ends.count(end)} {end}" for end in ENDS[1:] if end in ends]))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def worse(rows: list[dict], before: list[dict]) -> list[str]:
    """Rows that are solved no more, or take too many iterations."""
    known, found = {called(row): row for row in before}, []
    for row in rows:
        old = known.get(called(row), {"end": ""})
        if old["end"] == "solved" and row["end"] != "solved":
            found.append(f"{called(row)}: {row['end']}, was solved; {row.get('text', '')}")
        elif old["end"] == row["end"] == "solved" and row["linear"] > MOST * old["linear"] + SPARE:
            found.append(f"{called(row)}: {row['linear']} iterations, were {old['linear']}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prefix_chars="-")
    parser.add_argument("-jobs", type=int, default=1)
    parser.add_argument("-only", default="")
    parser.add_argument("-json", type=Path)
    parser.add_argument("-compare", type=Path)
    given, groups, start = parser.parse_args(), defaultdict(list), time.time()
    for row in ROWS:
        if re.search(given.only, " ".join(map(str, row))):
            groups[row[:2]].append(row)
    with ThreadPoolExecutor(given.jobs) as pool:
        rows = [row for group in pool.map(run, groups.values()) for row in group]
    judge(rows)
    if given.json:
        given.json.write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")
    failed = worse(rows, json.loads(given.compare.read_text())) if given.compare else []
    failed += [f"{called(row)}: {row['end']}" for row in rows if row["end"] in ("wrong", "crash")]
    ends = [row["end"] for row in rows]
    print(table(rows), *failed, sep="\n")
    print(f"{len(rows)} rows in {time.time() - start:.0f} s:", *(f"{ends.count(end)} {end}" for end in ENDS))
    return int(bool(failed))


if __name__ == "__main__":
    if sys.argv[1:2] == ["-work"]:
        import petsc4py

        petsc4py.init(sys.argv[:1])
    import numpy as np
    import sympy as sp

    import petsc_hdg as fe
    from petsc_hdg.errors import our_error
    from petsc_hdg.physics import Symbols, manufactured

    if sys.argv[1:2] == ["-work"]:
        work(sys.argv[2:])
    else:
        sys.exit(main())
