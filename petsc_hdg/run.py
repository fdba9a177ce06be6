"""How a script runs: errors as one sentence from rank 0, `-help` with our options, no rank left waiting."""

from __future__ import annotations

import functools
import sys
import traceback

from .errors import PetscHdgError


def main(function):
    """Decorate a script's main function and call it if the script is run itself.

        @fe.main
        def main(): ...

    A PetscHdgError ends the program with its sentence, printed once, and exit status 1 on all ranks. Any other
    exception is printed with its trace and aborts all ranks, so that none waits for ever.
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

    comm = MPI.COMM_WORLD
    try:
        return call()
    except PetscHdgError as error:
        if comm.rank == 0:
            print(f"error: {error}", file=sys.stderr, flush=True)
        sys.exit(1)
    except Exception:
        cause = _our_error(sys.exc_info()[1])
        if cause is not None and comm.size == 1:
            print(f"error: {cause}", file=sys.stderr, flush=True)
            sys.exit(1)
        traceback.print_exc()
        sys.stderr.flush()
        if comm.size > 1:
            comm.Abort(1)
        sys.exit(1)


def _our_error(error: BaseException | None) -> PetscHdgError | None:
    """The PetscHdgError that a PETSc error was raised from, if any."""
    while error is not None:
        if isinstance(error, PetscHdgError):
            return error
        error = error.__cause__ or error.__context__
    return None


def _print_help() -> None:
    from petsc4py import PETSc

    from .options import Options

    PETSc.Sys.Print(Options.help())
