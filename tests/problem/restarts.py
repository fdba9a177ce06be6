"""Runs that were interrupted and go on from their checkpoints, beside runs that were left alone."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np

SCRIPT = Path(__file__).with_name("run_checkpoint.py")
RANKS, TOLERANCE = 2, 1e-10


def run_all(mpirun, folder: Path, names) -> Path:
    """Let all cases run alone, be interrupted, and go on, on as many ranks and on one less; their folder."""
    for ranks, modes in ((RANKS, "alone;interrupted;go_on"), (RANKS - 1, "go_on")):
        mpirun(ranks, SCRIPT, folder, modes, ";".join(names), timeout=400)
    return folder


def state(folder: Path, name: str, mode: str, ranks: int) -> np.ndarray:
    with h5py.File(folder / f"{name}.{mode}.{ranks}.h5") as file:
        return file["u"][...]


def assert_goes_on(folder: Path, name: str, written: tuple) -> None:
    """`written`: what the checkpoint says: kind, steps done (one of several numbers), Newton's steps or None."""
    with h5py.File(folder / f"{name}.h5") as file:
        about, interrupted = json.loads(file.attrs["about"]), file["u"][...]
    kind, step, newton = written
    assert (about["kind"], about["details"].get("newton")) == (kind, newton)
    assert about["step"] in np.atleast_1d(step)
    alone = state(folder, name, "alone", RANKS)
    assert np.abs(alone).max() > 0.01
    assert np.abs(interrupted - alone).max() > 1e-6 * np.abs(alone).max(), "the run was over before"
    assert state(folder, name, "go_on", RANKS).tobytes() == alone.tobytes()
    other = state(folder, name, "go_on", RANKS - 1)
    assert np.abs(other - alone).max() <= TOLERANCE * np.abs(alone).max()


def assert_same_last_files(folder: Path, name: str) -> None:
    with h5py.File(folder / f"{name}.alone.h5") as alone, h5py.File(folder / f"{name}.after.{RANKS}.h5") as after:
        assert alone.attrs["about"] == after.attrs["about"]
        assert all(alone[key][...].tobytes() == after[key][...].tobytes() for key in alone)
