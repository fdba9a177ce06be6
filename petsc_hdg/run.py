"""How a script runs: errors as one sentence from rank 0, `-help` with our options, no rank left waiting."""

from __future__ import annotations

import functools
import sys
import time
import traceback

from .errors import our_error


def main(function):
    """Decorate a script's main function and call it if the script is run itself.

        @fe.main
        def main(): ...

    A PetscHdgError ends the program with its sentence, any other exception with its trace, and exit status 1. What
    all ranks raise is printed once; where only some fail, they print and end the others, so that none waits for ever.
    """

    @functools.wraps(function)
    def run(*args, **kwargs):
        from petsc4py import PETSc

        if PETSc.Options().hasName("help"):
            _print_help()
        return guarded(lambda: function(*args, **kwargs))

    if function.__module__ == "__main__":
        status = run()
        sys.exit(status if isinstance(status, int) else 0)
    return run


def guarded(call):
    """The value of `call()`; errors end the program as described in `main`."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD.Dup()  # apart from PETSc's messages, for the agreement of ranks that fail
    try:
        return call()
    except Exception as error:
        _end(comm, error)


def _end(comm, error: Exception) -> None:
    """End the program: rank 0 speaks for all if all failed, else those that did speak, and stop the others."""
    together = _all_failed(comm)
    if comm.rank == 0 or not together:
        cause = our_error(error)
        if cause is not None:
            print(f"error: {cause}", file=sys.stderr)
        else:
            traceback.print_exception(error)
        sys.stderr.flush()
    if not together:
        comm.Abort(1)
    sys.exit(1)


def _all_failed(comm, patience: float = 3.0) -> bool:
    """Whether every rank comes here within `patience` seconds; ranks at work elsewhere never do."""
    barrier = comm.Ibarrier()
    deadline = time.monotonic() + patience
    while not barrier.Test():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _print_help() -> None:
    from petsc4py import PETSc

    from .options import Options

    PETSc.Sys.Print(Options.help())
