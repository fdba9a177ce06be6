"""PETSc's AIJ matrices made from, and filled by, rows as they are: no row passes through MatSetValues."""

from __future__ import annotations

import ctypes

import numpy as np
from petsc4py import PETSc

from . import petsc_c


def aij(sizes, block_size: int, starts: np.ndarray, columns: np.ndarray, comm, values=None) -> PETSc.Mat:
    """An assembled AIJ matrix of this rank's rows: starts [row + 1], PETSc columns [value], ascending in each row.

    One rank's matrix works on these arrays themselves, of PETSc's types; values [value], zeros where None. Collective.
    """
    starts, columns = (np.ascontiguousarray(a, petsc_c.INT) for a in (starts, columns))
    if comm.size == 1:
        given = np.zeros(len(columns), petsc_c.SCALAR) if values is None else values
        mat = PETSc.Mat().createAIJWithArrays(sizes, (starts, columns, given), comm=comm)
        mat.setBlockSize(block_size)
        return mat
    mat = PETSc.Mat().create(comm)
    mat.setSizes(sizes)
    mat.setType("aij")
    mat.setBlockSize(block_size)
    mat.setPreallocationCSR((starts, columns) if values is None else (starts, columns, values))
    keep_block_size(mat)
    return mat


def keep_block_size(mat: PETSc.Mat) -> None:
    """Tell it to this rank's part of a matrix with a pattern, which forgets it and point-block smoothers read."""
    if mat.comm.size > 1:
        mat.getDiagonalBlock().setBlockSize(mat.getBlockSize())


def fill(mat: PETSc.Mat, values: np.ndarray) -> None:
    """Replace the values of a matrix from `aij` by values [value] in the order of its columns. Collective."""
    values, pointer = np.ascontiguousarray(values, petsc_c.SCALAR), ctypes.c_void_p(mat.handle)
    if mat.getType() == PETSc.Mat.Type.SEQAIJ:
        array = ctypes.c_void_p()
        petsc_c.call("MatSeqAIJGetArrayWrite", pointer, ctypes.byref(array))
        ctypes.memmove(array, values.ctypes.data, values.nbytes)
        petsc_c.call("MatSeqAIJRestoreArrayWrite", pointer, ctypes.byref(array))
        mat.assemble()
    else:
        petsc_c.call("MatUpdateMPIAIJWithArray", pointer, values.ctypes.data_as(ctypes.c_void_p))
