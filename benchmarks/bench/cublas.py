"""The peer of local matrices: the same steps by cuBLAS' batched LU and matrix product, where cupy imports."""

from __future__ import annotations

import numpy as np

CHUNK_BYTES = 2e9  # of the cells' matrices that are worked on at once


def condensation_seconds(disc, device, cells: int, repeats: int) -> dict[str, float]:
    """Median seconds for all cells, or {} where cupy or an NVIDIA GPU in double precision is missing.

    "cublas lu + gemm": in place in the cells' matrices E [n, n], E_ii = L R without pivoting (getrfBatched),
    U = E_ii⁻¹ E_it (getrsBatched), K = E_tt - E_ti U (gemmStridedBatched).
    "cublas with matrices": before that E from reference matrices [n², g] times the geometry [g, cell], one gemm, as
    affine cells with constant coefficients allow; g: entries of the symmetric metric, the measure, one a facet.
    """
    if not device.is_gpu or "nvidia" not in device.platform.lower() or disc.options.precision != "double":
        return {}
    try:
        import cupy
    except ImportError:
        return {}
    device.finish()
    cell = _Cells(cupy, disc, cells)
    rows = np.array([cell.run() for _ in range(repeats + 1)][1:])
    scale = cells / cell.count
    build, eliminate = np.median(rows, axis=0) * scale
    del cell
    cupy.get_default_memory_pool().free_all_blocks()
    alone = {"cublas lu + gemm": float(eliminate)} if disc.num_eliminated else {}  # first degrees have no interior
    return alone | {"cublas with matrices": float(build + eliminate)}


class _Cells:
    """Matrices of a chunk of cells, column-major, and the steps on them."""

    def __init__(self, cupy, disc, cells: int):
        self.cupy = cupy
        self.n, self.eliminated = disc.num_functions * disc.components, disc.num_eliminated
        self.count = int(max(1, min(cells, CHUNK_BYTES // (8 * self.n**2))))
        terms = disc.dim * (disc.dim + 1) // 2 + 1 + disc.num_facets_of_cell
        random = cupy.random.default_rng(1)
        self.reference = random.random((terms, self.n**2)) + self.n * cupy.eye(self.n).ravel()
        self.geometry = random.random((self.count, terms))
        self.matrices = cupy.empty((self.count, self.n**2))
        first, size = self.matrices.data.ptr, 8 * self.n**2
        starts = first + size * cupy.arange(self.count, dtype=cupy.int64)
        self.inside, self.right = starts, starts + 8 * self.n * self.eliminated  # E_ii and E_it
        self.info = cupy.empty(self.count, dtype=cupy.int32)

    def run(self) -> tuple[float, float]:
        """Seconds to make the matrices, and to condense them."""
        event = self.cupy.cuda.Event
        marks = [event(), event(), event()]
        marks[0].record()
        self.cupy.matmul(self.geometry, self.reference, out=self.matrices)
        marks[1].record()
        if self.eliminated:
            self._condense()
        marks[2].record()
        marks[2].synchronize()
        spans = zip(marks[:-1], marks[1:], strict=True)
        return tuple(1e-3 * self.cupy.cuda.get_elapsed_time(a, b) for a, b in spans)

    def _condense(self) -> None:
        from cupy.cuda import cublas, device

        handle, n, inner, count = device.get_cublas_handle(), self.n, self.eliminated, self.count
        trace = n - inner
        failed, one, minus = np.zeros(1, np.int32), np.ones(1), -np.ones(1)
        cublas.dgetrfBatched(handle, inner, self.inside.data.ptr, n, 0, self.info.data.ptr, count)
        cublas.dgetrsBatched(
            handle, cublas.CUBLAS_OP_N, inner, trace, self.inside.data.ptr, n, 0, self.right.data.ptr, n,
            failed.ctypes.data, count,
        )  # fmt: skip
        first = self.matrices.data.ptr
        left, right, corner = first + 8 * inner, first + 8 * n * inner, first + 8 * (n * inner + inner)
        cublas.dgemmStridedBatched(
            handle, cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_N, trace, trace, inner, minus.ctypes.data, left, n, n * n,
            right, n, n * n, one.ctypes.data, corner, n, n * n, count,
        )  # fmt: skip
