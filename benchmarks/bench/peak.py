"""Arithmetic peak of a device, measured: the limit of kernels that compute more than they move."""

from __future__ import annotations

from pathlib import Path

from petsc_hdg.codegen import KernelSpec
from petsc_hdg.commands.bench import median_seconds
from petsc_hdg.device import Arrays, Kernel

CHAINS, ROUNDS = 16, 1024
GPU_ITEMS, CPU_ITEMS = 1 << 20, 1 << 10
CPU_BYTES = 64  # of a vector register, on CPUs that have them


def kernel_file(name: str) -> str:
    """Path of a kernel file of the benchmarks."""
    return str(Path(__file__).parents[1] / "kernels" / name)


def arithmetic_peak(device, precision: str = "double", repeats: int = 9) -> float:
    """Flops a second of fused multiply-adds, two flops each, on values in registers (the best of `repeats`)."""
    kind, size = {"double": ("double", 8), "single": ("float", 4)}[precision]
    lanes = 1 if device.is_gpu else CPU_BYTES // size
    items = GPU_ITEMS if device.is_gpu else CPU_ITEMS
    macros = {"CHAINS": CHAINS, "ROUNDS": ROUNDS, "VECTOR": kind if lanes == 1 else f"{kind}{lanes}"}
    size = 128 if lanes == 1 else 1
    spec = KernelSpec("bench_fma", (kernel_file("bench_fma.cl"),), macros, precision=precision, local_size=size)
    kernel, out = Kernel(spec, device), Arrays(device, precision).empty(items * lanes)
    seconds = min(median_seconds(device, lambda: kernel(items, 0.999, out), 1) for _ in range(repeats))
    return 2.0 * CHAINS * ROUNDS * items * lanes / seconds
