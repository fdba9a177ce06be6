"""Traffic of a solve between host and device, and contents of the device's memory."""

from __future__ import annotations

import time
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace

from mpi4py.MPI import MAX
from petsc4py import PETSc

from ..device.memory import size
from ..value_checks import plural
from .linear import coarse_solvers, kept_levels


class Traffic:
    """Bytes of one solve on this rank.

    to_device, to_host  all of it
    callbacks           callback → {"calls", "h2d", "d2h"} of those that were called
    exchanges           Exchanges of ghost values
    seconds             of the solve
    PETSc's own copies (ViennaCL's vectors that the host reads) are not among them.
    """

    def __init__(self, arrays):
        self._arrays = arrays
        self._before = arrays.total(), deepcopy(arrays.callbacks), replace(arrays.device.exchanges)
        self._start, self.seconds, self.exchanges = time.perf_counter(), 0.0, None
        self.to_device = self.to_host = 0
        self.callbacks: dict[str, dict[str, int]] = {}

    def end(self) -> None:
        """Count what has been copied since this object was made."""
        totals, callbacks, exchanges = self._before
        self.seconds = time.perf_counter() - self._start
        self.exchanges = self._arrays.device.exchanges.since(exchanges)
        self.to_device, self.to_host = (a - b for a, b in zip(self._arrays.total(), totals, strict=True))
        for name, now in self._arrays.callbacks.items():
            before = callbacks.get(name, {})
            found = {key: count - before.get(key, 0) for key, count in now.items()}
            if found["calls"]:
                self.callbacks[name] = found


@contextmanager
def counted(problem):
    """Count what a solve copies as `problem.traffic`; with `-fe_view` say so. Collective."""
    problem.traffic = Traffic(problem.arrays)
    if "callbacks" in vars(problem):
        problem.callbacks.kept_levels.counts = [0, 0]
    try:
        yield
    finally:
        problem.traffic.end()
    if problem.options.view:
        PETSc.Sys.Print("\n".join(lines(problem)), comm=problem.petsc_comm)


def lines(problem) -> list[str]:
    """Bytes of the last solve over all ranks, by callback, and device memory. Collective."""
    traffic = problem.traffic
    own = {"": {"calls": 0, "h2d": traffic.to_device, "d2h": traffic.to_host}, **traffic.callbacks}
    ranks = problem.comm.allgather(own)
    said = []
    for name in sorted(set().union(*ranks)):
        found = [rank[name] for rank in ranks if name in rank]
        down, up = (sum(counts[key] for counts in found) for key in ("h2d", "d2h"))
        calls = max(counts["calls"] for counts in found)
        start = f"  {name}, {plural(calls, 'call')}: {size(down)}" if name else f"solve: {size(down)} copied"
        said.append(f"{start} to the device, {size(up)} to the host")
    vectors = f"  Vec mode: {problem.vec_mode} ({problem.vec_type} vectors)"
    levels = [*coarse_solvers.view(problem), *kept_levels.view(problem)]
    return [*said, *halo_lines(problem), *levels, memory_line(problem), vectors]


def halo_lines(problem) -> list[str]:
    """Exchanges of ghost values in the last solve: what all ranks sent, how long the one that waited most did."""
    comm, found, seconds = problem.comm, problem.traffic.exchanges, problem.traffic.seconds
    if comm.size == 1:
        return []
    count = comm.allreduce(found.count, MAX)
    waited, share = max(comm.allgather((found.waited, found.waited / max(seconds, 1e-9))))
    windows, messages = comm.allreduce(found.windows), comm.allreduce(found.messages)
    how = f"{size(windows)} by shared memory, {size(messages)} by messages"
    return [
        f"  halo, {plural(count, 'exchange')}: {how}; the host waited {waited:.3g} s, {100 * share:.1f} % of the solve"
    ]


def memory_line(problem) -> str:
    """Device memory of our buffers, on the rank that has most. Collective."""
    memory, comm = problem.device.memory, problem.comm
    held, most = comm.allreduce(memory.held, MAX), comm.allreduce(memory.most, MAX)
    of = f" of {size(problem.device.memory_bytes)}" + (" on a rank" if comm.size > 1 else "")
    return f"  device memory: {size(held)} held, {size(most)} at most,{of}"
