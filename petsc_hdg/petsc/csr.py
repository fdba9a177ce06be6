"""PETSc's AIJ matrices made from, and filled by, rows as they are: no row passes through MatSetValues."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
from petsc4py import PETSc

from . import c_library


def aij(sizes, block_size: int, starts: np.ndarray, columns: np.ndarray, comm, values=None) -> PETSc.Mat:
    """An assembled AIJ matrix of this rank's rows: starts [row + 1], PETSc columns [value], ascending in each row.

    One rank's matrix works on these arrays themselves, of PETSc's types; values [value], zeros where None. Collective.
    """
    starts, columns = (np.ascontiguousarray(a, c_library.INT) for a in (starts, columns))
    if comm.size == 1:
        given = np.zeros(len(columns), c_library.SCALAR) if values is None else values
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
    with written(mat, len(values)) as array:
        array[:] = values


@contextmanager
def written(mat: PETSc.Mat, size: int):
    """An array [value] that becomes the `size` values of a matrix from `aij`, in the order of its columns: the matrix's
    own where it has one. Collective."""
    if mat.getType() == PETSc.Mat.Type.SEQAIJ:
        yield c_library.rows_of_aij(mat)[2]
        mat.assemble()
    else:
        values = np.empty(size, c_library.SCALAR)
        yield values
        c_library.call("MatUpdateMPIAIJWithArray", c_library._pointer(mat), c_library._address(values))
