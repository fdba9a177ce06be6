"""What a scaling run times: products and iterations of conjugate gradients of a problem, with and without its halo."""

from __future__ import annotations

import time
from unittest import mock

import numpy as np
from mpi4py.MPI import MAX, MIN
from petsc4py import PETSc

from petsc_hdg.device import Arrays
from petsc_hdg.device.halo import Halo

ENTRIES = ("forward", "forward_begin", "forward_end", "reverse_add", "reverse_add_begin", "reverse_add_end")
SHORT, LONG = 3, 33  # iterations of two solves, whose difference is an iteration's time
PATIENCE = 10  # times that pairs of them are repeated
LEAST = 0.02  # seconds of a measurement
LINK_VALUES = (1 << 10, 1 << 14, 1 << 17, 1 << 19)  # a rank sends to one neighbour, and takes from another
WAITS = 10  # products over which what halos copy and wait is averaged
REDUCED = 4  # numbers that an iteration sums at once


def without_halo():
    """Context manager: no rank exchanges ghosts inside it: what a product takes by itself."""
    return mock.patch.object(Halo, "muted", True)


def halo_calls(product) -> list:
    """The calls (halo, name, arguments) by which a product exchanges ghosts, in their order. Collective."""
    found, inside = [], []

    def watched(name):
        call = getattr(Halo, name)

        def run(self, *arguments):
            if not inside:
                found.append((self, name, arguments))
            inside.append(name)
            try:
                return call(self, *arguments)
            finally:
                inside.pop()

        return run

    with mock.patch.multiple(Halo, **{name: watched(name) for name in ENTRIES}):
        product()
    return found


def replay(calls: list) -> None:
    """Exchange ghosts as `calls` of a product did, and do nothing else. Collective."""
    for halo, name, arguments in calls:
        getattr(halo, name)(*arguments)


class Clock:
    """Seconds of what the ranks of `comm` (mpi4py) do together on `device`: those of the slowest."""

    def __init__(self, comm, device):
        self.comm, self.device = comm, device

    def once(self, call, launches: int = 1) -> float:
        """Seconds of one of several calls in a row, the device's queue empty before and after. Collective."""
        self.device.finish()
        self.comm.Barrier()
        start = time.perf_counter()
        for _ in range(launches):
            call()
        self.device.finish()
        return self.comm.allreduce(time.perf_counter() - start, MAX) / launches

    def median(self, call, repeats: int) -> float:
        """Median of several measurements, each of enough calls. Collective."""
        call()
        launches = int(np.clip(LEAST / max(self.once(call), 1e-6), 1, 200))
        return float(np.median([self.once(call, launches) for _ in range(repeats)]))


class Timed:
    """A linear problem made ready, its state linearized, with a device CG and Jacobi that does what it is told.

    problem: Problem of any scheme, with a matrix or without.   repeats: measurements; medians are given.
    """

    def __init__(self, problem, repeats: int):
        self.problem, self.repeats = problem, repeats
        self.clock = Clock(problem.comm, problem.device)
        calls, start = problem.callbacks, time.perf_counter()
        calls.linearize(None, problem.create_vec(), calls.jacobian, calls.preconditioning)
        self.b, self.x = problem.create_vec(), problem.create_vec()
        self.b.setArray(np.random.default_rng([3, problem.comm.rank]).uniform(-1, 1, self.b.getLocalSize()))
        self.ksp = self._made(single_reduction=False)
        self.linearize_seconds = time.perf_counter() - start
        context = self.ksp.getPythonContext()
        self.arrays, self.matrix = context.vectors.arrays, context.matrix

    def _made(self, single_reduction: bool) -> PETSc.KSP:
        """CG with one sum over ranks an iteration, or with two, compiled. Collective."""
        calls = self.problem.callbacks
        ksp = PETSc.KSP().create(self.problem.dm.comm)
        ksp.setOperators(calls.jacobian, calls.preconditioning)
        ksp.setType("python")
        ksp.setPythonType("petsc_hdg.CG")
        ksp.getPythonContext().single_reduction = single_reduction
        ksp.getPC().setType("jacobi")
        self._solve(ksp, SHORT)
        self.problem.device.finish()
        return ksp

    def _solve(self, ksp: PETSc.KSP, iterations: int) -> None:
        ksp.setTolerances(rtol=1e-300, atol=1e-300, max_it=iterations)
        ksp.solve(self.b, self.x)
        if ksp.getIterationNumber() != iterations:
            raise RuntimeError(f"CG stopped after {ksp.getIterationNumber()} of {iterations} iterations")

    def measured(self) -> dict:
        """Seconds of a product, of one without halo, of the halo alone, of an iteration, and of one with a single sum
        over ranks; what the halo copies.

        Bytes are those that the rank with most of them copies to the host for a product. Collective.
        """
        count = self.b.getLocalSize()
        x = self.arrays.to_device(np.random.default_rng([4, self.problem.comm.rank]).uniform(-1, 1, max(1, count)))
        y = self.arrays.zeros(max(1, count))

        def product():
            self.matrix.mult(x, y)

        whole = self.clock.median(product, self.repeats)
        with without_halo():
            alone = self.clock.median(product, self.repeats)
        exchanges = halo_calls(product)
        several = self.problem.comm.size > 1
        return {
            "product_seconds": whole,
            "product_seconds_without_halo": alone,
            "halo_seconds_alone": self.clock.median(lambda: replay(exchanges), self.repeats) if several else 0.0,
            "iteration_seconds": self._iteration(self.ksp),
            "single_reduction_seconds": self._single_reduction(),
            **self._sent(product, exchanges),
        }

    def _iteration(self, ksp: PETSc.KSP) -> float:
        """Seconds of an iteration: least times of long solves less those of short ones, as a solve's own costs vary.

        Pairs of solves are repeated until the long ones take longer. Raises RuntimeError where they never do.
        """
        found: list[float] = []
        for _ in range(PATIENCE):
            for _ in range(self.repeats):
                found += [self.clock.once(lambda n=n: self._solve(ksp, n)) for n in (SHORT, LONG)]
            if (difference := min(found[1::2]) - min(found[::2])) > 0.01 * min(found[::2]):
                return difference / (LONG - SHORT)
        raise RuntimeError(
            f"{LONG} iterations take no longer than {SHORT}, as times vary: give more -unknowns or more to -repeat"
        )

    def _single_reduction(self) -> float:
        """Seconds of an iteration with one sum over ranks, whose vectors are there only meanwhile. Collective."""
        ksp = self._made(single_reduction=True)
        try:
            return self._iteration(ksp)
        finally:
            ksp.destroy()

    def _sent(self, product, exchanges: list) -> dict:
        """What a product's halo costs the rank that has most: bytes to the host, of these through shared windows and by
        messages, neighbours, seconds in which the host waits (kernels maybe running).
        """
        comm, counted = self.problem.comm, self.problem.device.exchanges
        before = self._copied(), counted.windows, counted.messages, counted.waited
        for _ in range(WAITS):
            product()
        after = self._copied(), counted.windows, counted.messages, counted.waited
        names = ("halo_bytes", "window_bytes", "message_bytes", "host_wait_seconds")
        found = {n: (a - b) / WAITS for n, a, b in zip(names, after, before, strict=True)}
        found["neighbours"] = max((len(halo.plan.send_ranks) for halo, *_ in exchanges), default=0)
        return {name: comm.allreduce(value, MAX) for name, value in found.items()}

    def _copied(self) -> int:
        """Bytes of halos to the host so far."""
        return self.arrays.d2h.get("halo", 0)


def links(comm, device, repeats: int) -> dict:
    """What the ranks' exchange costs by itself: (bytes, seconds) of halos in a ring, of a sum over ranks, of a launch.

    Collective.
    """
    arrays, clock = Arrays(device), Clock(comm, device)
    found = []
    for values in LINK_VALUES if comm.size > 1 else ():
        if not device.is_gpu and values > LINK_VALUES[2]:
            continue
        owner = np.full(values, (comm.rank + 1) % comm.size)
        halo = Halo(comm, values, owner, np.arange(values), arrays, alone=False)  # as that of larger vectors
        owned, ghosts = arrays.zeros(values), arrays.zeros(values)
        found.append((8 * values, clock.median(lambda h=halo, a=owned, b=ghosts: h.forward(a, b), repeats)))
        halo.destroy()
    sums, total = np.zeros(REDUCED), np.zeros(REDUCED)
    small = arrays.zeros(1)
    return {
        "kernel": "links",
        "ranks": comm.size,
        "device": device.name,
        "halo": found,
        "allreduce_seconds": clock.median(lambda: comm.Allreduce(sums, total), repeats),
        "launch_seconds": clock.median(lambda: arrays.fill(small), repeats),
    }


def spread(comm, value: float) -> tuple[float, float]:
    """Smallest and largest of the ranks' values. Collective."""
    return comm.allreduce(value, MIN), comm.allreduce(value, MAX)
