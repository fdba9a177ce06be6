"""Under mpiexec: whole solves whose exchanges and sums are launches alone, beside those that go through the host.

Prints {scheme: [iterations by windows, by peers, largest difference of the solutions, exchanges, largest error of a
product fused with an update], "alone": [iterations, exchanges of cg_gpu with all cells on one rank]}.
"""

import json

import numpy as np
from mpi4py import MPI
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.run import guarded

COMM = MPI.COMM_WORLD
SCHEMES = {"cg_gpu": (3, False), "hdg_gpu": (2, True), "sipg_gpu": (3, False), "poly_gpu": (2, True)}


def solved(scheme: str, degree: int, simplex: bool, way: str):
    """The problem and its solution [unknown of this rank]."""
    flux = "for (d = 0; d < dim; ++d) f1[d] = (1 + x[0])*u_x[d];"
    boundary = [fe.Dirichlet("left", "g[0] = x[1];")]
    boundary.append(fe.Robin("right", "f0[0] = u[0] - x[1];"))
    physics = fe.Physics({"u": 1}, "f0[0] = -1;", flux, boundary=boundary)
    problem = fe.Problem(fe.Mesh.box((12, 10), simplex=simplex), physics, backend=scheme, degree=degree, halo=way)
    problem.device.has_solvers = True
    return problem, problem.solve().getArray()


def error_of_step(problem) -> float:
    """Largest difference, over ranks, of a fused product and update from the product and numpy; 0 where none fuses."""
    if not getattr(problem.operator, "fuses", False):
        return 0.0
    context, arrays = problem.callbacks.jacobian.getPythonContext(), problem.arrays
    rng, count = np.random.default_rng(COMM.rank), problem.create_vec().getLocalSize()
    x, y, b, d = rng.standard_normal((4, count))
    bx, by, bb, bd, out = map(arrays.to_device, (x, y, b, d, y))
    context.product(bx, out)
    wanted = 0.3 * y - 0.7 * x + 1.9 * d * (b - arrays.to_host(out, count))
    error = 0.0
    for _ in range(2):
        arrays.upload(by, y, "test")
        context.step(bx, by, bb, bd, 0.3, -0.7, 1.9)
        error = max(error, np.abs(arrays.to_host(by, count) - wanted).max(initial=0) / np.abs(wanted).max(initial=1))
    return float(max(COMM.allgather(error)))


@guarded
def main() -> None:
    rows = {}
    for scheme, given in SCHEMES.items():
        (one, u), (other, v) = (solved(scheme, *given, way) for way in ("windows", "peers"))
        parts = COMM.allgather((np.abs(u - v).max(initial=0), np.abs(u).max(initial=0)))
        over, largest = map(max, zip(*parts, strict=True))
        exchanges = other.device.exchanges
        assert exchanges.peers > 0 and exchanges.windows == exchanges.messages == 0
        iterations = one.linear_iterations, other.linear_iterations
        rows[scheme] = [*iterations, over / largest, exchanges.count, error_of_step(other)]
    PETSc.Options()["fe_mesh_ranks"] = "1"
    alone, _ = solved("cg_gpu", *SCHEMES["cg_gpu"], "peers")
    rows["alone"] = [alone.linear_iterations, alone.device.exchanges.count]
    if COMM.rank == 0:
        print(json.dumps(rows))
