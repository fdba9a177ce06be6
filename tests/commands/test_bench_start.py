"""`bench start`: a first solve with an empty cache, and with a full one."""

from __future__ import annotations

import json

import pytest
from bench import start

pytestmark = pytest.mark.full


def test_a_full_cache_saves_the_compilation(mpirun, tmp_path):
    path = tmp_path / "rows.json"
    done = mpirun(1, "benchmarks/bench", "start", "-schemes", "cg_gpu", "-fe_degree", "1", "-json", path)
    assert all(name in done.stdout for name in start.COLUMNS)
    empty, full = json.loads(path.read_text())
    assert (empty["cache"], full["cache"]) == ("empty", "full")
    for row in (empty, full):
        assert row["scheme"] == "cg_gpu" and row["degree"] == 1 and row["error"] < 1e-8
        assert row["programs"] == empty["programs"] >= 4
        assert 0 < sum(row["seconds"].values()) < row["total"]
    first, second = (row["seconds"]["compile"] for row in (empty, full))
    assert second < first


def test_a_failure_says_why(mpirun):
    options = ["-schemes", "cg_gpu", "-fe_device", "none of these"]
    done = mpirun(1, "benchmarks/bench", "start", *options, check=False)
    assert done.returncode == 1 and "no OpenCL device matches 'none of these'" in done.stderr


def test_misspelt_options_say_so(mpirun):
    done = mpirun(2, "benchmarks/bench", "start", "-backend", "cg_gpu", check=False)
    said = "-backend is not an option of bench start; known are -h, -schemes"
    assert done.returncode == 1 and done.stderr.count(said) == 1 and "-once" not in done.stderr
