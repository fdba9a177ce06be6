"""The line search of a SNES, which petsc4py of PETSc 3.18 does not give."""

from __future__ import annotations

import ctypes

from petsc4py import PETSc

from .c_library import call


def set_line_search(snes: PETSc.SNES, name: str) -> str:
    """Set the type of a SNES' line search; the one before."""
    search, before = ctypes.c_void_p(), ctypes.c_char_p()
    call("SNESGetLineSearch", ctypes.c_void_p(snes.handle), ctypes.byref(search))
    call("SNESLineSearchGetType", search, ctypes.byref(before))
    old = (before.value or b"bt").decode()  # which SNESLineSearchSetType frees
    call("SNESLineSearchSetType", search, name.encode())
    return old
