"""The graph of cells that PETSc's partitioners see, through its C library."""

from __future__ import annotations

import ctypes

import numpy as np

from .c_library import _c_int, _pointer, call, library


def dual_graph(dm) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours of each cell of this rank: starts [cell + 1], cells [entry], both int64. Collective.

    Cells count from 0 over all ranks.
    """
    count, starts, near, numbers = _c_int(), ctypes.POINTER(_c_int)(), ctypes.POINTER(_c_int)(), ctypes.c_void_p()
    found = (count, starts, near, numbers)
    call("DMPlexCreatePartitionerGraph", _pointer(dm), _c_int(0), *map(ctypes.byref, found))
    start = _copy(starts, count.value + 1) if starts else np.zeros(1, np.int64)
    graph = start, _copy(near, int(start[-1]))
    call("ISDestroy", ctypes.byref(numbers))
    for array in (starts, near):
        _free(array)
    return graph


def _copy(array, size: int) -> np.ndarray:
    return np.ctypeslib.as_array(array, (size,)).astype(np.int64) if size else np.empty(0, np.int64)


def _free(array) -> None:
    """Free as PetscFree, a macro, does."""
    address = ctypes.c_void_p.in_dll(library(), "PetscTrFree").value
    free = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)(address)
    free(ctypes.cast(array, ctypes.c_void_p), 0, b"_free", b"dual_graph.py")
