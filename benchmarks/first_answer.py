"""Processor seconds to a first answer, without any cache and with full ones, of several checkouts in turns.

    python benchmarks/first_answer.py ../before . -repeat 4 -json first_answer.json

Cases: examples/poisson.py on 64² triangles of degree 2 by all schemes; -∇·((1 + u²)∇u) = x on 32² quadrilaterals of
degree 3 by three. Each solve is that of a process, with PoCL's cache in the same folder. Processor seconds are those of
the process and of the linkers it starts; a machine that others use disturbs them less than the clock. Rows have the
least of all repetitions. Python's own cache of compiled modules is full.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
CASES = {
    "poisson": ("cg_gpu hdg_gpu sipg_gpu poly_gpu", "-dm_plex_box_faces 64,64 -fe_degree 2"),
    "nonlinear": ("cg_gpu hdg_gpu sipg_gpu", "-dm_plex_simplex 0 -dm_plex_box_faces 32,32 -fe_degree 3"),
}
CACHES = {"PETSC_HDG_CACHE": "kernels", "POCL_CACHE_DIR": "pocl"}


def main() -> None:
    """Print a line for each case, scheme and state of the caches; with -json write the rows too."""
    if sys.argv[1:2] == ["-solve"]:
        del sys.argv[1]
        nonlinear()
        return
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("-cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("-repeat", type=int, default=3)
    parser.add_argument("-json", type=Path)
    given, rows = parser.parse_args(), []
    for case in given.cases:
        schemes, options = CASES[case]
        for scheme in schemes.split():
            for row in measured(case, scheme, options.split(), given):
                rows.append(row)
                print(" ".join(f"{value}" for value in row.values()), flush=True)
                if given.json:
                    given.json.write_text(json.dumps(rows, indent=1) + "\n")


def measured(case: str, scheme: str, options: list[str], given):
    """Rows of a scheme with empty and with full caches; least processor seconds of `given.repeat` solves each."""
    found: dict = {}
    for _ in range(given.repeat):
        for checkout in map(Path.resolve, given.checkouts):
            with tempfile.TemporaryDirectory() as folder:
                for state in ("empty", "full"):
                    one = solve(case, scheme, options, checkout, Path(folder))
                    found.setdefault((state, checkout.name), []).append(one)
    for state in ("empty", "full"):
        row: dict = {"kernel": "first answer", "case": case, "scheme": scheme, "cache": state}
        for checkout in map(Path.resolve, given.checkouts):
            processors, clock, kernels = (float(least) for least in np.min(found[state, checkout.name], axis=0))
            row[checkout.name] = {"processors": round(processors, 2), "clock": round(clock, 2), "kernels": int(kernels)}
        yield row


def solve(case: str, scheme: str, options: list[str], checkout: Path, folder: Path) -> tuple[float, float, int]:
    """Processor seconds, seconds, and kernels that PoCL has compiled into the folder so far."""
    caches = {name: str(folder / place) for name, place in CACHES.items()}
    for place in caches.values():
        Path(place).mkdir(exist_ok=True)
    environment = {**os.environ, **caches, "PYTHONPATH": str(checkout)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    script = [str(checkout / "examples" / "poisson.py")] if case == "poisson" else [str(HERE), "-solve"]
    before, start = processor_seconds(), time.perf_counter()
    command = [sys.executable, *script, "-fe_backend", scheme, *options]
    done = subprocess.run(command, env=environment, cwd=checkout, capture_output=True, text=True, check=False)
    taken = processor_seconds() - before, time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.strip()[-500:]}")
    return *taken, len(list(folder.rglob("*.so")))


def processor_seconds() -> float:
    """Those of the processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def nonlinear() -> None:
    """Solve the second case."""
    import petsc4py

    import petsc_hdg as fe

    petsc4py.init(sys.argv)

    f1 = "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];"
    data = fe.Dirichlet("boundary", "g[0] = sin(x[0]) + x[1]*x[1];")
    problem = fe.Problem(fe.Mesh.from_options(), fe.Physics({"u": 1}, "f0[0] = -x[0];", f1, boundary=[data]))
    problem.report(problem.solve())


if __name__ == "__main__":
    main()
