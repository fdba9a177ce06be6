"""Interrupted runs of the other schemes, and of slabs in time, end where runs do that were left alone."""

import pytest
from restarts import assert_goes_on, assert_same_last_files, run_all

pytestmark = pytest.mark.full

WRITTEN = {  # case -> what its checkpoint says: kind, steps done, and steps of Newton's method or None
    "hdg bdf": ("time", 6, None),
    "sipg bdf": ("time", 6, None),
    "poly bdf": ("time", 6, None),
    "slabs": ("slabs", 6, None),
    "hdg newton": ("newton", 0, 2),
    "hdg loads": ("newton", 4, 4),
}


@pytest.fixture(scope="module")
def folder(mpirun, tmp_path_factory):
    return run_all(mpirun, tmp_path_factory.mktemp("restart"), WRITTEN)


@pytest.mark.parametrize("name", WRITTEN)
def test_goes_on_as_if_nothing_had_happened(folder, name):
    assert_goes_on(folder, name, WRITTEN[name])


@pytest.mark.parametrize("name", ["slabs", "hdg newton"])
def test_last_files_are_the_same(folder, name):
    assert_same_last_files(folder, name)
