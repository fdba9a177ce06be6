"""Under mpiexec: values at places by every scheme, on borders between ranks too, and what is refused; prints JSON."""

import json

import numpy as np
from petsc4py import PETSc
from sample_meshes import box_mesh
from sample_quadratic import exact, quadratic

from petsc_hdg.errors import OptionError
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem
from petsc_hdg.run import guarded

BACKENDS = ("cg_gpu", "sipg_gpu", "hdg_gpu", "poly_gpu")


def refused(problem, u) -> list[str]:
    """What each rank raises for a point that is not finite on the last rank alone, and for other points there."""
    comm, found, last = problem.comm, [], problem.comm.rank == problem.comm.size - 1
    for given in ([[np.nan if last else 0.5, 0.5]], [[0.25 if last else 0.5, 0.5]]):
        try:
            problem.at(u, given)
        except OptionError as error:
            found.append(type(error).__name__)
    return [name for names in zip(*comm.allgather(found), strict=True) for name in names]


def numbers(backend: str) -> dict:
    mesh = box_mesh("triangle", comm=PETSc.COMM_WORLD, partition_seed=4)
    problem = Problem(mesh, quadratic(), Options(backend=backend, degree=2, check_kernels=False))
    nodes = np.concatenate(problem.comm.allgather(problem.mesh.geometry.nodes))
    x = np.concatenate([nodes, np.random.default_rng(1).uniform(0, 1, (100, 2))])
    u = problem.solve()
    found = problem.at(u, x)["u"]
    return {
        "error": float(np.abs(found[:, 0] - np.asarray(exact(x)).reshape(-1)).max()),
        "single": np.array_equal(problem.at(u, x[-1])["u"], found[-1:]),
        "same": all(np.array_equal(found, other) for other in problem.comm.allgather(found)),
        "refused": refused(problem, u),
        "counts": problem.comm.allgather(problem.mesh.num_cells),
    }


def run() -> None:
    PETSc.Sys.Print(json.dumps({backend: numbers(backend) for backend in BACKENDS}))


if __name__ == "__main__":
    guarded(run)  # a rank that fails ends the others
