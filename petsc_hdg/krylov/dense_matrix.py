"""Coarse levels as a whole: rows and vectors of all ranks on each of them, and small dense inverses on the device."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..codegen import KernelSpec
from ..device import AllGather, Kernel, aside, gathered
from ..threads import few_blas_threads
from .sell_matrix import rows_of
from .vectors import Vectors

GPU_GROUP, CPU_GROUP = 128, 1  # work-items of a row
ACCURATE = 1e-6  # relative residual of a solution by an inverse: worse ones are not taken
NEGLIGIBLE = 1e-12  # singular values over the largest that belong to the null space


@few_blas_threads()
def accurate_inverse(matrix: np.ndarray) -> np.ndarray | None:
    """The inverse of a matrix, None where it is singular or nearly so, as one is whose null space is known to
    rounding."""
    try:
        found = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return None
    given = np.random.default_rng(0).uniform(-1, 1, len(matrix))
    wrong = np.linalg.norm(matrix @ (found @ given) - given)
    return found if wrong <= ACCURATE * np.linalg.norm(given) else None


@few_blas_threads()
def pseudoinverse(matrix: np.ndarray, symmetric: bool) -> np.ndarray:
    """The inverse of a singular matrix on its range."""
    return np.linalg.pinv(matrix, NEGLIGIBLE, hermitian=symmetric)


def product_spec(arrays) -> KernelSpec:
    """Spec of the product with a dense matrix."""
    group = GPU_GROUP if arrays.device.is_gpu else CPU_GROUP
    return KernelSpec(
        "dense_product", ("dense.clh", "dense.cl"), {"GROUP": group}, precision=arrays.precision, local_size=group
    )


class DenseMatrix:
    """A square matrix [row, column] of one rank, of at most 2¹⁵ rows, on the device of `arrays`."""

    def __init__(self, values: np.ndarray, arrays):
        self.size = len(values)
        self._values = arrays.to_device(values, "matrices")
        spec = product_spec(arrays)
        self._items, self._product = self.size * spec.local_size, Kernel(spec, arrays.device)

    def apply(self, x, y) -> None:
        """y = A x; buffers [size]."""
        self._product(self._items, self.size, self._values, x, y)


def gathered_rows(comm, starts: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts and global columns of all rows, from those of each rank's. Collective."""
    if comm.size == 1:
        return starts, columns
    counts = gathered(comm, np.diff(starts))
    return np.concatenate([[0], np.cumsum(counts)]).astype(starts.dtype), gathered(comm, columns)


def whole_matrix(mat) -> np.ndarray:
    """All rows [row, column] of an assembled matrix. Collective."""
    comm, (starts, columns, values) = mat.comm.tompi4py(), rows_of(mat)
    lengths, columns, values = (gathered(comm, part) for part in (np.diff(starts), columns, values))
    dense = np.zeros(mat.getSize())
    dense[np.repeat(np.arange(len(lengths)), lengths), columns] = values
    return dense


class Gathered:
    """`apply(x, y)` on this rank's numbers by a `solver` on those of all ranks, which each rank has. Collective.

    All ranks compute the same, and each takes its part: results are those of one solver where devices are alike.
    vectors: those of this rank's numbers.
    """

    on_device = True

    def __init__(self, solver, vectors: Vectors):
        self.solver, self._vectors = solver, vectors

    @property
    def note(self) -> str:
        """For -ksp_view."""
        return self.solver.note

    @cached_property
    def _whole(self) -> tuple:
        """An AllGather, and buffers of all numbers for what is given and found."""
        gather = AllGather(self._vectors.comm, self._vectors.count, self._vectors.arrays, to_all=False)
        return gather, *(self._vectors.arrays.zeros(gather.total) for _ in range(2))

    def apply(self, x, y) -> None:
        """y = this rank's part of what the solver makes of the ranks' x"""
        gather, b, found = self._whole
        gather.gather(x, b)
        self.solver.apply(b, found)
        aside(self._vectors.device, lambda: gather.take(found, y))
