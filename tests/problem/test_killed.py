"""A run whose ranks are killed (SIGKILL) and that is restarted ends as one that was left alone."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
RUN = ["-ranks", "2", "-steps", "60", "-kills", "2", "-others", "1", "-interval", "4", "-every", "4"]


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
    assert killed[1]["step"] > 0, "the second one comes after a checkpoint"


def test_memory_is_flat(found):
    rows = found[1]["alone"]["memory [step, host bytes, device bytes]"]
    assert rows[0][0] == 4 and rows[-1][0] == 60 and rows[-1][2] == rows[0][2] > 0


@pytest.fixture(scope="module")
def kill_restart():
    spec = importlib.util.spec_from_file_location("kill_restart", ROOT / "benchmarks" / "kill_restart.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_run_that_ended_before_its_kill_is_taken_back(kill_restart, monkeypatch, tmp_path):
    given = SimpleNamespace(kills=2, ranks=1, steps=60, interval=4, seed=1, folder=tmp_path / "runs")
    experiment = kill_restart.Experiment(given, [])
    file, steps, began, waits = experiment.folder / "b.h5", iter([8, 60, 12]), [], []

    def kill(command, wait, awaited, choice):
        began.append(int(file.read_text()) if file.exists() else 0)
        waits.append(awaited[1] if awaited else 0)
        file.write_text(str(step := next(steps)))
        return {"exit code": 137} if step < 60 else None

    monkeypatch.setattr(kill_restart, "_kill", kill)
    monkeypatch.setattr(kill_restart, "_finished", lambda command: "")
    monkeypatch.setattr(kill_restart, "_look", lambda path: {"intact": True, "step": int(path.read_text())})
    assert [row["step"] for row in experiment._killed(1.0)] == [8, 12]
    assert began == [0, 8, 8] and 8 < waits[2] < 60, "the second run began twice where the first was killed"


def test_a_launcher_without_ranks_is_ended(kill_restart, monkeypatch):
    monkeypatch.setattr(kill_restart, "PATIENCE", 2.0)
    launcher = "import subprocess, time; rank = subprocess.Popen(['sleep', '100']); time.sleep(100)"
    row = kill_restart._kill([sys.executable, "-c", launcher], 0.1, None, random.Random(0))
    assert row["exit code"] == -9 and "stayed behind" in row["launcher"] and row["seconds to end"] < 10
    two = launcher.replace("rank =", "other = subprocess.Popen(['sleep', '8']); rank =")
    with pytest.raises(SystemExit, match="go on 2 s after one of them was killed"):
        kill_restart._kill([sys.executable, "-c", two], 0.1, None, random.Random(0))
