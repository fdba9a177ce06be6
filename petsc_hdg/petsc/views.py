"""Functions of ours in the place of PETSc's, for which petsc4py has no hooks: where it views and loads vectors, and
operations of ViennaCL vectors that lose values.

A ViennaCL vector has values on the host, on the device, or both. PETSc 3.26 does not note that VecAXPBYPCZ with a zero
among its coefficients, and so VecMAXPY, changes those on the device: who reads the vector on the host, or copies it,
then has the values before. Over ranks, memory of the host that nobody has written counts as the values of a new
duplicate. ARKIMEX and DIRK, whose slopes are found so, make other steps. VecWAXPY fails where a rank has no values.
"""

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
_DUPLICATE, _MAXPY, _WAXPY, _AXPBYPCZ = 0, 14, 16, 17  # places among a vector's operations
_NUMBER = ctypes.c_double if PETSc.RealType().itemsize == 8 else ctypes.c_float
_INTEGER = ctypes.c_int64 if PETSc.IntType().itemsize == 8 else ctypes.c_int32
_VEC, _CODE = ctypes.c_void_p, ctypes.c_int
_VECS, _NUMBERS = ctypes.POINTER(_VEC), ctypes.POINTER(_NUMBER)


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


def mend_viennacl(vector: PETSc.Vec, duplicate) -> None:
    """Have PETSc use operations of ours for a vector, and `duplicate(vector)`, a new vector, where it duplicates it."""
    mended = {_DUPLICATE: _duplicate(duplicate), _MAXPY: _maxpy, _AXPBYPCZ: _axpbypcz}
    if vector.getLocalSize() == 0:
        mended[_WAXPY] = _waxpy_of_none
    for place, entry in mended.items():
        call("VecSetOperation", _VEC(vector.handle), ctypes.c_int(place), entry)


@cache
def _duplicate(function):
    """The C function around one that duplicates a vector, kept for ever."""

    def made(vector: int, found) -> None:
        new = function(object_at(vector))
        new.incRef()  # PETSc's
        found[0] = new.handle

    return ctypes.CFUNCTYPE(_CODE, _VEC, _VECS)(lambda vector, found: called(lambda: made(vector, found)))


@ctypes.CFUNCTYPE(_CODE, _VEC, _NUMBER, _NUMBER, _NUMBER, _VEC, _VEC)
def _axpbypcz(z: int, a: float, b: float, c: float, x: int, y: int) -> int:
    """z = a x + b y + c z; b (y - x) without rounding of equal values, which steps of no length take"""
    if c == 0 and a == -b:
        return _code("VecWAXPY", _VEC(z), _NUMBER(-1.0), _VEC(x), _VEC(y)) or _code("VecScale", _VEC(z), _NUMBER(b))
    if c == 0:
        return _code("VecCopy", _VEC(y), _VEC(z)) or _code("VecAXPBY", _VEC(z), _NUMBER(a), _NUMBER(b), _VEC(x))
    code = _code("VecAXPBY", _VEC(z), _NUMBER(a), _NUMBER(c), _VEC(x))
    return code or _code("VecAXPY", _VEC(z), _NUMBER(b), _VEC(y))


@ctypes.CFUNCTYPE(_CODE, _VEC, _INTEGER, _NUMBERS, _VECS)
def _maxpy(y: int, count: int, factors, vectors) -> int:
    """y += sum of factors times vectors"""
    for k in range(count):
        if code := _code("VecAXPY", _VEC(y), _NUMBER(factors[k]), _VEC(vectors[k])):
            return code
    return 0


@ctypes.CFUNCTYPE(_CODE, _VEC, _NUMBER, _VEC, _VEC)
def _waxpy_of_none(w: int, a: float, x: int, y: int) -> int:
    """w = a x + y without values"""
    return 0


def _code(function: str, *arguments) -> int:
    """PETSc's error code of a function of its library."""
    return getattr(library(), function)(*arguments)
