"""Rows of the matrix of continuous Galerkin: their pattern, and sums of element matrices, on the device."""

from __future__ import annotations

import numpy as np

from ...device import AllGather, gathered
from ..block_rows import SOURCE, BlockKernels, BlockRows, Product, Transpose, product_pattern

FEW = 1_000_000  # entries of element matrices that PETSc sorts on a CPU sooner than kernels for them are there
MOST_DOFS, MOST_DOFS_ON_CPU = 32, 100  # of a cell: longer rows would be searched for too long
# Rows that each rank has all of: a GPU sets them up sooner than all hosts do their parts, and smooths them sooner than
# parts of them with an exchange a product.
MOST_ROWS = 1 << 22


class MatrixRows:
    """The matrix of a CGOperator on the device, on several ranks whole on each: sums of what each rank's elements give.

    Making one and `update` are collective.

    whole    BlockRows of all rows
    starts   [row + 1], columns [entry]: this rank's rows on the host, columns ascending in each
    filled   state of the PETSc matrix that has the values, None if none does
    """

    filled: int | None = None

    def __init__(self, operator):
        self._discretization, arrays = operator.discretization, operator.arrays
        disc, comm = self._discretization, operator.discretization.mesh.comm
        dofs = np.ascontiguousarray(np.concatenate(disc.element_numbers(), axis=1).T, np.int32)  # [element, dof]
        kept, rows = dofs >= 0, comm.allgather(disc.dofmap.num_owned)
        ends, count = np.concatenate([[0], np.cumsum(rows)]), sum(rows)
        first = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        elements = BlockRows(arrays, (1, 1), count, first, arrays.to_device(dofs[kept], "matrices"))
        turned = Transpose(elements)
        self._given = turned.result.starts_buffer, turned.source
        self._given += tuple(arrays.to_device(a, "matrices") for a in (np.flatnonzero(kept).astype(np.int32), dofs))
        pattern = product_pattern(arrays, turned.result.starts, turned.result.pattern, elements.pattern)
        self._part = self.whole = BlockRows(arrays, (1, 1), count, *pattern)
        self._kernels = BlockKernels(arrays, (SOURCE, "matrix_rows.cl"), DOFS=disc.num_dofs)
        self._sum = self._sum_over(comm) if comm.size > 1 else None
        here = self.whole.starts[ends[comm.rank] : ends[comm.rank + 1] + 1]
        self._first, self.starts = int(here[0]), here - here[0]
        columns = arrays.to_host(self.whole.columns, self.whole.count, np.int32, "matrices")
        self.columns = columns[here[0] : here[-1]]

    def _sum_over(self, comm) -> Product:
        """The sum of the ranks' parts, `whole`: a matrix of ones times all of them, one below the other."""
        part, arrays, count = self._part, self._part.arrays, self._part.num_rows
        columns = gathered(comm, arrays.to_host(part.columns, part.count, np.int32, "matrices"))
        starts = np.concatenate([[0], np.cumsum(gathered(comm, np.diff(part.starts)))])
        self._gather = AllGather(comm, part.count, arrays)
        self._parts = BlockRows(arrays, (1, 1), count, starts, arrays.to_device(columns, "matrices"))
        of_row = np.arange(count)[:, None] + count * np.arange(comm.size)
        ones = (arrays.to_device(a, "matrices") for a in (of_row.ravel().astype(np.int32), np.ones(of_row.size)))
        found = Product(
            BlockRows(arrays, (1, 1), len(starts) - 1, np.arange(count + 1) * comm.size, *ones), self._parts
        )
        self.whole = found.result
        return found

    @staticmethod
    def suit(operator, is_coarse: bool) -> bool:
        """Return True if the rows of an operator's matrix are summed so: in double precision, of one rank, or on GPUs
        of a coarse level that each of several ranks has whole; on CPUs of many entries. Collective."""
        disc, arrays, comm = operator.discretization, operator.arrays, operator.discretization.mesh.comm
        on_gpu, most = arrays.device.is_gpu, MOST_DOFS if arrays.device.is_gpu else MOST_DOFS_ON_CPU
        suits = hasattr(operator, "matrix_buffers") and arrays.precision == "double" and disc.num_dofs <= most
        suits = suits and (comm.size == 1 or (on_gpu and is_coarse))
        suits = suits and disc.mesh.num_cells * disc.num_dofs**2 > (0 if on_gpu else FEW)
        all_suit, rows = comm.allreduce(np.array([not suits, disc.dofmap.num_owned]))
        return all_suit == 0 and 0 < rows <= (np.iinfo(np.int32).max if comm.size == 1 else MOST_ROWS)

    def update(self, cells, facets) -> None:
        """Sum element matrices, buffers [dof, dof, stride] of cells and of facets, None if none."""
        disc, rows = self._discretization, self._part
        sizes = rows.num_rows, disc.stride, disc.facet_stride
        self._kernels.run("matrix_rows", rows.num_rows, *sizes, *self._given, cells, facets, *rows.all)
        if self._sum is not None:
            self._gather.gather(rows.values, self._parts.values)
            self._sum.update()

    def write(self, out: np.ndarray) -> None:
        """out [entry] = the values of this rank's rows"""
        arrays = self.whole.arrays
        arrays.download(self.whole.values, out, "matrices", start=self._first * arrays.real.itemsize)
