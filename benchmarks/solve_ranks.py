"""Whole solves over ranks with the default preconditioner, and what an application of it sends and launches by level.

    mpiexec -n 2 python benchmarks/solve_ranks.py -fe_device gpu -unknowns 4e6 -json rows.json

Linear rows solve -∇·∇u = 1 to 1e-8 as `bench solve` does; "nonlinear" is the first case of whole_solves.py of its cell,
with a quarter of the unknowns. Rows of several runs, of one and of two ranks, are compared by `-read FILES`.

seconds_median   of a solve whose matrix and preconditioner are there, the slowest rank's; cold_seconds: the mesh, the
                 problem and the first solve
iteration        exchanges of ghost values, gathers of a level on every rank, sums over ranks, bytes that this rank
                 sent, and seconds in which its host waited for them
alone_seconds    of a product, an application of the preconditioner, its coarse level, the gather to that, and a sum
                 over ranks, each timed by itself
levels           launches, exchanges, gathers of an application by number of unknowns of this rank's level
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from unittest import mock

import numpy as np
import petsc4py

import petsc_hdg as fe  # before MPI starts, so that the vectors of a rank live on its GPU

petsc4py.init(sys.argv)

from bench import solve  # noqa: E402
from bench.scaling_time import Clock  # noqa: E402
from petsc4py import PETSc  # noqa: E402
from whole_solves import physics  # noqa: E402

from petsc_hdg.commands.bench import poisson  # noqa: E402
from petsc_hdg.database import defaults_in_database  # noqa: E402
from petsc_hdg.device import AllGather, Halo, Kernel, Recorded  # noqa: E402
from petsc_hdg.device.halo_links import Links  # noqa: E402
from petsc_hdg.krylov.multigrid import Multigrid  # noqa: E402
from petsc_hdg.krylov.vectors import BlockSums, Vectors  # noqa: E402
from petsc_hdg.options import Options  # noqa: E402
from petsc_hdg.output.atomic import atomic_file  # noqa: E402

CASES = {  # name: scheme, cell, degree
    "cg quads p3": ("cg_gpu", "quadrilateral", 3),
    "hdg triangles p5": ("hdg_gpu", "triangle", 5),
    "sipg quads p4": ("sipg_gpu", "quadrilateral", 4),
    "nonlinear cg triangles p2": ("cg_gpu", "triangle", 2),
}
PART = 0.25  # of the unknowns, for the nonlinear case
COLUMNS = ("case", "ranks", "unknowns", "its", "solve ms", "of one", "PC", "exchanges", "gathers", "sums", "cold s")


class Counts:
    """Launches, exchanges, gathers and sums by the level that they belong to, while `watched`."""

    def __init__(self):
        self.of: dict[str, Counter] = {}
        self._level = ["iteration"]

    def add(self, what: str) -> None:
        """Count one of a kind on the present level."""
        self.of.setdefault(self._level[-1], Counter())[what] += 1

    def _counted(self, stack: ExitStack, owner, name: str, what: str) -> None:
        call = getattr(owner, name)

        def run(thing, *arguments, **named):
            if not getattr(thing, "_is_first", False):  # a first launch launches again
                self.add(what)
            return call(thing, *arguments, **named)

        stack.enter_context(mock.patch.object(owner, name, run))

    def _labelled(self, stack: ExitStack, thing, name: str, level: str) -> None:
        call = getattr(thing, name)

        def run(*arguments, **named):
            self._level.append(level)
            try:
                return call(*arguments, **named)
            finally:
                self._level.pop()

        stack.enter_context(mock.patch.object(thing, name, run))

    def watched(self, multigrid) -> ExitStack:
        """Context manager: count what is launched inside, by the levels of a Multigrid, and of its coarse solver."""
        stack = ExitStack()
        self._counted(stack, Kernel, "_launch", "launches")
        self._counted(stack, Halo, "_count", "exchanges")  # by kernels
        self._counted(stack, Links, "receive", "exchanges")  # through the host
        self._counted(stack, AllGather, "gather", "gathers")
        self._counted(stack, BlockSums, "share", "sums")
        unrecorded = mock.patch.object(Recorded, "run", lambda self, function, *buffers: function(*buffers))
        stack.enter_context(unrecorded)  # a recorded sequence passes no level
        for each in multigrids(multigrid):
            for level in each.levels:
                name = str(level.total)
                for part, calls in PARTS.items():
                    for call in calls:
                        if hasattr(getattr(level, part), call):
                            self._labelled(stack, getattr(level, part), call, name)
            self._labelled(stack, each.coarse, "apply", "coarsest" if not is_multigrid(each.coarse) else "coarse")
        return stack


PARTS = {
    "smoother": ("smooth", "begin"),
    "operator": ("residual",),
    "restriction": ("apply",),
    "interpolation": ("add",),
}


def is_multigrid(thing) -> bool:
    """True if a coarse solver has levels."""
    return isinstance(thing, Multigrid)


def multigrids(multigrid) -> list:
    """A Multigrid, and those that solve its coarsest levels."""
    found = []
    while is_multigrid(multigrid):
        found.append(multigrid)
        multigrid = multigrid.coarse
    return found


def linear(name: str, unknowns: float, comm) -> dict:
    """A row of a linear solve. Collective."""
    scheme, cell, degree = CASES[name]
    start = time.perf_counter()
    with ExitStack() as stack:
        for defaults, unless in solve.SOLVER:
            stack.enter_context(defaults_in_database("", defaults, unless=unless))
        options = Options.from_petsc(backend=scheme, degree=degree)
        faces = solve.faces_for(scheme, cell, degree, unknowns)
        problem = fe.Problem(fe.Mesh.box(faces, simplex=cell == "triangle"), poisson(), options)
        timed = solve.Solve(problem, repeats=5)
    cold = time.perf_counter() - start
    row = timed.row()
    wanted = ("seconds_median", "iterations", "first_seconds", "true_residual", "seconds", "pmat")
    found = {"cold_seconds": cold - sum(timed.seconds), **{key: row[key] for key in wanted}}
    found["preconditioner_share"] = row["seconds"]["preconditioner"] / row["seconds_median"]
    return row_of(name, problem, comm, found) | counted(timed, comm)


def counted(timed, comm) -> dict:
    """Counts of an iteration and of an application of the preconditioner, and seconds of its parts. Collective."""
    context, problem = timed.ksp.getPythonContext(), timed.problem
    if not hasattr(context, "preconditioner") or not is_multigrid(context.preconditioner.inner):
        return {"preconditioner": problem.default_pc}
    multigrid, vectors, counts = context.preconditioner.inner, context.vectors, Counts()
    x = vectors.arrays.to_device(np.random.default_rng(3).uniform(-1, 1, max(1, vectors.count)))
    y = vectors.arrays.zeros(max(1, vectors.count))
    with counts.watched(multigrid):
        context.preconditioner.apply(x, y)
    parts = multigrids(multigrid)
    for each in parts:
        each.forget()
    levels = {name: dict(of) for name, of in counts.of.items()}
    passed, of, count = solve_counts(timed, multigrid)
    iteration = {
        "exchanges": (passed.count - of["gathers"] - (of["sums"] if passed.peers else 0)) / count,
        "gathers": of["gathers"] / count,
        "sums": of["sums"] / count,
        "launches": of["launches"] / count,
        "bytes": (passed.peers + passed.windows + passed.messages) / count,
        "waited_seconds": passed.waited / count,
    }
    clock, alone = Clock(comm, problem.device), {}
    repeats = 5
    alone["product"] = clock.median(lambda: context.matrix.mult(x, y), repeats)
    alone["preconditioner"] = clock.median(lambda: context.preconditioner.apply(x, y), repeats)
    if multigrid.levels:
        level = multigrid.levels[-1]
        b, found = level.below_b, level.below_x
        alone["smoother"] = clock.median(lambda: level.smoother.smooth(x, y, True), repeats)
        alone["restriction"] = clock.median(lambda: level.restriction.apply(x, b), repeats)
        alone["interpolation"] = clock.median(lambda: level.interpolation.add(found, y), repeats)
        alone["coarse"] = clock.median(lambda: multigrid.coarse.apply(b, found), repeats)
        gather = getattr(level.restriction, "gather", None)
        if gather is not None:
            sent, whole = (vectors.arrays.zeros(size) for size in (gather.counts[comm.rank], gather.total))
            alone["gather"] = clock.median(lambda: gather.gather(sent, whole), repeats)
    alone["sum"] = clock.median(lambda: vectors.over_ranks(np.zeros(4)), repeats)
    return {"iteration": iteration, "alone_seconds": alone, "levels": levels, "view": [each.note for each in parts]}


def solve_counts(timed, multigrid):
    """(Exchanges, Counter of launches, gathers and sums, iterations) of a solve. Collective."""
    exchanges, counts = timed.problem.device.exchanges, Counts()
    before = type(exchanges)(**asdict(exchanges))
    call = Vectors.over_ranks

    def over_ranks(self, values):
        if self.comm.size > 1:
            counts.add("sums")
        return call(self, values)

    with counts.watched(multigrid), mock.patch.object(Vectors, "over_ranks", over_ranks):
        timed.ksp.solve(timed.b, timed.x)
    for each in multigrids(multigrid):
        each.forget()
    return exchanges.since(before), sum(counts.of.values(), Counter()), max(1, timed.ksp.getIterationNumber())


def nonlinear(name: str, unknowns: float, comm) -> dict:
    """A row of a nonlinear solve with default options, cold and again. Collective."""
    scheme, cell, degree = CASES[name]
    start = time.perf_counter()
    edge = max(2, round((unknowns * PART / degree**2) ** 0.5))
    problem = fe.Problem(fe.Mesh.box((edge,) * 2, simplex=True), physics("nonlinear"), backend=scheme, degree=degree)
    problem.solve()
    problem.device.finish()
    found, seconds = {"cold_seconds": time.perf_counter() - start}, []
    for _ in range(3):
        comm.Barrier()
        start = time.perf_counter()
        problem.solve()
        problem.device.finish()
        seconds.append(time.perf_counter() - start)
    found |= {"seconds_median": float(np.median(seconds)), "newton": problem.newton_iterations}
    return row_of(name, problem, comm, found | {"iterations": problem.linear_iterations})


def row_of(name: str, problem, comm, found: dict) -> dict:
    """What all rows say; seconds are those of the slowest rank. Collective."""
    for key in ("seconds_median", "cold_seconds"):
        found[key] = max(comm.allgather(found[key]))
    scheme, cell, degree = CASES[name]
    about = {"case": name, "scheme": scheme, "cell": cell, "degree": degree, "ranks": comm.size}
    return about | {"dofs": problem.num_unknowns, "device": problem.device.name, **found}


def line(row: dict, others: list[dict]) -> str:
    """A row of the table; `others` may have the same case on one rank."""
    one = [each["seconds_median"] for each in others if each["case"] == row["case"] and each["ranks"] == 1]
    sent, share = row.get("iteration", {}), row.get("preconditioner_share")
    cells = (row["case"], row["ranks"], row["dofs"], row["iterations"], f"{1e3 * row['seconds_median']:.1f}")
    cells += (f"{row['seconds_median'] / one[0]:.2f}" if one else "", "" if share is None else f"{share:.2f}")
    cells += tuple(f"{sent[key]:.1f}" if sent else "" for key in ("exchanges", "gathers", "sums"))
    return _line((*cells, f"{row['cold_seconds']:.1f}"))


def _line(cells) -> str:
    return " | ".join(f"{cell!s:<26}" if i == 0 else f"{cell!s:>9}" for i, cell in enumerate(cells))


def main() -> None:
    """Measure, print a line and the row of each case, and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("-unknowns", type=float, default=4e6)
    parser.add_argument("-cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("-json", default="", help="file that receives the rows")
    parser.add_argument("-read", nargs="+", default=[], help="files of rows: measure nothing, compare them")
    given, _ = parser.parse_known_args()
    comm, rows = PETSc.COMM_WORLD.tompi4py(), []
    PETSc.Log.begin()
    if comm.rank == 0:
        print(_line(COLUMNS), flush=True)
    for path in given.read:
        with open(path, encoding="utf-8") as file:
            rows += json.load(file)
    for row in sorted(rows, key=lambda row: (list(CASES).index(row["case"]), row["dofs"], row["ranks"])):
        print(line(row, [each for each in rows if each["dofs"] == row["dofs"]]))
    for name in () if given.read else given.cases:
        rows.append((nonlinear if name.startswith("nonlinear") else linear)(name, given.unknowns, comm))
        if comm.rank == 0:
            print(line(rows[-1], rows), json.dumps(rows[-1]), sep="\n", flush=True)
            if given.json:
                with atomic_file(given.json) as file:
                    file.write(json.dumps(rows, indent=1).encode())


if __name__ == "__main__":
    main()
