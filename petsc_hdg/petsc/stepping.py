"""Calls about PETSc's time stepping that petsc4py lacks; see c_library."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager

from petsc4py import PETSc

from .c_library import _c_int, _pointer, call


def bdf_order(ts: PETSc.TS) -> int:
    """Order of a TSBDF."""
    order = _c_int()
    call("TSBDFGetOrder", _pointer(ts), ctypes.byref(order))
    return int(order.value)


def set_snes(ts: PETSc.TS, snes: PETSc.SNES) -> None:
    """Make a SNES the one of a TS."""
    call("TSSetSNES", _pointer(ts), _pointer(snes))


def adapt_type(ts: PETSc.TS) -> bytes | None:
    """Type of the step controller of a TS."""
    adapt, name = ctypes.c_void_p(), ctypes.c_char_p()
    call("TSGetAdapt", _pointer(ts), ctypes.byref(adapt))
    call("PetscObjectGetType", adapt, ctypes.byref(name))
    return bytes(name.value) if name.value else None


@contextmanager
def fixed_steps(ts: PETSc.TS):
    """No step controller in the block; all steps are accepted as they are."""
    adapt, before = ctypes.c_void_p(), adapt_type(ts)
    call("TSGetAdapt", _pointer(ts), ctypes.byref(adapt))
    call("TSAdaptSetType", adapt, b"none")
    try:
        yield
    finally:
        if before is not None:
            call("TSAdaptSetType", adapt, before)
