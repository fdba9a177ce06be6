"""Bad inputs end in one clear sentence, on one rank and, without hanging, on three."""

import re
from pathlib import Path

import pytest
from bad_inputs import BAD
from mpi4py import MPI

from petsc_hdg.errors import PetscHdgError

SCRIPT = Path(__file__).with_name("run_bad_inputs.py")


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name, tmp_path):
    attempt, pattern = BAD[name]
    with pytest.raises(PetscHdgError) as caught:
        attempt(MPI.COMM_SELF, tmp_path)
    message = str(caught.value)
    assert re.search(pattern, message), message
    assert "\n" not in message and message.endswith(".") and len(message) < 500


@pytest.mark.quick
def test_bad_inputs_on_three_ranks(mpirun):
    assert "errors agree" in mpirun(3, SCRIPT, timeout=200).stdout
