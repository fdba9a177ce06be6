"""What happens when something goes wrong on one rank: `python benchmarks/faults.py [-repeat 20] [-ranks 3] [-jobs 1]`.

Each case of faulty.py is run again and again under mpiexec. A row says how all of its runs ended: exit status, seconds,
the one sentence (or the last line of the user's trace) and the rank that it names. A run that prints its error twice,
ends with status 0 or does not end within `-limit` seconds is a defect. Cases about the cache of kernels and about
checkpoints must end well: with the norm of the undisturbed run. `-json FILE` keeps the rows, `-only NAME` picks cases.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PROGRAM = Path(__file__).with_name("faulty.py")
# name → (exit statuses accepted, text of the error, whether a rank is named)
FAULTS = {
    "build failure": ((1,), r"error: kernel '\w+' does not compile(?:.|\n)*?\[rank 1\]"),
    "no memory for the operator": ((1,), r"error: .* has no room for .* use at least .* \[rank 1\]"),
    "no memory in the solve": ((1,), r"error: .* has no room for .* \[rank 1\]"),
    "NaN in an auxiliary field": (
        (1,),
        r"error: the function for auxiliary field 'kappa' has the value nan .*\[rank 1\]",
    ),
    "NaN in coordinates": ((1,), r"error: Cell .* is degenerate .*\[rank 1\]|error: .*not finite.*\[rank 1\]"),
    "root of a negative number": (
        (1,),
        r"error: .*the residual is not a finite number .* on rank 1 in the cell around",
    ),
    "exception in a function of x": ((1,), r"ValueError: the user's own mistake"),
    "exception in a monitor of steps": ((1,), r"ValueError: the user's own mistake"),
    "exception in a monitor of SNES": ((1,), r"ValueError: the user's own mistake"),
    "exception in a monitor of KSP": ((1,), r"ValueError: the user's own mistake"),
    "exception in a preconditioner": ((1,), r"ValueError: the user's own mistake"),
    "exit on a rank": ((3,), r"error: the program ends with status 3 while other ranks go on \[rank 1\]"),
    "interrupted (SIGINT)": ((1,), r"KeyboardInterrupt"),
    "killed (SIGKILL)": ((137,), r"exited on signal 9"),
    "segmentation fault": ((59, 139), r"Caught signal number 11"),
}
CHECKPOINT = "killed in a checkpoint"
CACHES = ("cache cut", "cache flipped", "cache of two jobs", "cache not writable")


def environment(**more) -> dict:
    given = {"POCL_MAX_PTHREAD_COUNT": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    given |= {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
    if os.geteuid() == 0:
        given |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**os.environ, **given, **more}


def start(ranks: int, fault: str, *options, **more):
    command = ["mpiexec", "-n", str(ranks), sys.executable, str(PROGRAM), fault, *options]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment(**more)
    )


def finish(process, limit: float) -> tuple[int | None, str, str, float]:
    """Status (None: it did not end), stdout, stderr, seconds."""
    begin = time.monotonic()
    try:
        out, err = process.communicate(timeout=limit)
        status = process.returncode
    except subprocess.TimeoutExpired:
        process.terminate()
        (out, err), status = process.communicate(timeout=30), None
    return status, out.decode(errors="replace"), err.decode(errors="replace"), time.monotonic() - begin


def norm(out: str) -> float | None:
    found = re.search(r"NORM (\S+)", out)
    return float(found[1]) if found else None


def fault_run(name: str, given) -> dict:
    """One run of a fault; `defect` says what was not as it must be."""
    statuses, pattern = FAULTS[name]
    status, out, err, seconds = finish(start(given.ranks, name, *given.options), given.limit)
    said = [found[0] for found in re.finditer(pattern, err)]
    defect = ""
    if status is None:
        defect = "did not end"
    elif status not in statuses:
        defect = f"exit status {status}"
    elif len(said) != 1:
        defect = f"said {len(said)} times"
    elif "ValueError" in pattern or "Interrupt" in pattern:
        defect = "" if err.count("error [rank 1]:") == 1 else "no rank named"
    if norm(out) is not None:
        defect = "went on"
    return {"status": status, "seconds": seconds, "said": said[0] if said else err[-600:], "defect": defect}


def damage(folder: Path, how: str, rng: random.Random) -> None:
    """Cut or change files of every program in the cache."""
    for path in folder.glob("*/*"):
        content = path.read_bytes()
        if not content or path.name == "program.cl":
            continue
        place = rng.randrange(len(content))
        if how == "cache cut":
            path.write_bytes(content[:place])
        else:
            path.write_bytes(content[:place] + bytes([content[place] ^ (1 << rng.randrange(8))]) + content[place + 1 :])


def cache_run(name: str, number: int, given, kept: Path, right: float) -> dict:
    """One run with a cache that is damaged, shared by two jobs from its beginning, or not to be written."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "kernels"
        if name == "cache not writable":
            Path(temporary, "file").touch()
            folder = Path(temporary) / "file" / "kernels"
        elif name != "cache of two jobs":
            shutil.copytree(kept, folder)
            damage(folder, name, random.Random(f"{name} {number}"))
        begin = time.monotonic()
        jobs = [start(given.ranks, "none", *given.options, PETSC_HDG_CACHE=str(folder))]
        if name == "cache of two jobs":
            jobs.append(start(given.ranks, "none", *given.options, PETSC_HDG_CACHE=str(folder)))
        ends = [finish(job, given.limit) for job in jobs]
        seconds = time.monotonic() - begin
    defect = ""
    for status, out, err, _ in ends:
        if status != 0:
            defect = f"exit status {status}: {err[-300:]}"
        elif norm(out) != right:
            defect = f"norm {norm(out)} instead of {right}"
    return {"status": ends[0][0], "seconds": seconds, "said": "the same norm, to the last bit", "defect": defect}


def checkpoint_run(given, right: float) -> dict:
    """Rank 0 is killed while it writes the second checkpoint; the first is whole, and a run from it ends as it must."""
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "run.h5"
        often = ["-fe_checkpoint", str(path), "-fe_checkpoint_interval", "1"]
        killed = start(given.ranks, CHECKPOINT, "-victim", "0", *often, *given.options)
        status, _, err, seconds = finish(killed, given.limit)
        defect = "" if status == 137 and "exited on signal 9" in err else f"exit status {status}: {err[-300:]}"
        again = finish(start(given.ranks, "none", "-fe_restart", str(path), *given.options), given.limit)
        if not defect and (again[0] != 0 or norm(again[1]) != right):
            defect = f"restart: exit status {again[0]}, norm {norm(again[1])} instead of {right}: {again[2][-300:]}"
    return {"status": status, "seconds": seconds, "said": "restarted: the same norm, to the last bit", "defect": defect}


def row(name: str, runs: list[dict]) -> dict:
    seconds = [run["seconds"] for run in runs]
    return {
        "case": name,
        "runs": len(runs),
        "statuses": sorted({str(run["status"]) for run in runs}),
        "seconds_median": round(statistics.median(seconds), 2),
        "seconds_most": round(max(seconds), 2),
        "said": runs[0]["said"].strip()[:300],
        "defects": [run["defect"] for run in runs if run["defect"]],
    }


def table(runs: dict[str, list[dict]], given, right: float, seconds: float) -> dict:
    rows = [row(name, found) for name, found in runs.items() if found]
    return {"ranks": given.ranks, "jobs": given.jobs, "norm": right, "seconds_undisturbed": seconds, "rows": rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-repeat", type=int, default=20, help="runs of each case")
    parser.add_argument("-ranks", type=int, default=3)
    parser.add_argument("-jobs", type=int, default=1, help="runs at once")
    parser.add_argument("-limit", type=float, default=120.0, help="seconds that a run may take")
    parser.add_argument("-seconds", type=float, default=1e9, help="no run begins after so many seconds")
    parser.add_argument("-only", default="", help="cases whose names contain this")
    parser.add_argument("-json", help="file for the rows")
    given, given.options = parser.parse_known_args()
    names = [name for name in (*FAULTS, CHECKPOINT, *CACHES) if given.only in name]
    runs: dict[str, list[dict]] = {name: [] for name in names}
    begin = time.monotonic()

    def one(task: tuple[int, str]) -> None:
        number, name = task
        if time.monotonic() - begin < given.seconds:
            if name in FAULTS:
                found = fault_run(name, given)
            elif name == CHECKPOINT:
                found = checkpoint_run(given, right)
            else:
                found = cache_run(name, number, given, kept, right)
            runs[name].append(found)
            if given.json:
                Path(given.json).write_text(json.dumps(table(runs, given, right, seconds), indent=1))

    with tempfile.TemporaryDirectory() as temporary:
        kept = Path(temporary) / "kernels"
        status, out, err, seconds = finish(
            start(given.ranks, "none", *given.options, PETSC_HDG_CACHE=str(kept)), given.limit
        )
        right = norm(out)
        assert status == 0 and right is not None, err
        with ThreadPoolExecutor(given.jobs) as pool:
            list(pool.map(one, [(number, name) for number in range(given.repeat) for name in names]))
    found = table(runs, given, right, seconds)
    for one_row in found["rows"]:
        print("{case:<34}{runs:>4} {statuses} {seconds_median:6.1f} s  {said}".format(**one_row)[:200])
        for defect in one_row["defects"]:
            print(f"    DEFECT: {defect}")
    return int(any(one_row["defects"] for one_row in found["rows"]))


if __name__ == "__main__":
    sys.exit(main())
