"""Under mpiexec: whole solves whose exchanges and sums are launches alone, beside those that go through the host.

Prints {scheme: [iterations by windows, by peers, largest difference of the solutions, exchanges]}.
"""

import json

import numpy as np
from mpi4py import MPI

import petsc_hdg as fe
from petsc_hdg.run import guarded

COMM = MPI.COMM_WORLD
SCHEMES = {"cg_gpu": (3, False), "hdg_gpu": (2, True), "sipg_gpu": (3, False), "poly_gpu": (2, True)}


def solved(scheme: str, degree: int, simplex: bool, way: str):
    """The problem and its solution [unknown of this rank]."""
    flux = "for (d = 0; d < dim; ++d) f1[d] = (1 + x[0])*u_x[d];"
    boundary = [fe.Dirichlet("left", "g[0] = x[1];")]
    physics = fe.Physics({"u": 1}, "f0[0] = -1;", flux, boundary=boundary)
    problem = fe.Problem(fe.Mesh.box((12, 10), simplex=simplex), physics, backend=scheme, degree=degree, halo=way)
    problem.device.has_solvers = True
    return problem, problem.solve().getArray()


@guarded
def main() -> None:
    rows = {}
    for scheme, given in SCHEMES.items():
        (one, u), (other, v) = (solved(scheme, *given, way) for way in ("windows", "peers"))
        parts = COMM.allgather((np.abs(u - v).max(initial=0), np.abs(u).max(initial=0)))
        over, largest = map(max, zip(*parts, strict=True))
        exchanges = other.device.exchanges
        assert exchanges.peers > 0 and exchanges.windows == exchanges.messages == 0
        rows[scheme] = [one.linear_iterations, other.linear_iterations, over / largest, exchanges.count]
    if COMM.rank == 0:
        print(json.dumps(rows))
