"""Small dense matrices on the device: inverses of coarse levels."""

from __future__ import annotations

import numpy as np

from ..codegen import KernelSpec
from ..device import Kernel

GPU_GROUP, CPU_GROUP = 128, 1  # work-items of a row


class DenseMatrix:
    """A square matrix [row, column] of one rank, of at most 2¹⁵ rows, on the device of `arrays`."""

    def __init__(self, values: np.ndarray, arrays):
        self.size = len(values)
        self._values = arrays.to_device(values, "matrices")
        group = GPU_GROUP if arrays.device.is_gpu else CPU_GROUP
        spec = KernelSpec(
            "dense_product", ("dense.cl",), {"GROUP": group}, precision=arrays.precision, local_size=group
        )
        self._items, self._product = self.size * group, Kernel(spec, arrays.device)

    def apply(self, x, y) -> None:
        """y = A x; buffers [size]."""
        self._product(self._items, self.size, self._values, x, y)
