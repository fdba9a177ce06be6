"""How scripts end when only one rank fails: it speaks, with its number, and no other rank waits for ever."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAD = f"""
import sys, time, petsc4py
sys.path.insert(0, {str(ROOT)!r})
petsc4py.init(sys.argv)
import petsc_hdg as fe
from petsc_hdg import run
from petsc_hdg.errors import collectively
from mpi4py import MPI
comm, run.PATIENCE = MPI.COMM_WORLD, {{patience}}
"""
DECORATED = (
    HEAD
    + """
@fe.main
def main():
    print("before the end")
    comm.Barrier()
    {body}
"""
)
PLAIN = (
    HEAD
    + """
{body}
"""
)
LONELY = """
    if comm.rank in {ranks}:
        {what}
    comm.Barrier()
"""
# name → (where, what it raises, text of stderr, how often; exit status)
CASES = {
    "our error on one rank": (
        DECORATED, LONELY.format(ranks=[1], what="raise fe.MeshError('only here')"), "error: only here [rank 1]", 1
    ),
    "another error on one rank": (
        DECORATED, LONELY.format(ranks=[2], what="raise ValueError('other')"), "ValueError: other", 1
    ),
    "two ranks of three": (
        DECORATED, LONELY.format(ranks=[1, 2], what="raise fe.MeshError('both')"), "error: both [rank 1]", 1
    ),
    "an exit on one rank": (
        DECORATED, LONELY.format(ranks=[1], what="sys.exit(3)"), "the program ends with status 3 while other ranks", 3
    ),
    "the others are done": (
        DECORATED, "assert comm.rank != 2, 'late'", "AssertionError: late", 1
    ),
    "all ranks": (DECORATED, "raise fe.MeshError('together')", "error: together\n", 1),
    "agreed": (
        DECORATED, "with collectively(comm):\n        if comm.rank == 2: raise fe.MeshError('mine')",
        "error: mine [rank 2]", 1,
    ),
    "agreed, with the trace of the rank where it began": (
        DECORATED, "with collectively(comm):\n        if comm.rank == 2: [][3]", "IndexError: list", 1
    ),
    "a script without main": (PLAIN, LONELY.format(ranks=[1], what="[][3]").replace("\n    ", "\n"), "IndexError", 1),
    "a script without main, all ranks": (PLAIN, "raise fe.MeshError('together')", "MeshError: together", 1),
}  # fmt: skip


@pytest.mark.quick
@pytest.mark.parametrize("name", CASES)
def test_how_ranks_that_fail_end(mpirun, tmp_path, name):
    form, body, said, status = CASES[name]
    script = tmp_path / "fails.py"
    lonely = "agreed" in name or "all ranks" not in name
    script.write_text(form.format(body=body.strip(), patience=60.0 if "agreed" in name or not lonely else 1.0))
    done = mpirun(3, script, check=False, timeout=60)
    assert done.returncode == status
    assert done.stderr.count(said) == 1, done.stderr
    assert form is PLAIN or done.stdout.count("before the end") == 3
    assert ("[rank " in done.stderr) == lonely


@pytest.mark.quick
def test_a_rank_may_end_early_with_status_zero(mpirun, tmp_path):
    script = tmp_path / "early.py"
    script.write_text(
        DECORATED.format(body="if comm.rank == 1: sys.exit()\n    time.sleep(2.0)\n    print('done')", patience=1.0)
    )
    done = mpirun(3, script, timeout=60)
    assert done.stdout.count("done") == 2


PIPED = {
    "PETSc": "fe.Options\nfor _ in range(9**5): PETSc.Sys.Print('x')",
    "print": "@fe.main\ndef main():\n    for _ in range(9**5): print('x')",
}


@pytest.mark.parametrize("by", PIPED)
def test_a_closed_pipe_ends_a_script_without_a_word(tmp_path, by):
    """As in `script.py | head -1`."""
    path = tmp_path / "script.py"
    path.write_text(PLAIN.format(patience=1, body="from petsc4py import PETSc\n" + PIPED[by]))
    process = subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"x\n"
    process.stdout.close()
    assert (process.stderr.read(), process.wait(60)) == (b"", -signal.SIGPIPE)
    process.stderr.close()
