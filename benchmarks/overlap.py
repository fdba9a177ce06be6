"""What of the exchange of ghosts a product hides, on all ranks, without and with a second queue of the device.

    mpiexec -n 4 python benchmarks/overlap.py -fe_device gpu -schemes sipg_gpu hdg_gpu -unknowns 2e7 -json FILE

Seconds of products with the matrix of each scheme, of the slowest rank, medians: `alone` without any exchange,
`waiting` with the exchange before all kernels, `one queue` with inner kernels meanwhile, `two queues` with outer ones
beside them.
"""

from __future__ import annotations

import argparse
import json
import sys
from unittest import mock

import numpy as np
import petsc4py

petsc4py.init(sys.argv)

from bench.blocks import Blocks  # noqa: E402
from bench.scaling import CASES, _of_cell  # noqa: E402
from bench.scaling_time import Timed, without_halo  # noqa: E402
from mpi4py import MPI  # noqa: E402

from petsc_hdg.commands.bench import SPLIT, poisson  # noqa: E402
from petsc_hdg.device import halo  # noqa: E402
from petsc_hdg.operators.vectors import TailedVector  # noqa: E402
from petsc_hdg.options import Options  # noqa: E402
from petsc_hdg.output.atomic import atomic_file  # noqa: E402
from petsc_hdg.problem import Problem  # noqa: E402


def begin_and_end(self, owned):
    """In the place of TailedVector.begin: nothing runs meanwhile."""
    return self.use(owned)


def measured(comm, scheme: str, unknowns: float, repeats: int) -> dict:
    """One row."""
    halo.FEW = 0  # kernels go beside exchanges however few unknowns there are
    cell, degree = CASES[scheme]
    blocks = Blocks.weak(cell, comm.size, unknowns / _of_cell(scheme, cell, degree) / SPLIT[cell])
    problem = Problem(blocks.mesh(comm), poisson(), Options.from_petsc(backend=scheme, degree=degree, pmat="none"))
    timed = Timed(problem, repeats)
    count, device = timed.b.getLocalSize(), problem.device
    x = timed.arrays.to_device(np.random.default_rng(comm.rank).uniform(-1, 1, max(1, count)))
    y = timed.arrays.zeros(max(1, count))

    def seconds() -> float:
        return timed.clock.median(lambda: timed.matrix.mult(x, y), repeats)

    found = {"one queue": seconds()}
    device.two_queues = True
    found["two queues"] = seconds()
    with without_halo():
        found["two queues alone"] = seconds()
    device.two_queues = False
    with without_halo():
        found["alone"] = seconds()
    end = mock.patch.object(TailedVector, "end", lambda self: self)
    with mock.patch.object(TailedVector, "begin", begin_and_end), end:
        found["waiting"] = seconds()
    what = {"scheme": scheme, "cell": cell, "degree": degree, "ranks": comm.size, "unknowns_of_rank": count}
    return what | {"seconds": found, "device": device.name}


def main() -> None:
    comm = MPI.COMM_WORLD
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-schemes", nargs="+", default=["sipg_gpu"], choices=list(CASES))
    parser.add_argument("-unknowns", type=float, nargs="+", default=[1e6], help="of a rank")
    parser.add_argument("-repeat", type=int, default=5)
    parser.add_argument("-json", default="")
    given, rows = parser.parse_known_args()[0], []
    for scheme in given.schemes:
        for unknowns in given.unknowns:
            rows.append(measured(comm, scheme, unknowns, given.repeat))
            if comm.rank == 0:
                times = ", ".join(f"{name} {1e6 * value:.1f} us" for name, value in rows[-1]["seconds"].items())
                print(f"{scheme}, {rows[-1]['unknowns_of_rank']} unknowns a rank: {times}", flush=True)
                if given.json:
                    with atomic_file(given.json) as file:
                        file.write(json.dumps(rows, indent=1).encode())


main()
