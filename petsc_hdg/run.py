"""How a script runs: errors as one sentence from one rank, `-help` with our options, no rank left waiting."""

from __future__ import annotations

import functools
import signal
import sys
import time
import traceback
from contextlib import suppress

from .errors import Alone, OptionError, our_error  # nothing that needs numpy: the doctor runs where it is broken

PATIENCE = 3.0  # seconds in which ranks that fail for the same reason all fail
_TAG, _SPOKEN = 32719, 32720  # of the notices of ranks that fail, and of the one that speaks for them


def main(function):
    """Decorate a script's main function and call it if the script is run itself.

        @fe.main
        def main(): ...

    A PetscHdgError ends the program with its sentence, any other exception with its trace, and exit status 1. What
    all ranks raise is printed once; where only some fail, one of them prints, with its number, and ends the others, so
    that none waits for ever.
    """

    if not callable(function):
        from .value_checks import shown

        raise OptionError(
            f"fe.main decorates a function, and {shown(function)} is given; write @fe.main above def main"
        )

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
    watch_pipe()
    if comm.size > 1 and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)  # what a rank has printed outlives its end by another one
    try:
        return call()
    except (Exception, KeyboardInterrupt, Alone) as error:
        sys.exit(_end(comm, error))
    except SystemExit as error:
        if comm.size > 1 and error.code:
            sys.exit(_end(comm, error))
        raise


def watch_uncaught() -> None:
    """Let errors that no one catches end all ranks, in scripts without `main` too: none waits at the end of MPI."""
    if getattr(sys.excepthook, "of_petsc_hdg", False):
        return
    before = sys.excepthook

    def hook(kind, error, trace):
        comm = _world()
        if comm is None or comm.size == 1:
            before(kind, error, trace)
        else:
            _end(comm, error, shown=lambda: before(kind, error, trace))

    hook.of_petsc_hdg = True
    sys.excepthook = hook


def watch_pipe() -> None:
    """Let a closed pipe, as in `script.py | head`, end the program without a word, as it ends others: PETSc takes the
    signal for a crash."""
    if "petsc4py.PETSc" in sys.modules and signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN:  # Python's own choice
        with suppress(ValueError):  # outside the main thread
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _world():
    """The communicator of all ranks, None before MPI begins and after its end."""
    if not {"mpi4py.MPI", "petsc4py.PETSc"} & sys.modules.keys():
        return None  # to ask mpi4py would begin MPI
    from mpi4py import MPI

    return MPI.COMM_WORLD if MPI.Is_initialized() and not MPI.Is_finalized() else None


def _end(comm, error: BaseException, shown=None) -> int:
    """The exit status, once one rank has spoken for all that fail; it stops the others if there are any.

    shown: prints the error, by default as its sentence or trace.
    """
    status = error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1
    patience = PATIENCE
    if isinstance(error, Alone):  # it has waited
        patience, error = min(0.5, PATIENCE), error.__cause__
    failed = _failures(comm, _weight(error, comm.rank), patience)
    together = len(failed) == comm.size
    if min(failed, key=failed.get) == comm.rank and not comm.iprobe(tag=_SPOKEN):
        if not together:
            for other in range(comm.size):
                comm.isend(None, other, _SPOKEN)
        origin = getattr(our_error(error) or error, "failed_rank", None)  # where an error that all ranks share began
        rank = origin if origin is not None or comm.size == 1 or together else comm.rank
        sys.stdout.flush()
        _say(error, rank, shown)
        sys.stderr.flush()
        if not together:
            comm.Abort(status)
    if not together:
        time.sleep(PATIENCE)  # the rank that speaks ends this one
        comm.Abort(status)
    return status


def _weight(error: BaseException, rank: int) -> tuple:
    """Smallest where an error says most: not a copy of another rank's, and ours or Python's rather than PETSc's."""
    cause = our_error(error)
    origin = getattr(cause or error, "failed_rank", None)
    return origin not in (None, rank), cause is None and type(error).__module__.startswith("petsc4py"), rank


def _say(error: BaseException, rank: int | None, shown) -> None:
    cause, where = our_error(error), "" if rank is None else f" [rank {rank}]"
    if isinstance(error, SystemExit):
        if where:
            print(f"error: the program ends with status {error.code} while other ranks go on{where}", file=sys.stderr)
        return
    if cause is not None and shown is None:
        print(f"error: {cause}{where}", file=sys.stderr)
        return
    if where:
        print(f"error{where}:", file=sys.stderr)
    (shown or (lambda: traceback.print_exception(error)))()


def _failures(comm, mine: tuple, patience: float) -> dict[int, tuple]:
    """`mine` of each rank that fails within `patience` seconds [rank → weight]; ranks at work elsewhere never do."""
    from mpi4py import MPI

    found, status = {comm.rank: mine}, MPI.Status()
    notices = [comm.isend(mine, rank, _TAG) for rank in range(comm.size) if rank != comm.rank]
    deadline = time.monotonic() + patience
    while len(found) < comm.size and time.monotonic() < deadline:
        if comm.iprobe(MPI.ANY_SOURCE, _TAG, status):
            found[status.Get_source()] = comm.recv(source=status.Get_source(), tag=_TAG)
        else:
            time.sleep(0.01)
    if len(found) == comm.size:
        MPI.Request.waitall(notices)
    return found


def _print_help() -> None:
    from petsc4py import PETSc

    from .options import Options

    PETSc.Sys.Print(Options.help())
