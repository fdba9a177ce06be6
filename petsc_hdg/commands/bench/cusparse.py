"""The peer of trace products: cuSPARSE's CSR product with the same blocks, through cupy where it imports."""

from __future__ import annotations

import numpy as np

CUDA_REAL = {"float32": 0, "float64": 1}  # cudaDataType


def csr_seconds(layout, arrays, repeats: int) -> dict[str, float]:
    """{"cusparse csr": median seconds} of a product with random values, or {} without cupy or an NVIDIA GPU."""
    if not arrays.device.is_gpu or "nvidia" not in arrays.device.platform.lower():
        return {}
    try:
        import cupy
    except ImportError:
        return {}
    arrays.device.finish()
    seconds = _median(cupy, _product(cupy, layout, arrays.real), repeats)
    cupy.get_default_memory_pool().free_all_blocks()
    return {"cusparse csr": seconds}


def _product(cupy, layout, real):
    """A launch of cusparseSpMV, whose descriptors and buffer are made once, so that its time is that of the kernel."""
    from cupy_backends.cuda.libs import cusparse
    from cupyx.cusparse import DnVecDescriptor, SpMatDescriptor
    from cupyx.scipy.sparse import csr_matrix

    start, columns = csr_pattern(layout, cupy)
    random, count = cupy.random.default_rng(1), layout.num_facets * layout.block
    matrix = csr_matrix((random.random(len(columns), dtype=real), columns, start), shape=(count, count))
    x, y = random.random(count, dtype=real), cupy.zeros(count, dtype=real)
    one, zero = np.array(1, dtype=real), np.array(0, dtype=real)
    described = SpMatDescriptor.create(matrix), DnVecDescriptor.create(x), DnVecDescriptor.create(y)
    a, b, c = (d.desc for d in described)
    arguments = (
        cupy.cuda.device.get_cusparse_handle(), cusparse.CUSPARSE_OPERATION_NON_TRANSPOSE, one.ctypes.data, a, b,
        zero.ctypes.data, c, CUDA_REAL[real.name], cusparse.CUSPARSE_MV_ALG_DEFAULT,
    )  # fmt: skip
    work = cupy.empty(max(1, cusparse.spMV_bufferSize(*arguments)), cupy.int8)
    kept = (matrix, x, y, one, zero, described)

    def launch():
        assert kept
        cusparse.spMV(*arguments, work.data.ptr)

    return launch


def csr_pattern(layout, xp=np):
    """Rows start [row + 1] and columns [nnz] int32, ascending in each row; xp: numpy or cupy."""
    m = layout.block
    neighbours = xp.asarray(layout.neighbours)
    last = neighbours.dtype.type(layout.num_facets)  # stands for none, and is sorted behind all facets
    blocks = xp.sort(xp.where(neighbours < 0, last, neighbours), axis=0).T  # [facet, slot]
    counts = xp.repeat((blocks < last).sum(axis=1) * m, m)
    start = xp.concatenate([xp.zeros(1, dtype=counts.dtype), xp.cumsum(counts)]).astype(xp.int32)
    columns = (blocks[:, :, None] * m + xp.arange(m, dtype=blocks.dtype)).reshape(len(blocks), 1, -1)
    columns = xp.broadcast_to(columns, (len(blocks), m, columns.shape[2])).ravel()
    return start, columns[columns < layout.num_facets * m].astype(xp.int32)


def _median(cupy, launch, repeats: int, launches: int = 10) -> float:
    launch()
    seconds = []
    for _ in range(repeats):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        for _ in range(launches):
            launch()
        end.record()
        end.synchronize()
        seconds.append(1e-3 * cupy.cuda.get_elapsed_time(begin, end) / launches)
    return float(np.median(seconds))
