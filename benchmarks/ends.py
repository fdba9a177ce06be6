"""Ends of programs on 1 to 4 ranks, at random: `python benchmarks/ends.py [-count 200] [-seed 0] [-jobs 1]`.

A run is tests/problem/run_ends.py: problems of some schemes, on all ranks and on each one, in two or three dimensions,
from one cell on, and a way to end. A run is bad that does not end within `-limit` seconds, dies by a signal, complains
without a cause, or, if it is to fail, does not say so once. `-case SEED` shows one run, `-json FILE` keeps all.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from faults import environment, finish

PROGRAM = Path(__file__).resolve().parents[1] / "tests" / "problem" / "run_ends.py"
SCHEMES = ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")
# way to end: exit statuses accepted, and what is said, once
WAYS = {"given up": ((0,), ""), "kept": ((0,), ""), "alone": ((0,), ""), "raised": ((1,), "ValueError: on all ranks")}
WAYS |= {"raised on one": ((1,), "ValueError: on one rank"), "exit": ((0,), "")}
WAYS |= {"interrupted": ((1, 2, 130), "\nKeyboardInterrupt\n")}
WORDS = re.compile("Traceback|error: |ERROR|[Ss]ignal|Segmentation|Fatal")  # MPI may have remarks of its own


def case(seed: int) -> list[str]:
    """Ranks, way to end and further arguments of a run."""
    rng = random.Random(f"ends {seed}")
    schemes = rng.sample(SCHEMES, rng.choice((1, 1, 2, 4)))
    faces = rng.choice(("1,1", "2,1", "12,1", "4,3", "1,1,1", "2,1,2"))
    ranks, way = rng.choice("1234"), rng.choice(tuple(WAYS))
    more = ["-fe_degree", rng.choice("112"), "-simplex", rng.choice("01"), *rng.choice(((), ("-in_time",)))]
    return [ranks, way, ",".join(schemes), "-faces", faces, *more]


def run(seed: int, limit: float) -> dict:
    """A run: what it was, how it ended, and what is bad about it."""
    ranks, way, *more = case(seed)
    command = ["mpiexec", "-n", ranks, sys.executable, PROGRAM, way, *more]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment()
    )
    status, out, err, seconds = finish(process, limit)
    (statuses, says), solved = WAYS[way], out.count("solved")
    bad = ""
    if status is None:
        bad = "did not end"
    elif status not in statuses or (solved != int(ranks) and way != "raised on one"):
        bad = f"exit status {status}, {solved} of {ranks} ranks came to the end"
    elif (err.count(says) != 1) if says else WORDS.search(err):
        bad = "said " + (f"'{says.strip()}' {err.count(says)} times" if says else "something")
    about = {"seed": seed, "ranks": int(ranks), "way": way, "more": more}
    return about | {"status": status, "seconds": round(seconds, 1), "bad": bad, "said": err[-2000:] if bad else ""}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-count", type=int, default=200)
    parser.add_argument("-seed", type=int, default=0, help="first seed")
    parser.add_argument("-jobs", type=int, default=1, help="runs at once")
    parser.add_argument("-limit", type=float, default=200.0, help="seconds that a run may take")
    parser.add_argument("-seconds", type=float, default=1e9, help="no run begins after so many seconds")
    parser.add_argument("-json", help="file that keeps the rows")
    parser.add_argument("-case", type=int, help="one seed, shown in full")
    given = parser.parse_args()
    if given.case is not None:
        print(json.dumps(run(given.case, given.limit), indent=1))
        return 0
    begin, rows = time.monotonic(), []

    def one(seed: int) -> dict | None:
        return run(seed, given.limit) if time.monotonic() - begin < given.seconds else None

    with ThreadPoolExecutor(given.jobs) as pool:
        for done in as_completed([pool.submit(one, seed) for seed in range(given.seed, given.seed + given.count)]):
            row = done.result()
            if row:
                rows.append(row)
            if row and row["bad"]:
                print(f"{row['seed']}: {row['ranks']} ranks, {row['way']}, {row['more']}: {row['bad']}", flush=True)
            if given.json:
                Path(given.json).write_text(json.dumps({"rows": rows}, indent=1))
    for what in ("ranks", "way"):
        counts = Counter((row[what], bool(row["bad"])) for row in rows)
        names = sorted({name for name, _ in counts})
        print(what + ": " + ", ".join(f"{name} {counts[name, False]} good {counts[name, True]} bad" for name in names))
    bad = sum(bool(row["bad"]) for row in rows)
    print(f"{len(rows)} ends, {bad} bad, the longest in {max((row['seconds'] for row in rows), default=0)} s")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
