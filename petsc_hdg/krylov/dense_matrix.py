"""Small dense matrices on the device: inverses of coarse levels."""

from __future__ import annotations

import numpy as np

from ..codegen import KernelSpec
from ..device import Kernel
from ..threads import few_blas_threads

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
