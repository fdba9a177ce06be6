"""What exchanges of ghost values cost by size: through shared memory or by messages, alone and behind a kernel.

    mpiexec -n 4 python benchmarks/halo.py -fe_device gpu -json benchmarks/results/halo_h200.json

Each rank has as many ghosts of each of its neighbours (`pair`: rank 0 with 1, 2 with 3; `all`: every other rank).
Seconds are those of the slowest rank, medians over repeats of several calls in a row.

    alone     of one exchange, owners → ghosts, with the device idle otherwise
    kernel    of a kernel that needs no ghosts;   with   of both, the kernel launched between begin and end
    exposed   with - kernel: what the kernel does not hide;  hidden  the share of `alone` that it does
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import petsc4py

petsc4py.init([])

from mpi4py import MPI  # noqa: E402

from petsc_hdg.codegen import KernelSpec  # noqa: E402
from petsc_hdg.device import Arrays, Device, Halo, Kernel  # noqa: E402
from petsc_hdg.output.atomic import atomic_file  # noqa: E402

comm = MPI.COMM_WORLD
SIZES = (1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22)  # bytes to each neighbour
LEAST = 0.01  # seconds of a measurement
ROUNDS = {True: 4096, False: 256}  # of the kernel, on GPUs and others


def neighbours(kind: str) -> np.ndarray:
    """Ranks that this one exchanges with."""
    if kind == "all":
        return np.flatnonzero(np.arange(comm.size) != comm.rank)
    other = comm.rank ^ 1
    return np.array([other] if other < comm.size else [], int)


def timed(device, call, repeats: int) -> float:
    """Seconds of a call, of the slowest rank, one after the other."""

    def once(count: int) -> float:
        device.finish()
        comm.Barrier()
        start = time.perf_counter()
        for _ in range(count):
            call()
        device.finish()
        return comm.allreduce(time.perf_counter() - start, MPI.MAX) / count

    once(2)
    count = int(np.clip(LEAST / once(3), 3, 300))
    return float(np.median([once(count) for _ in range(repeats)]))


def busy(device):
    """A launch that keeps the device at work for a while."""
    arrays = Arrays(device)
    items = 132 * 2048 if device.is_gpu else 64
    macros = {"CHAINS": 8, "ROUNDS": ROUNDS[device.is_gpu], "VECTOR": "double"}
    file = Path(__file__).with_name("kernels") / "bench_fma.cl"
    kernel = Kernel(KernelSpec("bench_fma", (str(file),), macros, local_size=128 if device.is_gpu else 1), device)
    out = arrays.empty(items)
    return lambda: kernel(items, 0.5, out)


def measured(device, way: str, kind: str, nbytes: int, repeats: int, kernel) -> dict:
    """One row."""
    device.halo = way
    arrays, others, count = Arrays(device), neighbours(kind), nbytes // 8
    size = max(1, 2 * count)
    ranks, places = np.repeat(others, count), np.tile(2 * np.arange(count), len(others))
    halo = Halo(comm, size, ranks, places, arrays, alone=False)
    owned, ghosts = arrays.to_device(np.full(size, float(comm.rank))), arrays.zeros(max(1, len(ranks)))

    def both():
        halo.forward_begin(owned)
        kernel()
        halo.forward_end(ghosts)

    alone = timed(device, lambda: halo.forward(owned, ghosts), repeats)
    found = {"alone": alone, "kernel": timed(device, kernel, repeats), "with": timed(device, both, repeats)}
    for shift in (0.25, 0.5, 0.75):  # what was there before is no answer
        arrays.upload(owned, np.full(size, comm.rank + shift), "new")
        halo.forward(owned, ghosts)
        assert np.array_equal(arrays.to_host(ghosts, len(ranks)), ranks + shift), "wrong ghosts"
    exposed = max(0.0, found["with"] - found["kernel"])
    shares = {"exposed": exposed, "hidden": 1 - min(1.0, exposed / alone)}
    return {"way": way, "neighbours": kind, "bytes": nbytes, **found, **shares}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-fe_device", default="any")
    parser.add_argument("-json", default="")
    parser.add_argument("-repeat", type=int, default=5)
    parser.add_argument("-sizes", type=int, nargs="+", default=SIZES)
    given = parser.parse_args()
    device = Device.select(given.fe_device, comm)
    names = comm.allgather(f"{device.name} {device.note}".strip())
    kernel, rows, notes = busy(device), [], set()
    for nbytes in given.sizes:
        for kind in ("pair", "all") if comm.size > 2 else ("pair",):
            for way in ("windows", "messages"):
                rows.append(measured(device, way, kind, nbytes, given.repeat, kernel))
                notes |= {f"{r.how}, {r.speed / 1e9:.0f} GB/s" for r in device.opened.registered.values()}
                if comm.rank == 0:
                    show(rows[-1])
                    if given.json:
                        with atomic_file(given.json) as file:
                            file.write(
                                json.dumps(
                                    {"devices": names, "rows": rows, "windows": sorted(notes)}, indent=1
                                ).encode()
                            )
    if comm.rank == 0 and notes:
        print("windows as the driver takes them:", "; ".join(sorted(notes)))


def show(row: dict) -> None:
    """A row in a line."""
    times = ", ".join(f"{name} {1e6 * row[name]:.1f}" for name in ("alone", "kernel", "with", "exposed"))
    print(f"{row['way']}, {row['neighbours']}, {row['bytes']} B: {times} us; hidden {row['hidden']:.2f}", flush=True)


main()
