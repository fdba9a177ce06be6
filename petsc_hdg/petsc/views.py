"""Functions of ours that PETSc calls where it views and loads vectors, for which petsc4py has no hooks."""

from __future__ import annotations

import ctypes
from functools import cache

from mpi4py import MPI
from petsc4py import PETSc

from .c_library import call, library

_VECOP_VIEW, _VECOP_LOAD, _ERR_SUP, _ERROR_INITIAL = 33, 41, 56, 0
_BY_VIEWER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)  # (Vec, PetscViewer)
_BOUNDARY = ctypes.CFUNCTYPE(  # (DM, insert essential values, local Vec, time, three Vecs of finite volumes)
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_double, *3 * [ctypes.c_void_p]
)


def set_view_and_load(vector: PETSc.Vec, view, load) -> None:
    """Have PETSc call `view(vector, viewer)` where it views a vector, or what is duplicated from it, and `load(vector,
    viewer)` where it loads this one. Their errors become those of PETSc that quote them."""
    for operation, function in ((_VECOP_VIEW, view), (_VECOP_LOAD, load)):
        call("VecSetOperation", ctypes.c_void_p(vector.handle), ctypes.c_int(operation), _viewer_entry(function))


def set_essential_values(dm: PETSc.DM, insert) -> None:
    """Have PETSc call `insert(dm, local vector)` where it wants essential values of a DMPlex for HDF5 files."""
    name = b"DMPlexInsertBoundaryValues_C"
    call("PetscObjectComposeFunction_Private", ctypes.c_void_p(dm.handle), name, _boundary_entry(insert))


@cache
def _viewer_entry(function):
    """The C function around a function of a vector and a viewer, kept for ever."""
    return _BY_VIEWER(lambda vector, viewer: called(lambda: function(object_at(vector), object_at(viewer))))


@cache
def _boundary_entry(insert):
    """The C function around `insert`, kept for ever."""

    def inserted(dm: int, essential: int, local: int, time: float, *finite_volumes) -> int:
        return called(lambda: insert(object_at(dm), object_at(local))) if essential & 1 else 0

    return _BOUNDARY(inserted)


def object_at(address: int):
    """petsc4py's object of a PETSc object at a C address."""
    carrier = PETSc.IS().createGeneral([], comm=PETSc.COMM_SELF)
    call("PetscObjectCompose", ctypes.c_void_p(carrier.handle), b"object", ctypes.c_void_p(address))
    found = carrier.query("object")
    carrier.destroy()
    return found


def called(action) -> int:
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
