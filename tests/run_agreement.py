"""Under mpiexec: blocks of `collectively` within one another end alike on all ranks, wherever one rank fails."""

from __future__ import annotations

from mpi4py import MPI

from petsc_hdg.errors import MeshError, PetscHdgError, collectively
from petsc_hdg.run import guarded

PLACES = ("before", "inner", "deepest", "between", "after", "outside")


def work(comm, fails_at: str, rank: int, kind) -> None:
    """Nested blocks, of which one rank leaves one early."""

    def pass_by(place: str) -> None:
        if place == fails_at and comm.rank == rank:
            raise kind(f"{place} on {rank}")

    with collectively(comm):
        pass_by("before")
        with collectively(comm):
            pass_by("inner")
            with collectively(comm):
                pass_by("deepest")
        pass_by("between")
        with collectively(comm):
            pass
        pass_by("after")
    with collectively(comm):
        pass_by("outside")


def main() -> None:
    comm = MPI.COMM_WORLD
    for place in PLACES:
        for rank in range(comm.size):
            for kind in (MeshError, ValueError):
                check(comm, place, rank, kind)
    comm.barrier()
    work(comm, "nowhere", 0, MeshError)
    print("agreed", flush=True)


def check(comm, place: str, rank: int, kind) -> None:
    text = f"{place} on {rank}"
    try:
        work(comm, place, rank, kind)
        raise AssertionError(f"{text} was not raised")
    except (PetscHdgError, ValueError) as error:
        assert text in str(error), error
        assert getattr(error, "failed_rank", None) == (rank if comm.size > 1 else None), error
        mine = kind if comm.rank == rank or kind is MeshError else PetscHdgError
        assert type(error) is mine, (type(error), mine)


if __name__ == "__main__":
    guarded(main)
