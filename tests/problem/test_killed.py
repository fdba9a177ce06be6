"""A run whose ranks are killed (SIGKILL) and that is restarted ends as one that was left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN = ["-ranks", "2", "-steps", "40", "-kills", "2", "-others", "1", "-interval", "4", "-every", "4"]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    script, files = str(ROOT / "benchmarks" / "kill_restart.py"), ["-folder", str(folder / "runs")]
    command = [sys.executable, script, *RUN, *files, "-json", str(folder / "found.json"), "-pc_type", "jacobi"]
    # An explicit environment leaves out what MPI put into this process's own.
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=dict(os.environ), timeout=400)
    assert (folder / "found.json").exists(), done.stdout + done.stderr
    return done, json.loads((folder / "found.json").read_text())


def test_ends_as_left_alone(found):
    done, result = found
    assert done.returncode == 0 and result["ok"] and result["same bits"] and result["same files"], done.stdout
    assert [row["ranks"] for row in result["others"]] == [1] and result["others"][0]["difference"] <= 1e-10


def test_checkpoints_are_whole(found):
    killed = found[1]["killed"]
    assert len(killed) == 2 and all(row["intact"] and row["exit code"] not in (0, None) for row in killed)
    assert all(row["seconds to end"] < 30 for row in killed)
    assert 0 < killed[1]["step"] < 40, "the second one comes after a checkpoint"


def test_memory_is_flat(found):
    rows = found[1]["alone"]["memory [step, host bytes, device bytes]"]
    assert rows[0][0] == 4 and rows[-1][0] == 40 and rows[-1][2] == rows[0][2] > 0
