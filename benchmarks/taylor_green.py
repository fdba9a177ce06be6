"""The Taylor-Green vortex by examples/taylor_green_hdg.py beside a Fourier method: a table and figure of dissipation.

    python benchmarks/taylor_green.py [-runs 100:3:4,400:4:5] [-end 10] [-points 128] [-results results.json]
    python benchmarks/taylor_green.py -runs "" -results benchmarks/results/taylor_green_h200.json -figure decay.png

A run is Reynolds number:degree:cells along π, with the numerical flux -flux; `-fe_device` and others are PETSc's.
Reynolds numbers that the file has no reference for get one: the incompressible Navier-Stokes equations in a box of
period 2π, pseudo-spectral with -points³, rotational form, the 2/3 rule, the classical Runge-Kutta method with exact
viscosity. It needs numpy alone, and takes cupy where there is one. -figure draws what the file has.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import petsc4py

petsc4py.init(sys.argv)

import numpy as np  # noqa: E402
from petsc4py import PETSc  # noqa: E402

try:
    import cupy as xp
except ImportError:
    import numpy as xp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import taylor_green_hdg  # noqa: E402

EVERY, DIGITS = 0.5, 7  # units of time between rows of the printed table; digits of the file


def fourier(reynolds: float, n: int, end: float, dt: float) -> dict:
    """Times, energy and dissipation per volume at each tenth of a unit of time, of n³ points."""
    wave = xp.fft.fftfreq(n, 1 / n)
    k = xp.stack(xp.meshgrid(wave, wave, wave[: n // 2 + 1], indexing="ij"))
    k[2, ..., -1] = n // 2
    square = (k**2).sum(axis=0)
    inside = (abs(k) < n / 3).all(axis=0)
    inverse = 1 / xp.where(square > 0, square, 1)
    weight = xp.where((k[2] == 0) | (k[2] == n // 2), 1.0, 2.0) / float(n) ** 6  # of both signs of the last number

    def space(v):
        return xp.fft.irfftn(v, s=(n, n, n), axes=(1, 2, 3))

    def rate(v):
        curl = xp.fft.irfftn(1j * xp.cross(k, v, axis=0), s=(n, n, n), axes=(1, 2, 3))
        turned = xp.fft.rfftn(xp.cross(space(v), curl, axis=0), axes=(1, 2, 3)) * inside
        return turned - k * ((k * turned).sum(axis=0) * inverse)

    x = 2 * xp.pi * xp.arange(n) / n
    x, y, z = xp.meshgrid(x, x, x, indexing="ij")
    start = [xp.sin(x) * xp.cos(y) * xp.cos(z), -xp.cos(x) * xp.sin(y) * xp.cos(z), 0 * x]
    v, half = xp.fft.rfftn(xp.stack(start), axes=(1, 2, 3)), xp.exp(-square * dt / (2 * reynolds))
    every, found = max(1, round(0.1 / dt)), {"t": [], "energy": [], "dissipated": []}
    for step in range(round(end / dt) + 1):
        if step % every == 0:
            energy, lost = ((weight * w * (abs(v) ** 2).sum(axis=0)).sum() for w in (0.5, square / reynolds))
            for name, value in zip(found, (step * dt, energy, lost), strict=True):
                found[name].append(round(float(value), DIGITS))
        a = rate(v)
        b = rate(half * (v + dt / 2 * a))
        c = rate(half * v + dt / 2 * b)
        d = rate(half**2 * v + dt * half * c)
        v = half**2 * v + dt / 6 * (half**2 * a + 2 * half * (b + c) + d)
    return {"method": f"Fourier, {n}³ points", "reynolds": reynolds, **found}


def gas(reynolds: float, degree: int, faces: int, end: float, dt: float) -> dict:
    """The same by hybridizable DG, and the loss of energy, with what the run took."""
    PETSc.Options()["fe_degree"] = degree
    flux = PETSc.Options().getString("flux", "lax_friedrichs")
    problem, begin = taylor_green_hdg.vortex(faces, reynolds, flux), time.perf_counter()
    history = np.round(taylor_green_hdg.decay(problem, end, dt), DIGITS).tolist()
    took = {"seconds": time.perf_counter() - begin, "steps": problem.time_steps, "device": problem.device.name}
    took |= {"newton": problem.newton_iterations, "iterations": problem.linear_iterations}
    took["snes_rtol"] = PETSc.Options().getString("snes_rtol", "default")
    named = dict(zip(("t", "energy", "lost", "dissipated"), history, strict=True))
    method = f"degree {degree}, {faces}³ cells" + f", {flux}" * (flux != "lax_friedrichs")
    return {"method": method, "reynolds": reynolds, **took, **named}


def table(curves: list[dict]) -> str:
    """Dissipation of all curves of each Reynolds number."""
    lines = []
    for reynolds in sorted({c["reynolds"] for c in curves}):
        listed = sorted((c for c in curves if c["reynolds"] == reynolds), key=lambda c: c["method"])
        lines += [
            f"| t, Re {reynolds:g} | {' | '.join(c['method'] for c in listed)} |",
            "| --- " * (1 + len(listed)) + "|",
        ]
        for t in np.arange(0, max(c["t"][-1] for c in listed) + 1e-9, EVERY):
            lines.append(f"| {t:.1f} | {' | '.join(_at(c, t) for c in listed)} |")
        lines.append("")
    return "\n".join(lines)


def _at(curve: dict, t: float) -> str:
    """Dissipation at a time, "" where the curve has none."""
    near = int(np.argmin(np.abs(np.array(curve["t"]) - t)))
    return f"{curve['dissipated'][near]:.5f}" if abs(curve["t"][near] - t) < 1e-6 else ""


def draw(curves: list[dict], file: str) -> None:
    """A picture of dissipation over time: references as lines, runs as marks."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.8), dpi=100, layout="constrained")
    axes, marks = figure.subplots(), iter("o+sx^d" * len(curves))
    for curve in sorted(curves, key=lambda c: (c["reynolds"], "seconds" in c, c["method"])):
        is_run, step = "seconds" in curve, 4 if "seconds" in curve else 1
        look = {"linestyle": "", "marker": next(marks)} if is_run else {"color": "0.3", "linewidth": 1}
        label = f"Re {curve['reynolds']:g}, {curve['method']}"
        axes.plot(curve["t"][::step], curve["dissipated"][::step], label=label, markersize=5, fillstyle="none", **look)
    axes.set(xlabel="time", ylabel="dissipation of kinetic energy", xlim=(0, None), ylim=(0, None))
    axes.legend(frameon=False, fontsize=8)
    axes.grid(alpha=0.25, linewidth=0.5)
    figure.savefig(file)


def main() -> None:
    """Make the curves that are asked for, and print the table of all of the file."""
    options = PETSc.Options()
    file, picture = options.getString("results", ""), options.getString("figure", "")
    end, dt, points = options.getReal("end", 10.0), options.getReal("dt", 0.1), options.getInt("points", 64)
    curves = json.loads(Path(file).read_text(encoding="utf-8")) if file and Path(file).exists() else []
    for given in filter(None, options.getString("runs", "100:3:2").split(",")):
        reynolds, degree, faces = (int(number) for number in given.split(":"))
        if all(c["reynolds"] != reynolds or "seconds" in c for c in curves):
            curves.append(fourier(reynolds, points, end, dt / 5))
        curves.append(gas(reynolds, degree, faces, end, dt))
        PETSc.Sys.Print({name: value for name, value in curves[-1].items() if not isinstance(value, list)})
        if file:
            Path(file).write_text(json.dumps(curves), encoding="utf-8")
    PETSc.Sys.Print(table(curves))
    if picture:
        draw(curves, picture)


if __name__ == "__main__":
    main()
