"""Rows of the matrix of continuous Galerkin on one rank: their pattern, and sums of element matrices, on the device."""

from __future__ import annotations

import numpy as np

from ..block_rows import SOURCE, BlockKernels, BlockRows, Transpose, product_pattern

MOST_DOFS = 32  # of a cell: longer rows would be searched for too long


class MatrixRows:
    """Rows of the matrix of a CGOperator.

    starts [row + 1], columns [entry]: the pattern, on the host, columns ascending in each row.
    """

    def __init__(self, operator):
        self._discretization, arrays = operator.discretization, operator.arrays
        disc = self._discretization
        dofs = np.ascontiguousarray(np.concatenate(disc.element_numbers(), axis=1).T, np.int32)  # [element, dof]
        kept = dofs >= 0
        first = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        columns = arrays.to_device(dofs[kept], "matrices")
        elements = BlockRows(arrays, (1, 1), disc.dofmap.num_owned, first, columns)
        turned = Transpose(elements)
        self._given = turned.result.starts_buffer, turned.source
        self._given += tuple(arrays.to_device(a, "matrices") for a in (np.flatnonzero(kept).astype(np.int32), dofs))
        pattern = product_pattern(arrays, turned.result.starts, turned.result.pattern, elements.pattern)
        self._result = rows = BlockRows(arrays, (1, 1), disc.dofmap.num_owned, *pattern)
        self.starts, self.columns = rows.starts, arrays.to_host(rows.columns, rows.count, np.int32, "matrices")
        self._kernels = BlockKernels(arrays, (SOURCE, "matrix_rows.cl"), DOFS=disc.num_dofs)

    @staticmethod
    def suit(operator) -> bool:
        """Return True if the rows of an operator's matrix are summed so: on one GPU in double precision, since PETSc is
        as fast on CPUs."""
        disc, arrays = operator.discretization, operator.arrays
        alone = disc.mesh.comm.size == 1 and arrays.device.is_gpu and arrays.precision == "double"
        return alone and disc.dofmap.num_owned > 0 and disc.num_dofs <= MOST_DOFS

    def write(self, cells, facets, out: np.ndarray) -> None:
        """out [entry] = sums of element matrices, buffers [dof, dof, stride] of cells and of facets, None if none."""
        disc, rows = self._discretization, self._result
        sizes = rows.num_rows, disc.stride, disc.facet_stride
        self._kernels.run("matrix_rows", rows.num_rows, *sizes, *self._given, cells, facets, *rows.all)
        rows.arrays.download(rows.values, out, "matrices")
