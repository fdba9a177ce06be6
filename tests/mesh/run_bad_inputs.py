"""Under mpiexec: every bad input is a one-sentence error on all ranks."""

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
        for said in set(comm.allgather(message)):
            assert re.search(pattern, said) and "\n" not in said, f"{name}: {said}"
    comm.barrier()
if comm.rank == 0:
    print("errors agree")
