"""`python benchmarks/bench start`: time to a first solve, with an empty cache of compiled kernels and with a full one.

Each solve is that of a process of its own, on a small box, with the scheme's default solver, errors and cell values
included. The drivers' own caches (PoCL's, NVIDIA's) are in the same folder, so that empty means empty. Options that
are not known here (-fe_degree, -fe_device, -dm_vec_type, …) go to these processes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from petsc_hdg import stages
from petsc_hdg.commands.alone import alone
from petsc_hdg.commands.arguments import own_arguments
from petsc_hdg.discretizations import SCHEMES
from petsc_hdg.errors import DeviceError
from petsc_hdg.mesh import Mesh, agglomerate
from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Physics
from petsc_hdg.problem import Problem

from .group import Group, measure, shown_by
from .record import Record, add_options

FACES, SPLIT = (12, 12), 2
CACHES = {"PETSC_HDG_CACHE": "kernels", "POCL_CACHE_DIR": "pocl", "CUDA_CACHE_PATH": "cuda"}
STATES = ("empty", "full")  # of the caches
STAGES = ("mesh", "discretize", "compile", "solve", "output")
COLUMNS = ("scheme", "cache", "imports", *STAGES, "total s", "programs")
WIDTHS = (-10, -6, 8, 8, 11, 8, 8, 8, 8, 9)


def main(arguments: list[str]) -> int:
    """Print a line for each scheme and state of the cache; with `-json FILE` write the rows too."""
    given, others = own_arguments(_parser(), arguments)
    if given.once:
        print(json.dumps(first_solve(given.once)))
        return 0
    record = Record.of(given, arguments=" ".join(others) or "none")
    print("  " + _line(COLUMNS), flush=True)
    left = measure((_group(scheme, others) for scheme in given.schemes), record, shown_by(_formatted))
    return record.end(left)


def _group(scheme: str, others: list[str]) -> Group:
    """The solves of a scheme with an empty cache, and then with what they left in it."""
    names = {f"start {scheme}, {state} cache": state for state in STATES}

    def prepare(wanted) -> dict:
        folder = tempfile.TemporaryDirectory()

        def measured(state: str) -> dict:
            if state == "full" and not any(Path(folder.name).iterdir()):
                _row(scheme, "empty", Path(folder.name), others)
            return _row(scheme, state, Path(folder.name), others)

        return {name: partial(measured, names[name]) for name in wanted}

    return Group(tuple(names), prepare)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench start", allow_abbrev=False, description=__doc__)
    parser.add_argument("-schemes", nargs="+", default=list(SCHEMES), choices=list(SCHEMES))
    add_options(parser)
    parser.add_argument("-once", default="", choices=list(SCHEMES), help=argparse.SUPPRESS)
    return parser


def first_solve(scheme: str) -> dict:
    """Solve -∇·∇u = 0 with a linear solution; seconds of stages, and what was solved on what."""
    f1 = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    exact = "u[0] = x[0] + 2*x[1];"
    physics = Physics({"u": 1}, None, f1, boundary=[Dirichlet("boundary", "exact")], exact={"u": exact}, name="start")
    with stages.stage("mesh"):
        mesh = Mesh.box(FACES)
        mesh = agglomerate(mesh, mesh.num_cells // 4) if scheme == "poly_gpu" else mesh
    problem = Problem(mesh, physics, Options.from_petsc(backend=scheme))
    u = problem.solve()
    with stages.stage("output"):
        problem.cell_values(u)
    error = problem.errors(u)["L2"]
    return {
        "degree": problem.options.degree,
        "device": problem.device.name,
        "vec_mode": problem.vec_mode,
        "dofs": problem.num_unknowns,
        "error": error,
        "programs": len(problem.device.programs),
        "seconds": {name: stages.SECONDS.get(name, 0.0) for name in STAGES},
    }


def _row(scheme: str, state: str, folder: Path, others: list[str]) -> dict:
    """Run a solve in a process of its own."""
    caches = {name: str(folder / place) for name, place in CACHES.items()}
    for place in caches.values():
        Path(place).mkdir(exist_ok=True)
    command = [sys.executable, str(Path(__file__).parent), "start", "-once", scheme, *others]
    start = time.perf_counter()
    done = subprocess.run(command, env={**alone(os.environ), **caches}, capture_output=True, text=True, check=False)
    total = time.perf_counter() - start
    try:
        row = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        raise DeviceError(
            f"a first solve with {scheme} failed: {(done.stderr or done.stdout).strip()[-500:]}"
        ) from None
    # What is left of the total: starting Python, PETSc and the OpenCL driver, and ending them.
    imports = total - sum(row["seconds"].values())
    return {"kernel": "start", "scheme": scheme, "cache": state, **row, "imports": imports, "total": total}


def _line(values) -> str:
    cells = (f"{v:<{-w}}" if w < 0 else f"{v:>{w}}" for v, w in zip(values, WIDTHS, strict=True))
    return " ".join(cells)


def _formatted(r: dict) -> str:
    times = (f"{t:.2f}" for t in (r["imports"], *r["seconds"].values(), r["total"]))
    return _line((r["scheme"], r["cache"], *times, r["programs"]))
