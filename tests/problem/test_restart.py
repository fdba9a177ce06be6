"""Interrupted runs of cg_gpu, in time, of Newton's method and of load steps, end where runs do that were left alone."""

import pytest
from restarts import assert_goes_on, assert_same_last_files, run_all

pytestmark = pytest.mark.full

WRITTEN = {  # case -> what its checkpoint says: kind, steps done, and steps of Newton's method or None
    "cg bdf": ("time", 6, None),
    "cg bdf 4, adaptive": ("time", 6, None),
    "cg bdf 6": ("time", 6, None),
    "cg theta": ("time", 6, None),
    "cg arkimex": ("time", (6, 9), None),  # its start makes two steps in PETSc 3.18
    "newton": ("newton", 0, 4),
    "loads": ("newton", 4, 2),
}


@pytest.fixture(scope="module")
def folder(mpirun, tmp_path_factory):
    return run_all(mpirun, tmp_path_factory.mktemp("restart"), WRITTEN)


@pytest.mark.parametrize("name", WRITTEN)
def test_goes_on_as_if_nothing_had_happened(folder, name):
    assert_goes_on(folder, name, WRITTEN[name])


@pytest.mark.parametrize("name", ["cg bdf", "newton"])
def test_last_files_are_the_same(folder, name):
    assert_same_last_files(folder, name)
