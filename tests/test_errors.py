"""Errors are agreed by all ranks, within blocks of blocks too; an error of one agreement is none of another."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpi4py import MPI

from petsc_hdg.errors import MeshError, collectively, our_error


@pytest.mark.parametrize("ranks", [1, 3])
def test_blocks_within_one_another(mpirun, ranks):
    done = mpirun(ranks, Path(__file__).with_name("run_agreement.py"), timeout=60)
    assert done.stdout.count("agreed") == ranks


def test_an_error_that_all_ranks_raise_names_none():
    with pytest.raises(MeshError) as caught, collectively(MPI.COMM_SELF):
        raise MeshError("here")
    assert caught.value.failed_rank is None and caught.value.agreed_on == MPI.COMM_SELF.py2f()


def test_an_error_raised_while_one_is_handled_is_agreed_anew():
    asked = []

    class Counted:
        rank, size = 0, 1

        def allgather(self, value):
            asked.append(value)
            return [value]

        def py2f(self):
            return 7

    with pytest.raises(ValueError), collectively(Counted()):
        try:
            with collectively(Counted()):
                raise MeshError("first")
        except MeshError as error:
            raise ValueError("second") from error
    assert [kind.__name__ for kind, _ in asked] == ["MeshError", "PetscHdgError"]


def test_our_error_is_found_behind_others():
    inner = MeshError("inside")
    try:
        try:
            raise inner
        except MeshError as error:
            raise RuntimeError("wrapped") from error
    except RuntimeError as outer:
        assert our_error(outer) is inner
    assert our_error(ValueError("alone")) is None
