"""Operations of PETSc's ViennaCL vectors that lose values, replaced by others.

A vector has values on the host, on the device, or both. PETSc 3.26 does not note that VecAXPBYPCZ with a zero among its
coefficients, and so VecMAXPY, changes those on the device: who reads the vector on the host, or copies it, then has the
values before. Over ranks, memory of the host that nobody has written counts as the values of a new duplicate. ARKIMEX
and DIRK, whose slopes are found so, make other steps.
"""

from __future__ import annotations

import ctypes
from functools import cache

from petsc4py import PETSc

from .c_library import call, library
from .views import called, object_at

_DUPLICATE, _MAXPY, _AXPBYPCZ = 0, 14, 17  # places among a vector's operations
_NUMBER = ctypes.c_double if PETSc.RealType().itemsize == 8 else ctypes.c_float
_INTEGER = ctypes.c_int64 if PETSc.IntType().itemsize == 8 else ctypes.c_int32
_VEC, _CODE = ctypes.c_void_p, ctypes.c_int
_VECS, _NUMBERS = ctypes.POINTER(_VEC), ctypes.POINTER(_NUMBER)


def mend(vector: PETSc.Vec, duplicate) -> None:
    """Have PETSc use operations of ours for a vector, and `duplicate(vector)`, a new vector, where it duplicates it."""
    for place, entry in ((_DUPLICATE, _duplicate(duplicate)), (_MAXPY, _maxpy), (_AXPBYPCZ, _axpbypcz)):
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


def _code(function: str, *arguments) -> int:
    """PETSc's error code of a function of its library."""
    return getattr(library(), function)(*arguments)
