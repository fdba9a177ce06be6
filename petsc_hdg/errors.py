"""Errors of petsc_hdg: one clear sentence each (what was given, what is accepted, what to do), raised on all ranks."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
import warnings
from contextlib import contextmanager

from . import log

PATIENCE = 60.0  # seconds that a rank that fails waits for others that are at work
_OURS = (os.path.dirname(__file__) + os.sep, contextlib.__file__, functools.__file__)  # and what calls them in turn


class PetscHdgError(Exception):
    """Base of every error this package raises on purpose.

    failed_rank: the lowest rank that failed, where only some did and told the others; None where all failed alike.
    agreed_on: handle of the communicator on which all ranks raise it, see `collectively`.
    """

    failed_rank: int | None = None
    agreed_on: int | None = None


class InstallError(PetscHdgError, ImportError):
    """A package that this one needs is missing or broken, for example compiled for another numpy."""

    @classmethod
    def of(cls, error: Exception) -> InstallError:
        """The sentence for what an import has raised, which can be anything."""
        return cls(
            f"A package that petsc_hdg needs cannot be imported ({type(error).__name__}: {error}); "
            "'python -m petsc_hdg doctor' says which, and what to type."
        )


class OptionError(PetscHdgError):
    """An option has a value that is not accepted."""


class MeshError(PetscHdgError):
    """A mesh, a label or a geometry cannot be used."""


class PhysicsError(PetscHdgError):
    """The user's pointwise functions cannot be parsed, differentiated, compiled or evaluated."""


class DeviceError(PetscHdgError):
    """No fitting OpenCL device, or a kernel does not fit on it."""


class CheckpointError(PetscHdgError):
    """A checkpoint cannot be read, or is not one of this problem."""


class SolveError(PetscHdgError):
    """A solver failed or is set up in a way that cannot work."""


class LeftSolverError(SolveError):
    """PETSc was left by an error within a solve: its vectors may be locked, and nothing else is tried with them."""


class Alone(BaseException):
    """An error of one rank of which the others cannot hear, since they are inside a call of all ranks: it ends the
    program (see run.py), and `except Exception` of a script does not take it for one that all ranks have caught."""


def warn_user(text: str) -> None:
    """Warn of a line of the user, the innermost one outside of this package, unless `-fe_log_level quiet` is given."""
    if not log.warns():
        return
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)


def our_error(error: BaseException | None) -> PetscHdgError | None:
    """The PetscHdgError that another error was raised from, if any: PETSc wraps what its callbacks raise.

    A lack of memory that drivers or numpy tell of becomes one.
    """
    for found in causes(error):
        if isinstance(found, PetscHdgError):
            return found
        if _lacks_memory(found):
            return _memory_error(found)
    return None


def causes(error: BaseException | None):
    """Yield an error and those behind it, which it was raised from or while they were handled, each once."""
    seen = []  # an error raised anew from one that it caused stands behind itself
    while error is not None and not any(error is other for other in seen):
        yield error
        seen.append(error)
        error = error.__cause__ or error.__context__


def _lacks_memory(error: BaseException) -> bool:
    if type(error).__module__.startswith("pyopencl"):
        return any(word in str(error) for word in ("MEM_OBJECT_ALLOCATION", "OUT_OF_RESOURCES", "OUT_OF_HOST_MEMORY"))
    return isinstance(error, MemoryError)


def _memory_error(error: BaseException) -> PetscHdgError:
    if isinstance(error, MemoryError):
        what, kind = f"the host has no memory left ({str(error) or 'none was said to be wanted'})", PetscHdgError
    else:
        what, kind = f"the OpenCL driver has no memory left ({error})", DeviceError
    made = kind(f"{what}; use more ranks or nodes, a coarser mesh or a lower -fe_degree")
    made.failed_rank = getattr(error, "failed_rank", None)
    return made


@contextmanager
def collectively(comm, patience: float | None = None):
    """Raise on every rank of `comm` (mpi4py) the error that any rank raises inside the block.

    Every rank must enter the block, and the block must hold no collective call: a rank that raises leaves it early.
    The lowest rank's error is the one the others see; what is not a PetscHdgError reaches them as one that quotes it.
    If only some ranks fail, all errors carry the lowest one's number as `failed_rank`.

    Such blocks on the same `comm` may stand within one another: an inner one's agreement is the outer one's too, so
    that a rank that fails outside the inner block meets the others in it.

    A rank that fails waits `patience` seconds (PATIENCE) for the others, which may be at work; then it raises Alone
    from its error, and the program ends.
    """
    error = None
    try:
        yield
    except Exception as caught:  # any error, or the other ranks would wait for ever
        if getattr(caught, "agreed_on", None) == comm.py2f():
            raise
        error = caught
    if not _any_failed(comm, error, PATIENCE if patience is None else patience):
        return
    found = comm.allgather(None if error is None else _portable(error, comm.rank))
    failed = [rank for rank, other in enumerate(found) if other is not None]
    kind, text = found[failed[0]]
    if error is None or (isinstance(error, PetscHdgError) and str(error) != text):
        error = kind(text)
    if len(failed) < comm.size:
        error.failed_rank = failed[0]
    error.agreed_on = comm.py2f()
    raise error


def _any_failed(comm, error: Exception | None, patience: float) -> bool:
    """Whether a rank has an error. Raises Alone where that is this one, and the others do not come. Collective."""
    mine, all_ranks = bytearray([error is not None]), bytearray(comm.size)
    request = comm.Iallgather(mine, all_ranks)
    if error is None:
        request.Wait()
    deadline = time.monotonic() + patience
    while not request.Test():
        if time.monotonic() > deadline:
            raise Alone from error
        time.sleep(0.001)
    return any(all_ranks)


def _portable(error: Exception, rank: int) -> tuple[type, str]:
    """Class and text under which an error is raised on the other ranks."""
    if _lacks_memory(error):
        error = _memory_error(error)
    if isinstance(error, PetscHdgError):
        return type(error), str(error)
    return PetscHdgError, f"rank {rank} failed with {type(error).__name__}: {error}"
