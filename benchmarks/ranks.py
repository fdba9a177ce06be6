"""The same norms on 1, 2, 3, 4, 5, 7 and 8 ranks, with random partitions, for all schemes.

    python benchmarks/ranks.py -json benchmarks/results/ranks.json

States: residuals, products with the Jacobian, diagonals, penalties, errors and solutions of problems with everything in
them (terms, boundary conditions, several components, curved and random orders of vertices) by the scripts that the
tests run. Solutions: linear and nonlinear problems on all cells with the default solvers, by `petsc_hdg check`.
Every run has a partition of its own: cells are dealt out at random. `-jobs 6` has six runs at once. Exit code 1 if a
norm differs by more than 1e-11.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from petsc_hdg.commands import check_script
from petsc_hdg.commands.alone import for_mpiexec

ROOT = Path(__file__).resolve().parents[1]
RANKS = (1, 2, 3, 4, 5, 7, 8)
STATES = {"cg_gpu": "run_ranks.py", "hdg_gpu": "run_hdg_ranks.py", "sipg_gpu": "run_sipg_ranks.py"} | {
    "poly_gpu": "run_poly_ranks.py"
}
COUNTED = ("cells", "unknowns", "sizes")  # are equal
LEFT_OUT = ("bits", "empty", "balance")  # say something of the partition
OF_SOLUTION = ("L2", "H1", "star")  # errors carry the rounding of the solution
TOLERANCE = 1e-11


def main() -> int:
    """Run all, print a line a run, write the rows after each."""
    given = _parser().parse_args()
    rows: list[dict] = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for row in compared(pool, given):
            rows.append(row)
            print(f"  {row['part']:<10} {row['ranks']} ranks: {row['difference']:.1e} {row['of']}", flush=True)
            if given.json:
                rows.sort(key=lambda row: (given.parts.index(row["part"]), row["ranks"]))
                Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")
    wrong = [row for row in rows if not row["difference"] <= TOLERANCE]
    print(f"{len(rows)} runs, {len(wrong)} differ")
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-ranks", type=int, nargs="+", default=RANKS)
    parser.add_argument("-parts", nargs="+", default=[*STATES, "solutions"], choices=[*STATES, "solutions"])
    parser.add_argument("-jobs", type=int, default=1, help="runs at once")
    parser.add_argument("-json", default="")
    return parser


def compared(pool, given):
    """Rows, as their runs end; the run of each part that the others are compared with comes first."""
    run = {part: _solved if part == "solutions" else partial(_norms, part) for part in given.parts}
    first = {part: pool.submit(run[part], 1, 1) for part in given.parts}
    runs = {pool.submit(run[part], ranks, ranks + 1): (part, ranks) for ranks in given.ranks for part in given.parts}
    for done in as_completed(runs):
        part, ranks = runs[done]
        compare = _of_solutions if part == "solutions" else _of_states
        row = {"part": part, "ranks": ranks, "seed": ranks + 1}
        yield row | compare(first[part].result(), done.result())


def _of_states(first: dict, found: dict) -> dict:
    """The largest difference to one rank of all norms of a test's script."""
    difference, of, count = _largest(first, found)
    return {"difference": difference, "of": of, "norms": count}


def _norms(scheme: str, ranks: int, seed: int) -> dict:
    """What a test's script prints."""
    command = ["mpiexec", "-n", str(ranks), sys.executable, str(ROOT / "tests" / "problem" / STATES[scheme]), str(seed)]
    env = for_mpiexec(PYTHONPATH=os.pathsep.join((str(ROOT / "tests"), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=3600, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])[str(seed)]


def _largest(expected: dict, found: dict) -> tuple[float, str, int]:
    """Largest relative difference, what it is of, and how many norms were compared."""
    worst, of, count = 0.0, "", 0
    for case, values in expected.items():
        for name, value in values.items():
            if name in LEFT_OUT:
                continue
            count += 1
            if name in COUNTED:
                difference = 0.0 if found[case][name] == value else float("inf")
            else:
                scale = (
                    values["solution"] if name in OF_SOLUTION else values["residual"] if name.endswith("sum") else value
                )
                difference = abs(found[case][name] - value) / abs(scale)
            if not difference <= worst:
                worst, of = difference, f"{name} ({case})"
    return worst, of, count


def _solved(ranks: int, seed: int):
    """A run of `check` on rank_cases.py."""
    script = str(ROOT / "benchmarks" / "rank_cases.py")
    asked = argparse.Namespace(script=script, options=[], timeout=3600, random=seed)
    return check_script.Run.of(asked, ranks)


def _of_solutions(first, found) -> dict:
    """The largest difference of a norm of the solutions."""
    failure = first.failure or found.failure or check_script.differs(first.solutions, found.solutions)
    if failure:
        raise SystemExit(f"rank_cases.py on {found.ranks} ranks {failure}\n{first.said}\n{found.said}")
    difference, of = check_script.largest_difference(first.solutions, found.solutions)
    return {"difference": difference, "of": of, "norms": sum(len(s["norms"]) for s in found.solutions)}


if __name__ == "__main__":
    sys.exit(main())
