"""PETSc's viewers of vectors show every scheme's solution, essential values included, or refuse in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.quick), 3])
def test_viewers_are_right_or_refuse(mpirun, tmp_path, ranks):
    mpirun(ranks, Path(__file__).with_name("run_viewers.py"), tmp_path)
