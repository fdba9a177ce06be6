"""Under mpiexec: every bad input is the same one-sentence error on all ranks."""

import re
import tempfile
from pathlib import Path

from bad_input_given import BAD_GIVEN, ON_RANKS
from bad_input_table import BAD
from mpi4py import MPI

from petsc_hdg.errors import PetscHdgError
from petsc_hdg.run import guarded


def main() -> None:
    comm, wrong = MPI.COMM_WORLD, []
    with tempfile.TemporaryDirectory() as mine:
        folder = Path(comm.bcast(mine))
        for name, (attempt, pattern) in BAD.items():
            if name in BAD_GIVEN and name not in ON_RANKS:
                continue
            if comm.rank == 0:
                print(name, flush=True)
            messages = set(comm.allgather(outcome(attempt, comm, folder)))
            if len(messages) != 1 or not re.search(pattern, min(messages)) or "\n" in min(messages):
                wrong.append((name, messages))
        comm.barrier()
    assert not wrong, wrong
    if comm.rank == 0:
        print("errors agree")


def outcome(attempt, comm, folder) -> str:
    try:
        attempt(comm, folder)
        return "accepted"
    except PetscHdgError as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    guarded(main)
