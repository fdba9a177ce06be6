"""Under mpiexec: every bad input is the same one-sentence MeshError or OptionError on all ranks."""

import re
import tempfile
from pathlib import Path

from bad_inputs import BAD
from mpi4py import MPI

from petsc_hdg.errors import PetscHdgError

comm = MPI.COMM_WORLD
with tempfile.TemporaryDirectory() as mine:
    folder = Path(comm.bcast(mine))
    for name, (attempt, pattern) in BAD.items():
        if comm.rank == 0:
            print(name, flush=True)
        try:
            attempt(comm, folder)
            message = "accepted"
        except PetscHdgError as error:
            message = f"{type(error).__name__}: {error}"
        messages = set(comm.allgather(message))
        assert len(messages) == 1 and re.search(pattern, message) and "\n" not in message, f"{name}: {messages}"
    comm.barrier()
if comm.rank == 0:
    print("errors agree")
