"""All papers' scripts one after the other, each with a share of the time.

    python benchmarks/papers/all.py                                                     `make papers`
    python benchmarks/papers/all.py -fe_device gpu -scale gpu -budget 180 -results benchmarks/results/papers_h100
    python benchmarks/papers/all.py -only-papers gorlani,king -scale full

-budget SECONDS ends the run: what a script leaves goes to the next ones, and one that runs over its share begins no row
and is stopped in the end. Rows are on disk as they come; -resume goes on with them. Other options go to the scripts.
With results in benchmarks/results the page docs/papers.md is written anew.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER.parent / "results"
# Shares of the time, in the order in which they run.
SHARES = {"roca": 2, "knepley": 4, "king": 5, "gorlani": 5, "dong": 4}
TIMED_OUT = 124  # exit code of a script that was stopped, or had no time left
START = 8.0  # seconds that the start of a script and its last row may take


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-budget", type=float, default=None, help="seconds of the whole run")
    parser.add_argument("-only-papers", default=",".join(SHARES), help="names of scripts, with commas")
    parser.add_argument("-results", default=str(RESULTS / "papers"), help="folder that receives the JSON files")
    given, others = parser.parse_known_args()
    papers, begun, codes = given.only_papers.split(","), time.perf_counter(), {}
    for k, paper in enumerate(papers):
        command = [sys.executable, str(FOLDER / f"{paper}.py"), "-results", given.results, *others]
        start, limit = time.perf_counter(), None
        if given.budget is not None:
            limit = left = given.budget - (start - begun)
            share = left * SHARES[paper] / sum(SHARES[p] for p in papers[k:])
            command += ["-seconds", f"{max(0.0, share - START):.0f}"]
        try:
            codes[paper] = (
                subprocess.run(command, timeout=limit).returncode if limit is None or limit > 0 else TIMED_OUT
            )
        except subprocess.TimeoutExpired:
            codes[paper] = TIMED_OUT
        print(f"{paper}: {time.perf_counter() - start:.0f} s, exit code {codes[paper]}", flush=True)
    print(f"all papers: {time.perf_counter() - begun:.0f} s", flush=True)
    if Path(given.results).resolve().is_relative_to(RESULTS):
        subprocess.run([sys.executable, str(FOLDER.parent / "papers_page.py")], check=True)
    return max(codes.values())


if __name__ == "__main__":
    sys.exit(main())
