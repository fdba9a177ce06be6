"""One rank fails in one of many ways: the run ends, says it once with the rank, and not with status 0.

A short form of benchmarks/faults.py, whose program and expectations it takes; and of benchmarks/mutate.py, inputs that
are changed at random: a right answer or one sentence, and nothing else.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
GIVEN = Namespace(ranks=3, options=[], limit=200.0)
SAMPLE = ("no memory in the solve", "root of a negative number", "exception in a monitor of steps", "killed (SIGKILL)")
INPUTS = ("mesh:1010", "mesh:1049", "mesh:4", "physics:12", "polygons:3", "options:9", "checkpoint:0", "checkpoint:1")


@pytest.fixture(scope="module")
def scripts():
    """The two scripts as modules."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import faults
        import mutate
    finally:
        sys.path.remove(str(BENCHMARKS))
    return Namespace(faults=faults, mutate=mutate)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_fault_ends_the_run_with_one_sentence(scripts, name):
    found = scripts.faults.fault_run(name, GIVEN)
    assert not found["defect"], found


@pytest.mark.parametrize(
    ("end", "defect"),
    [
        ((None, "", "", 9.0), "did not end"),
        ((0, "NORM 1.0", "", 1.0), "went on"),
        ((0, "", "", 1.0), "exit status 0"),
        ((3, "", "", 1.0), "said 0 times"),
        ((3, "", 2 * "error: the program ends with status 3 while other ranks go on [rank 1]\n", 1.0), "said 2 times"),
        ((3, "", "error: the program ends with status 3 while other ranks go on [rank 1]\n", 1.0), ""),
    ],
)
def test_defects_are_noticed(scripts, monkeypatch, end, defect):
    monkeypatch.setattr(scripts.faults, "start", lambda *arguments: None)
    monkeypatch.setattr(scripts.faults, "finish", lambda process, limit: end)
    assert scripts.faults.fault_run("exit on a rank", GIVEN)["defect"] == defect


@pytest.mark.full
@pytest.mark.parametrize("case", INPUTS)
def test_a_mutated_input_is_refused_or_solved(scripts, case):
    kind, seed = case.split(":")
    found = scripts.mutate.run(kind, int(seed), limit=300.0)
    assert found["outcome"] in ("right", "refused"), found


def test_what_counts_as_a_defect(scripts):
    outcome = scripts.mutate.outcome
    assert outcome("mesh", None, None, [], "") == "hang" and outcome("mesh", -11, None, [], "") == "crash"
    assert (
        outcome("mesh", 1, None, [], "Traceback") == "trace"
        and outcome("mesh", 1, None, ["error: so"], "") == "refused"
    )
    assert (
        outcome("mesh", 0, {"error": 1e-3}, [], "") == "wrong"
        and outcome("mesh", 0, {"error": 1e-9}, [], "") == "right"
    )


def test_seeds_make_the_same_input_again(scripts, tmp_path):
    for kind in ("mesh", "physics", "polygons"):
        made = []
        for name in ("a", "b"):
            folder = tmp_path / f"{kind} {name}"
            folder.mkdir()
            scripts.mutate.prepare(kind, 3, folder)
            made.append(next(folder.iterdir()).read_bytes())
        assert made[0] == made[1]


def test_tables_are_counted_together(scripts):
    row = scripts.faults.row
    killed = [{"status": 137, "seconds": s, "said": "so", "defect": ""} for s in (3.0, 1.0)]
    hung = [{"status": None, "seconds": 9.0, "said": "", "defect": "did not end"}]
    tables = [{"ranks": 3, "rows": [row("a", killed), row("b", killed)]}, {"ranks": 3, "rows": [row("a", hung)]}]
    a, b = scripts.faults.merged(tables)["rows"]
    assert (a["runs"], a["seconds"], a["statuses"]) == (3, [1.0, 3.0, 9.0], ["137", "None"])
    assert a["defects"] == ["did not end"] and b == tables[0]["rows"][1]
