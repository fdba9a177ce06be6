"""What happens when something goes wrong on one rank: `python benchmarks/faults.py [-repeat 20] [-ranks 3] [-jobs 1]`.

Each case of faulty.py is run again and again under mpiexec. A row says how all of its runs ended: exit status, seconds,
the one sentence (or the last line of the user's trace) and the rank that it names. A run that prints its error twice,
ends with status 0 or does not end within `-limit` seconds is a defect. Cases about the cache of kernels and about
checkpoints must end well: with the norm of the undisturbed run. `-json FILE` keeps the rows, `-only NAME` picks cases,
`-merge FILE ...` makes one table of those that are kept. All runs take their kernels from a cache of this table's own.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from petsc_hdg.commands.alone import ONE_THREAD, for_mpiexec

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
    return for_mpiexec(**{**ONE_THREAD, **more})


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
        (out, err), status = last_words(process), None
    return status, out.decode(errors="replace"), err.decode(errors="replace"), time.monotonic() - begin


def last_words(process) -> tuple[bytes, bytes]:
    """What a run has said that is ended, if need be by force."""
    try:
        return process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


def norm(out: str) -> float | None:
    found = re.search(r"NORM (\S+)", out)
    return float(found[1]) if found else None


def fault_run(name: str, given, **more) -> dict:
    """One run of a fault; `defect` says what was not as it must be."""
    statuses, pattern = FAULTS[name]
    status, out, err, seconds = finish(start(given.ranks, name, *given.options, **more), given.limit)
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


def checkpoint_run(given, right: float, **more) -> dict:
    """Rank 0 is killed while it writes the second checkpoint; the first is whole, and a run from it ends as it must."""
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "run.h5"
        often = ["-fe_checkpoint", str(path), "-fe_checkpoint_interval", "1"]
        killed = start(given.ranks, CHECKPOINT, "-victim", "0", *often, *given.options, **more)
        status, _, err, seconds = finish(killed, given.limit)
        defect = "" if status == 137 and "exited on signal 9" in err else f"exit status {status}: {err[-300:]}"
        restarted = start(given.ranks, "none", "-fe_restart", str(path), *given.options, **more)
        again = finish(restarted, given.limit)
        if not defect and (again[0] != 0 or norm(again[1]) != right):
            defect = f"restart: exit status {again[0]}, norm {norm(again[1])} instead of {right}: {again[2][-300:]}"
    return {"status": status, "seconds": seconds, "said": "restarted: the same norm, to the last bit", "defect": defect}


def row(name: str, runs: list[dict]) -> dict:
    """What the runs of a case did."""
    return {
        "case": name,
        "runs": len(runs),
        "statuses": sorted({str(run["status"]) for run in runs}),
        "seconds": sorted(round(run["seconds"], 1) for run in runs),
        "said": runs[0]["said"].strip()[:300],
        "defects": [run["defect"] for run in runs if run["defect"]],
    }


def merged(tables: list[dict]) -> dict:
    """One table of several: a case's runs are counted together."""
    rows: dict[str, dict] = {}
    for found in (one for table in tables for one in table["rows"]):
        old = rows.setdefault(found["case"], {**found, "runs": 0, "statuses": [], "seconds": [], "defects": []})
        old["runs"] += found["runs"]
        old["statuses"] = sorted({*old["statuses"], *found["statuses"]})
        old["seconds"] = sorted(old["seconds"] + found["seconds"])
        old["defects"] += found["defects"]
    return tables[0] | {"rows": list(rows.values())}


class Experiment:
    """The runs of a table, several at once; `kept` is the folder of the kernels that the undisturbed run has made."""

    def __init__(self, given, kept: Path):
        self.given, self.kept, self.begin, self.lock = given, kept, time.monotonic(), threading.Lock()
        self.names = [name for name in (*FAULTS, CHECKPOINT, *CACHES) if given.only in name]
        self.runs: dict[str, list[dict]] = {name: [] for name in self.names}
        self.cache = {"PETSC_HDG_CACHE": str(kept)}
        undisturbed = [finish(start(given.ranks, "none", *given.options, **self.cache), given.limit) for _ in range(2)]
        (status, out, err, _), (*_, self.seconds) = undisturbed
        self.right = norm(out)
        if status != 0 or self.right is None:
            raise SystemExit(f"the undisturbed run ended with status {status}:\n{err}")

    def run(self) -> dict:
        """All runs, and the table."""
        numbers = range(self.given.seed, self.given.seed + self.given.repeat)
        with ThreadPoolExecutor(self.given.jobs) as pool:
            list(pool.map(self._one, [(number, name) for number in numbers for name in self.names]))
        return self.table()

    def table(self) -> dict:
        rows = [row(name, found) for name, found in self.runs.items() if found]
        about = {"ranks": self.given.ranks, "jobs": self.given.jobs, "norm": self.right}
        return about | {"seconds_undisturbed": round(self.seconds, 2), "rows": rows}

    def _one(self, task: tuple[int, str]) -> None:
        number, name = task
        if time.monotonic() - self.begin > self.given.seconds:
            return
        if name in FAULTS:
            found = fault_run(name, self.given, **self.cache)
        elif name == CHECKPOINT:
            found = checkpoint_run(self.given, self.right, **self.cache)
        else:
            found = cache_run(name, number, self.given, self.kept, self.right)
        with self.lock:
            self.runs[name].append(found)
            keep(self.given.json, self.table())


def keep(path: str | None, found: dict) -> None:
    if path:
        Path(path).write_text(json.dumps(found, indent=1) + "\n")


def show(found: dict) -> bool:
    """Print a table; whether it has no defects."""
    for one in found["rows"]:
        median = statistics.median(one["seconds"])
        print(f"{one['case']:<34}{one['runs']:>4} {one['statuses']} {median:6.1f} s  {one['said']}"[:200])
        for defect in one["defects"]:
            print(f"    DEFECT: {defect}")
    return not any(one["defects"] for one in found["rows"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-repeat", type=int, default=20, help="runs of each case")
    parser.add_argument("-ranks", type=int, default=3)
    parser.add_argument("-jobs", type=int, default=1, help="runs at once")
    parser.add_argument("-limit", type=float, default=120.0, help="seconds that a run may take")
    parser.add_argument("-seconds", type=float, default=1e9, help="no run begins after so many seconds")
    parser.add_argument("-only", default="", help="cases whose names contain this")
    parser.add_argument("-seed", type=int, default=0, help="number of the first run, which draws what is damaged")
    parser.add_argument("-json", help="file for the rows")
    parser.add_argument("-merge", nargs="+", default=[], help="files of rows to show as one table; nothing is run")
    given, given.options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.merge:
            found = merged([json.loads(Path(path).read_text()) for path in given.merge])
        else:
            found = Experiment(given, Path(folder) / "kernels").run()
    keep(given.json, found)
    return int(not show(found))


if __name__ == "__main__":
    sys.exit(main())
