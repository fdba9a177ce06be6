"""How scripts end when only one rank fails: it speaks, and no other rank waits for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = f"""
import sys, petsc4py
sys.path.insert(0, {str(ROOT)!r})
petsc4py.init(sys.argv)
import petsc_hdg as fe
from mpi4py import MPI

@fe.main
def main():
    if MPI.COMM_WORLD.rank == 1:
        raise {{error}}
    MPI.COMM_WORLD.Barrier()
"""


@pytest.mark.parametrize(
    "error, said", [("fe.MeshError('only here')", "error: only here"), ("ValueError('other')", "ValueError: other")]
)
def test_one_rank_that_fails_ends_all(mpirun, tmp_path, error, said):
    script = tmp_path / "one_fails.py"
    script.write_text(SCRIPT.format(error=error))
    done = mpirun(3, script, check=False, timeout=60)
    assert done.returncode != 0
    assert done.stderr.count(said) == 1
