"""Functions of ours that PETSc calls where it views vectors, for which petsc4py has no hooks."""

from __future__ import annotations

import ctypes
from functools import cache

from mpi4py import MPI
from petsc4py import PETSc

from .c_library import call, library

_VECOP_VIEW, _VECOP_LOAD, _ERR_SUP, _ERROR_INITIAL = 33, 41, 56, 0
_VIEW = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)  # (Vec, PetscViewer)
_BOUNDARY = ctypes.CFUNCTYPE(  # (DM, insert essential values, local Vec, time, three Vecs of finite volumes)
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_double, *3 * [ctypes.c_void_p]
)


def set_view(vector: PETSc.Vec, view) -> None:
    """Have PETSc call `view(vector, viewer, as_petsc)` where it views a vector, or what is duplicated from it.

    as_petsc() views the vector as PETSc would. An error of `view` becomes one of PETSc that quotes it.
    """
    _set_operation(vector, _VECOP_VIEW, _view_entry(view, _operation(vector, _VECOP_VIEW)))


def duplicate(vector: PETSc.Vec) -> PETSc.Vec:
    """A vector like the one given that is viewed and loaded as it is: PETSc's duplicate of a sequential one is loaded
    as if it had no DM."""
    made = vector.duplicate()
    _set_operation(made, _VECOP_LOAD, ctypes.c_void_p(_operation(vector, _VECOP_LOAD)))
    return made


def set_essential_values(dm: PETSc.DM, insert) -> None:
    """Have PETSc call `insert(dm, local vector)` where it wants essential values of a DMPlex for HDF5 files."""
    name = b"DMPlexInsertBoundaryValues_C"
    call("PetscObjectComposeFunction_Private", ctypes.c_void_p(dm.handle), name, _boundary_entry(insert))


def _operation(vector: PETSc.Vec, operation: int) -> int:
    """The address of a vector's function, which PETSc does not tell."""
    place = _view_slot() + (operation - _VECOP_VIEW) * ctypes.sizeof(ctypes.c_void_p)
    return ctypes.c_void_p.from_address(vector.handle + place).value


def _set_operation(vector: PETSc.Vec, operation: int, entry) -> None:
    call("VecSetOperation", ctypes.c_void_p(vector.handle), ctypes.c_int(operation), entry)


@cache
def _view_entry(view, before: int):
    """The C function around `view`, kept for ever; `before` is the address of PETSc's."""

    def viewed(vector: int, viewer: int) -> int:
        failed = []
        raised = _run(
            lambda: view(_object(vector), _object(viewer), lambda: failed.append(_VIEW(before)(vector, viewer)))
        )
        return raised or max(failed, default=0)

    return _VIEW(viewed)


@cache
def _boundary_entry(insert):
    """The C function around `insert`, kept for ever."""

    def inserted(dm: int, essential: int, local: int, time: float, *finite_volumes) -> int:
        return _run(lambda: insert(_object(dm), _object(local))) if essential & 1 else 0

    return _BOUNDARY(inserted)


@cache
def _view_slot() -> int:
    """Bytes from the start of a Vec to the address of its function for views."""
    mark, scratch = _VIEW(lambda vector, viewer: 0), PETSc.Vec().createSeq(1, comm=PETSc.COMM_SELF)
    _set_operation(scratch, _VECOP_VIEW, mark)
    address, offset = ctypes.cast(mark, ctypes.c_void_p).value, 0
    while ctypes.c_void_p.from_address(scratch.handle + offset).value != address:
        offset += ctypes.sizeof(ctypes.c_void_p)
    scratch.destroy()
    return offset


def _object(address: int):
    """petsc4py's object of a PETSc object at a C address."""
    carrier = PETSc.IS().createGeneral([], comm=PETSc.COMM_SELF)
    call("PetscObjectCompose", ctypes.c_void_p(carrier.handle), b"object", ctypes.c_void_p(address))
    found = carrier.query("object")
    carrier.destroy()
    return found


def _run(action) -> int:
    """PETSc's error code of a function of ours that PETSc called: none of Python's errors can leave through its frames.

    PETSc's handler is told of an error, so that petsc4py's one has the sentence.
    """
    try:
        action()
        return 0
    except BaseException as error:
        text = f"{type(error).__name__}: {error}".replace("%", "%%").encode()
    address, size = MPI._addressof(MPI.COMM_SELF), MPI._sizeof(MPI.COMM_SELF)
    comm = (ctypes.c_int if size == ctypes.sizeof(ctypes.c_int) else ctypes.c_void_p).from_address(address)
    where = (ctypes.c_int(0), b"petsc_hdg", b"views.py")
    return library().PetscError(comm, *where, ctypes.c_int(_ERR_SUP), ctypes.c_int(_ERROR_INITIAL), text)
