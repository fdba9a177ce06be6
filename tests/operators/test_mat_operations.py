"""Shell matrices: each operation of PETSc's on them is right, or refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from mat_operations import CASES, check
from petsc4py import PETSc

SCRIPT = Path(__file__).with_name("run_mat_operations.py")


@pytest.mark.parametrize("case", CASES)
def test_operations_agree_with_aij(case):
    check(case, PETSc.COMM_SELF)


def test_operations_agree_with_aij_on_ranks(mpirun):
    assert "matrix operations agree" in mpirun(3, SCRIPT).stdout
