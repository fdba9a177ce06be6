"""`mpiexec -n N python benchmarks/bench scaling`: products and iterations of CG on 1 … N ranks, weak and strong.

-∇·∇u = 1 in a box of equal blocks, one a rank. Weak: the unknowns given are those of each rank. Strong: they are those
of each rank on the most ranks, and the whole stays. One call does all numbers of ranks, on the first of its own; those
that are left over sleep. Times are those of the slowest rank; "one sum" is an iteration with -ksp_cg_single_reduction.
`-read FILES` draws and predicts from rows of other runs.
What the problem reads from the command line (-hdg_trace_mat, -fe_pmat, -fe_device, …) holds for all cases.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
from mpi4py.MPI import COMM_TYPE_SHARED
from petsc4py import PETSc

from petsc_hdg import stages
from petsc_hdg.commands.arguments import own_arguments
from petsc_hdg.commands.bench import SPLIT, copy_bandwidth, poisson
from petsc_hdg.database import defaults_in_database
from petsc_hdg.device import Device
from petsc_hdg.errors import OptionError, collectively
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem

from . import scaling_view
from .blocks import Blocks
from .group import row_name
from .record import Record, add_options, release
from .scaling_time import Timed, links, spread
from .solve import FACTOR, unknowns_of_cell

MODES = ("weak", "strong")
CASES = {  # scheme: cell, degree
    "cg_gpu": ("quadrilateral", 4),
    "hdg_gpu": ("triangle", 5),
    "sipg_gpu": ("quadrilateral", 6),
    "poly_gpu": ("triangle", 3),
}
GPU_UNKNOWNS, CPU_UNKNOWNS = 1e6, 2e4  # of a rank


def main(arguments: list[str]) -> int:
    """Measure, print a line a case; with `-json FILE` write the rows too, with `-png FILE` draw them."""
    given, others = own_arguments(_parser(), arguments)
    world = PETSc.COMM_WORLD.tompi4py()
    if given.read:
        if world.rank == 0:
            rows = scaling_view.rows_of(given.read)
            print("\n".join([scaling_view.header(), *map(scaling_view.line, scaling_view.compared(rows))]))
            scaling_view.report(rows, given.png, given.network)
        return 0
    counts = _counts(given, world.size)
    most, cases = max(counts), [Case("links", n, partial(_links, repeats=given.repeat)) for n in counts]
    for mode, scheme, unknowns in product(given.modes, given.schemes, given.unknowns or (None,)):
        cell, degree = _shape(scheme, given)
        name = f"{row_name(f'scaling {mode} {scheme}', cell, degree)}, {_size(unknowns)}"
        make = partial(_row, mode=mode, scheme=scheme, unknowns=unknowns, most_ranks=most, given=given)
        cases += [Case(f"{name}, of {most}" if mode == "strong" else name, n, make) for n in counts]
    return _measure(world, cases, given, " ".join(others) or "none")


@dataclass(frozen=True)
class Case:
    """A row: what it is, on how many ranks, and make(comm), which measures it on that many."""

    what: str
    ranks: int
    make: Callable[..., dict]

    @property
    def name(self) -> str:
        """That of the row."""
        return f"{self.what}, ranks {self.ranks}"


def _measure(world, cases: list[Case], given, arguments: str) -> int:
    """Measure what the record of rank 0 lacks, and say what it holds then; the exit code. Collective.

    arguments: those for PETSc and for problems, which rows are measured with.
    """
    with collectively(world):
        record = Record.of(given, arguments=arguments) if world.rank == 0 else Record()
    _say(world, scaling_view.header())
    named, code, left = {case.name: case for case in cases}, 0, 0
    due = world.bcast(record.due(named))
    for index, name in enumerate(due):
        if world.bcast(record.is_over):
            left = len(due) - index
            break
        _on_first(world, named[name].ranks, partial(_kept, case=named[name], record=record))
    if world.rank == 0:
        if any(row["kernel"] == "scaling" for row in record.measured):
            scaling_view.report(record.measured, given.png, given.network)
        code = record.end(left)
    return world.bcast(code)


def _kept(comm, case: Case, record: Record) -> None:
    """Measure a case, print and keep its row; errors that all ranks have cost the row alone. Collective."""
    first = comm.rank == 0
    if first:
        record.begin(case.name)
    try:
        with collectively(comm):
            row = case.make(comm)
    except Exception as error:  # whatever one row fails for, others can be measured
        if first:
            record.fail([case.name], error)
        release(error)
        return
    if first:
        record.keep(case.name, row)
        if row["kernel"] == "scaling":
            print(scaling_view.line(scaling_view.compared(record.measured)[-1]), flush=True)


def _shape(scheme: str, given) -> tuple[str, int]:
    cell, degree = CASES[scheme]
    return given.cell or cell, given.degree or degree


def _size(unknowns: float | None) -> str:
    return "default unknowns" if unknowns is None else f"{unknowns:g} unknowns"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench scaling", allow_abbrev=False, description=__doc__)
    parser.add_argument("-schemes", nargs="+", default=["sipg_gpu"], choices=list(CASES))
    parser.add_argument("-modes", nargs="+", default=list(MODES), choices=MODES)
    parser.add_argument("-ranks", type=int, nargs="+", default=None, help="default: 1, 2, 4, … and all")
    parser.add_argument("-unknowns", type=float, nargs="+", default=None, help="of a rank (1e6 on a GPU, 2e4 on a CPU)")
    parser.add_argument("-cell", default=None, choices=list(SPLIT), help="instead of the scheme's default")
    parser.add_argument("-degree", type=int, default=None, help="instead of the scheme's default")
    parser.add_argument("-repeat", type=int, default=5, help="measurements; the median is given")
    add_options(parser)
    parser.add_argument("-png", default="", help="file that receives the picture")
    parser.add_argument("-read", nargs="+", default=[], help="files of rows: measure nothing")
    parser.add_argument(
        "-network",
        type=float,
        nargs=2,
        default=(5e-6, 2.5e10),
        help="seconds and bytes a second of a message between nodes, for predictions beyond one",
    )
    return parser


def _counts(given, size: int) -> list[int]:
    """Numbers of ranks, ascending. Raises OptionError for more than there are."""
    counts = given.ranks or sorted({*(2**k for k in range(size.bit_length()) if 2**k <= size), size})
    if not 1 <= min(counts) <= max(counts) <= size:
        raise OptionError(f"-ranks {' '.join(map(str, counts))}: this run has {size}; give numbers from 1 to {size}")
    return sorted(set(counts))


def _on_first(world, ranks: int, call) -> None:
    """call(comm) on the first ranks, while the others sleep. Collective."""
    comm = world.Split(0 if world.rank < ranks else 1, world.rank)
    try:
        if world.rank < ranks:
            call(comm)
            gc.collect()
        done = world.Ibarrier()
        while not done.Test():
            time.sleep(0.002)
    finally:
        comm.Free()


def _say(world, text: str) -> None:
    if world.rank == 0:
        print(text, flush=True)


def _links(comm, *, repeats: int) -> dict:
    """What ranks pay for each other, and the bandwidth of their devices. Collective."""
    device = Device.select(Options.from_petsc().device, comm)
    found = links(comm, device, repeats)
    copy = spread(comm, copy_bandwidth(device, repeats))
    return found | {"copy_GBs_same_run": copy[0] / 1e9, "copy_GBs_best_rank": copy[1] / 1e9}


def _row(comm, *, mode: str, scheme: str, unknowns, most_ranks: int, given) -> dict:
    """A case on the ranks of `comm`. Collective."""
    cell, degree = _shape(scheme, given)
    with defaults_in_database("", {"fe_pmat": "none"}, unless="fe_pmat"):
        options = Options.from_petsc(backend=scheme, degree=degree)
        device = Device.select(options.device, comm)
        asked = unknowns or (GPU_UNKNOWNS if device.is_gpu else CPU_UNKNOWNS)
        boxes = asked / _of_cell(scheme, cell, degree) / SPLIT[cell]
        if mode == "weak":
            blocks = Blocks.weak(cell, comm.size, boxes)
        else:
            blocks = Blocks.strong(cell, comm.size, boxes * most_ranks, most_ranks)
        before, start = dict(stages.SECONDS), time.perf_counter()
        mesh = blocks.mesh(comm)
        meshed = time.perf_counter() - start
        problem = Problem(mesh, poisson(), options)
        timed = Timed(problem, given.repeat)
        measured = timed.measured()
    setup = {n: s - before.get(n, 0.0) for n, s in stages.SECONDS.items() if n in ("discretize", "compile")}
    low, high = spread(comm, problem.discretization.dofmap.num_owned)
    return {
        "kernel": "scaling",
        "mode": mode,
        "scheme": scheme,
        "cell": cell,
        "degree": degree,
        "precision": options.precision,
        "device": device.name,
        "vec_mode": problem.vec_mode,
        "operator": _operator(problem),
        "ranks": comm.size,
        "nodes": _nodes(comm),
        "blocks": list(blocks.parts),
        "asked": asked,
        "cells": mesh.num_cells_all,
        "dofs": problem.num_unknowns,
        "dofs_rank": [low, high],
        "neighbour_blocks": blocks.neighbours,
        "setup_seconds": {"mesh": meshed, **setup, "linearize": timed.linearize_seconds},
        "device_memory_most": problem.device.memory.most,
        **measured,
    }


def _of_cell(scheme: str, cell: str, degree: int) -> float:
    """Unknowns over cells; each cell is a polytope here."""
    return unknowns_of_cell(scheme, cell, degree) * (FACTOR if scheme == "poly_gpu" else 1)


def _operator(problem) -> str:
    """How the product is computed, in a few words."""
    said = (getattr(problem.operator, name, "") for name in ("storage", "product"))
    return next(filter(None, said), "matrix-free" if problem.pmat == "none" else problem.pmat)


def _nodes(comm) -> int:
    node = comm.Split_type(COMM_TYPE_SHARED)
    first = int(node.rank == 0)
    node.Free()
    return int(np.sum(comm.allgather(first)))
