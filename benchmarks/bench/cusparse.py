"""The peers of products: cuSPARSE's CSR product with the same entries, through cupy, and its BSR product, through
torch, where these import."""

from __future__ import annotations

import warnings

import numpy as np

CUDA_REAL = {"float32": 0, "float64": 1}  # cudaDataType


def csr_seconds(layout, arrays, repeats: int) -> dict[str, float]:
    """`product_seconds` of a trace matrix with a layout of dense blocks."""
    csr, bsr = lambda xp: csr_pattern(layout, xp), lambda: bsr_pattern(layout)  # noqa: E731
    return product_seconds(csr, bsr, layout.block, arrays, repeats)


def product_seconds(csr, bsr, block: int, arrays, repeats: int) -> dict[str, float]:
    """ "cusparse csr" and "cusparse bsr": median seconds of a product with random values; {} without an NVIDIA GPU, and
    without the one whose package is missing.

    csr(xp): rows start [row + 1] and columns [entry], arrays of numpy or cupy.   bsr(): the same of blocks of so many
    rows and columns, of numpy.
    """
    if not arrays.device.is_gpu or "nvidia" not in arrays.device.platform.lower():
        return {}
    arrays.device.finish()
    return {**_by_cupy(csr, arrays.real, repeats), **_by_torch(bsr, block, arrays.real, repeats)}


def _by_cupy(csr, real, repeats: int) -> dict[str, float]:
    try:
        import cupy
    except ImportError:
        return {}
    event = lambda: cupy.cuda.Event()  # noqa: E731
    launch = _product(cupy, *csr(cupy), real)
    seconds = _median(event, lambda a, b: 1e-3 * cupy.cuda.get_elapsed_time(a, b), launch, repeats)
    del launch
    cupy.get_default_memory_pool().free_all_blocks()
    return {"cusparse csr": seconds}


def _by_torch(bsr, block: int, real, repeats: int) -> dict[str, float]:
    """Blocks of one by one are CSR, which has its own peer."""
    try:
        import torch
    except ImportError:
        return {}
    if block == 1:
        return {}
    event = lambda: torch.cuda.Event(enable_timing=True)  # noqa: E731
    try:
        launch = _block_product(torch, *bsr(), block, real)
        seconds = _median(event, lambda a, b: 1e-3 * a.elapsed_time(b), launch, repeats)
    except RuntimeError:  # a torch without cuSPARSE, or no memory left
        return {}
    del launch
    torch.cuda.empty_cache()
    return {"cusparse bsr": seconds}


def _block_product(torch, start, columns, block: int, real):
    """A launch of torch's product with a BSR matrix, which is cuSPARSE's."""
    made = {"device": "cuda", "dtype": getattr(torch, real.name)}
    size, blocks = (len(start) - 1) * block, torch.rand((len(columns), block, block), **made)
    start, columns = (torch.from_numpy(a).to("cuda") for a in (start, columns))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the format is young
        matrix = torch.sparse_bsr_tensor(start, columns, blocks, size=(size, size), check_invariants=False)
    x = torch.rand(size, **made)
    return lambda: torch.mv(matrix, x)


def _product(cupy, start, columns, real):
    """A launch of cusparseSpMV, whose descriptors and buffer are made once, so that its time is that of the kernel."""
    from cupy_backends.cuda.libs import cusparse
    from cupyx.cusparse import DnVecDescriptor, SpMatDescriptor
    from cupyx.scipy.sparse import csr_matrix

    random, count = cupy.random.default_rng(1), len(start) - 1
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


def bsr_pattern(layout):
    """Rows start [block row + 1] and columns [block] int32, ascending in each row."""
    neighbours = np.asarray(layout.neighbours)
    last = neighbours.dtype.type(layout.num_facets)  # stands for none, and is sorted behind all facets
    blocks = np.sort(np.where(neighbours < 0, last, neighbours), axis=0).T  # [facet, slot]
    present = blocks < last
    start = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    return start.astype(np.int32), blocks[present].astype(np.int32)


def _median(event, elapsed, launch, repeats: int, launches: int = 10) -> float:
    """Median seconds of a launch; event() makes an event, elapsed(a, b): seconds between two."""
    launch()
    seconds = []
    for _ in range(repeats):
        begin, end = event(), event()
        begin.record()
        for _ in range(launches):
            launch()
        end.record()
        end.synchronize()
        seconds.append(elapsed(begin, end) / launches)
    return float(np.median(seconds))
