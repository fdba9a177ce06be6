"""The order of unknowns in checkpoints depends on places alone, not on ranks, partitions and numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from run_canonical import MIXED, SCHEMES
from sample_meshes import SHAPES

SCRIPT = Path(__file__).with_name("run_canonical.py")
CASES = [f"{cell} {scheme}" for cell in SHAPES for scheme in SCHEMES] + [f"{mesh} cg_gpu" for mesh in MIXED]


@pytest.fixture(scope="module")
def found(mpirun, tmp_path_factory):
    """Arrays and digests by ranks."""
    folder = tmp_path_factory.mktemp("canonical")
    for ranks, seed in ((1, 1), (3, 2), (5, 7)):
        mpirun(ranks, SCRIPT, folder / f"{ranks}.npz", seed)
    return {ranks: np.load(folder / f"{ranks}.npz") for ranks in (1, 3, 5)}


@pytest.mark.parametrize("case", CASES)
def test_order(found, case):
    alone = found[1][case]
    assert np.ptp(alone) > 0.1 and len(set(found[1][f"{case} digests"])) == 2
    for ranks in (3, 5):
        assert np.abs(found[ranks][case] - alone).max() < 1e-13
        assert np.array_equal(found[ranks][f"{case} digests"], found[1][f"{case} digests"])


def test_digests_tell_meshes_and_unknowns_apart(found):
    digests = [tuple(found[1][f"{case} digests"]) for case in CASES]
    assert len({both[0] for both in digests}) == len(CASES)
    assert len({both[1] for both in digests}) >= len(SHAPES)
