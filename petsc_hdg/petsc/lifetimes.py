"""When PETSc's objects end: those that Python gave up, and those with contexts of ours that outlive the interpreter.

Users can destroy objects while others work with them, which ends the interpreter in PETSc: see Alive.
"""

from __future__ import annotations

import atexit
import ctypes
import gc

from mpi4py import MPI
from petsc4py import PETSc

from ..errors import PetscHdgError, SolveError
from . import c_library

# Python's cycles are looked for after so many unknowns of problems, at some kilobytes each, or after so many problems.
MANY, OFTEN = 1e5, 20
ROUNDS = 3  # PETSc's objects hold others in cycles: solvers matrices, and those operators
_HARMLESS = {"Mat": b"shell", "KSP": b"preonly", "PC": b"none", "SNES": b"ksponly"}

_unknowns: list[int] = []  # of each problem made since the last time, the same on all ranks
_of_all_ranks = False  # whether there was a problem on all ranks
_holders: dict[int, set[tuple[str, int]]] = {}  # id of a Context -> class and handle of the objects that have it


class Context:
    """Context of PETSc's Python objects (Mat, KSP, PC, SNES), which is taken out of those that outlive Python.

    An object's body may move to another handle: `Mat.convert` in place destroys the old one under a new handle.
    """

    def create(self, holder) -> None:
        """A PETSc object begins to use this context."""
        _holders.setdefault(id(self), set()).add(_name(holder))

    def destroy(self, holder) -> None:
        """The PETSc object is going, or takes another context."""
        known = _holders.pop(id(self), set())
        if len(known) > 1 and _name(holder) in known:
            _holders[id(self)] = known - {_name(holder)}
        self.reset(holder)

    def reset(self, holder) -> None:
        """Forget what was made for the PETSc object."""

    @property
    def holders(self) -> int:
        """Number of PETSc objects that have this context."""
        return len(_holders.get(id(self), ()))


def _name(holder) -> tuple[str, int]:
    return type(holder).__name__, holder.handle


def destroy(comm=None, collect: bool = True) -> None:
    """Destroy what was given up on a communicator, if one is given, and on this rank alone. Collective.

    petsc4py only lists what Python gives up of several ranks, for all of them to destroy.
    collect: whether to find first what Python holds in cycles alone, which problems are.
    """
    for _ in range(ROUNDS if collect else 1):
        if collect:
            gc.collect()
        _clean(*filter(None, (PETSc.COMM_SELF, comm)))


def _clean(*comms) -> None:
    """Destroy what is listed on communicators. Collective.

    Python's objects outlive this call: PETSc loses what they, freed with the attribute or the context of a PETSc object
    that it destroys here, would list meanwhile. That comes next time.
    """
    alive = gc.get_objects()
    for comm in comms:
        PETSc.garbage_cleanup(comm)
    del alive


def make_room(comm, unknowns: int) -> None:
    """Destroy the problems that were given up, if they may hold much memory, before another takes more. Collective.

    comm: mpi4py's, of the problem to come.   unknowns: of that, on all ranks.
    """
    _hold(comm)
    collect = sum(_unknowns) > MANY or len(_unknowns) >= OFTEN
    destroy(comm, collect)
    if collect:
        _unknowns.clear()
    _unknowns.append(unknowns)


def _hold(comm) -> None:
    """Keep PETSc's duplicate of the communicator of all ranks to the end, from the first problem of all ranks on.

    PETSc frees it with its last object, and ranks need not lose that at once: an object that one rank gave up after
    the solver that held it is listed there for ever, and destroyed on the others. One rank would then duplicate the
    communicator while another sums over the duplicate.
    """
    global _of_all_ranks
    if not _of_all_ranks and comm.size == MPI.COMM_WORLD.size:
        _of_all_ranks = True
        kept = PETSc.COMM_WORLD.duplicate()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))  # the interpreter's end must not give it back


@atexit.register
def end() -> None:
    """Destroy what was given up, and take the contexts out of what is still alive: PETSc would call them after Python.

    Ranks that made problems by themselves alone do not wait for others. Collective where problems of all ranks were.
    """
    if MPI.Is_finalized():
        return
    try:
        destroy(PETSc.COMM_WORLD if _of_all_ranks else None)
    finally:
        while _holders:  # a context that goes may take others with it
            context, known = next(iter(_holders.items()))
            kind, handle = known.pop()
            if not known:
                del _holders[context]
            c_library.call(f"{kind}SetType", ctypes.c_void_p(handle), _HARMLESS[kind])


class Alive:
    """An attribute of a class that is a PETSc object, or None; reading it raises `kind` once the object was destroyed.

    what: the object, in words.   make: function of the instance that makes it at first use, as a cached property does.
    """

    def __init__(self, what: str, kind: type[PetscHdgError] = SolveError):
        self.what, self.kind, self._make, self._name = what, kind, None, ""

    def __call__(self, make) -> Alive:
        """Decorate the function that makes the object."""
        self._make, self.__doc__ = make, make.__doc__
        return self

    def __set_name__(self, owner, name: str) -> None:
        self._name = name

    def __set__(self, instance, value) -> None:
        vars(instance)[self._name] = value

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        kept = vars(instance)
        if self._name not in kept:
            if self._make is None:
                raise AttributeError(f"'{owner.__name__}' has no '{self._name}' yet")
            kept[self._name] = self._make(instance)
        return alive(kept[self._name], self.what, self.kind)


def alive(thing, what: str, kind: type[PetscHdgError] = SolveError):
    """A PETSc object, or None, as it is. Raises `kind` if it was destroyed."""
    if thing is not None and not thing.handle:
        raise kind(f"{what} was destroyed, and work on it goes on; destroy it when nothing needs it.")
    return thing
