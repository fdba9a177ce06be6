"""Runs that were interrupted and go on from their checkpoints end where runs do that were left alone."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

SCRIPT = Path(__file__).parents[1] / "run_checkpoint.py"
RANKS, TOLERANCE = 2, 1e-10
WRITTEN = {  # case -> what its checkpoint says: kind, steps done, and steps of Newton's method or None
    "cg bdf": ("time", 6, None),
    "cg bdf 4, adaptive": ("time", 6, None),
    "cg theta": ("time", 6, None),
    "cg arkimex": ("time", (6, 9), None),  # its start makes two steps in PETSc 3.18
    "hdg bdf": ("time", 6, None),
    "sipg bdf": ("time", 6, None),
    "poly bdf": ("time", 6, None),
    "newton": ("newton", 0, 4),
    "loads": ("newton", 4, 2),
    "slabs": ("slabs", 6, None),
    "hdg newton": ("newton", 0, 2),
    "hdg loads": ("newton", 4, 2),
}


@pytest.fixture(scope="module")
def folder(mpirun, tmp_path_factory):
    """Where all cases have run alone, been interrupted, and gone on, on as many ranks and on one less."""
    found = tmp_path_factory.mktemp("restart")
    for ranks, modes in ((RANKS, "alone;interrupted;go_on"), (RANKS - 1, "go_on")):
        mpirun(ranks, SCRIPT, found, modes, ";".join(WRITTEN), timeout=400)
    return found


def state(folder: Path, name: str, mode: str, ranks: int) -> np.ndarray:
    with h5py.File(folder / f"{name}.{mode}.{ranks}.h5") as file:
        return file["u"][...]


@pytest.mark.parametrize("name", WRITTEN)
def test_goes_on_as_if_nothing_had_happened(folder, name):
    with h5py.File(folder / f"{name}.h5") as file:
        about = json.loads(file.attrs["about"])
    kind, step, newton = WRITTEN[name]
    assert (about["kind"], about["details"].get("newton")) == (kind, newton)
    assert about["step"] in np.atleast_1d(step)
    alone = state(folder, name, "alone", RANKS)
    assert np.abs(alone).max() > 0.01
    with h5py.File(folder / f"{name}.h5") as file:
        assert np.abs(file["u"][...] - alone).max() > 1e-6 * np.abs(alone).max(), "the run was over before"
    assert state(folder, name, "go_on", RANKS).tobytes() == alone.tobytes()
    other = state(folder, name, "go_on", RANKS - 1)
    assert np.abs(other - alone).max() <= TOLERANCE * np.abs(alone).max()


@pytest.mark.parametrize("name", ["cg bdf", "newton", "slabs", "hdg newton"])
def test_last_files_are_the_same(folder, name):
    with h5py.File(folder / f"{name}.alone.h5") as alone, h5py.File(folder / f"{name}.after.{RANKS}.h5") as after:
        assert alone.attrs["about"] == after.attrs["about"]
        assert all(alone[key][...].tobytes() == after[key][...].tobytes() for key in alone)
