"""Under mpiexec: solutions as arrays, gathered on the first rank and not, by every scheme; prints JSON."""

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


def numbers(backend: str) -> dict:
    mesh = box_mesh("triangle", comm=PETSc.COMM_WORLD, partition_seed=4)
    problem = Problem(mesh, quadratic(), Options(backend=backend, degree=2, check_kernels=False))
    u, comm = problem.solve(), problem.comm
    own, whole, gathered = problem.to_numpy(u), problem.to_numpy(u, gather=True), problem.to_meshio(u)
    refused = ""
    try:
        problem.to_numpy(u, gather=3 if comm.rank == comm.size - 1 else True)
    except OptionError as error:
        refused = str(error)
    found = {
        "own": comm.allgather([len(own.cells), len(own.points), int(own.cells.max())]),
        "error": comm.allreduce(float(np.abs(own.point_data["u"][:, 0] - exact(own.points)).sum())),
        "refused": comm.allgather(refused),
        "there": comm.allgather(whole is not None and gathered is not None),
    }
    if comm.rank == 0:
        corners = whole.points[whole.cells][:, :3]
        sides = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        found["whole"] = [len(whole.points), len(np.unique(whole.points.round(9), axis=0)), *whole.cells.shape]
        found["area"] = float(np.abs(sides).sum() / 2)
        found["whole_error"] = float(np.abs(whole.point_data["u"][:, 0] - exact(whole.points)).max())
        found["ranks"] = sorted(set(whole.cell_data["rank"].ravel().tolist()))
        nodes = gathered.points[gathered.cells[0].data]
        found["middles"] = float(np.abs(nodes[:, 3] - (nodes[:, 0] + nodes[:, 1]) / 2).max())
    return found


def run() -> None:
    PETSc.Sys.Print(json.dumps({backend: numbers(backend) for backend in BACKENDS}))


if __name__ == "__main__":
    guarded(run)  # a rank that fails ends the others
