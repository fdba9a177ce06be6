"""Operations of ViennaCL vectors that PETSc 3.26 gets wrong, on one rank and on two."""

from __future__ import annotations

from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_viennacl.py")


@pytest.mark.requires_viennacl
@pytest.mark.parametrize("ranks", [1, 2])
def test_vectors_keep_their_values(mpirun, ranks):
    assert mpirun(ranks, SCRIPT, timeout=240).stdout.split()[-2:] == ["the", "same"]
