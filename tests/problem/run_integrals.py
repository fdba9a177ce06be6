"""Under mpiexec: integrals by every scheme, and what is refused; prints JSON."""

import json

from petsc4py import PETSc
from sample_meshes import box_mesh
from sample_quadratic import exact, quadratic

from petsc_hdg.errors import MeshError, PhysicsError
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem
from petsc_hdg.run import guarded

SIDES = ("left", "top", "boundary")
BACKENDS = ("cg_gpu", "sipg_gpu", "hdg_gpu", "poly_gpu")
OVER = "obj[0] = u[0]*n[1]; obj[1] = u_x[0]*n[0] + u_x[1]*n[1]; obj[2] = 1;"
TEXT = "obj[0] = u[0]*u[0]; obj[1] = u_x[0]*x[1];"


def state(backend: str, comm):
    """A problem on the same cells for any number of ranks, and the quadratic solution."""
    mesh = box_mesh("triangle", comm=comm, partition_seed=4)
    problem = Problem(mesh, quadratic(), Options(backend=backend, degree=2, check_kernels=False))
    return problem, problem.interpolate(exact)


def refused(problem, u) -> list[str]:
    """What each rank raises for a text that is wrong on the last rank alone, then for an unknown region."""
    comm, found = problem.comm, []
    text = "u[0] + nothing" if comm.rank == comm.size - 1 else TEXT
    for given, where in (
        (text, {}),
        (TEXT, {"label": "nowhere"}),
        (text, {"over": "left"}),
        (TEXT, {"over": "nowhere"}),
    ):
        try:
            problem.integral(given, u, **where)
            found.append("")
        except (PhysicsError, MeshError) as error:
            found.append(type(error).__name__)
    return [name for names in zip(*comm.allgather(found), strict=True) for name in names]


def numbers(backend: str) -> dict:
    problem, u = state(backend, PETSc.COMM_WORLD)
    counts = problem.comm.allgather(problem.mesh.num_cells)
    return {
        "once": problem.integral(TEXT, u).tolist(),
        "again": problem.integral(TEXT, u).tolist(),
        "over": [problem.integral(OVER, u, over=side).tolist() for side in SIDES],
        "refused": refused(problem, u),
        "counts": counts,
    }


def run() -> None:
    PETSc.Sys.Print(json.dumps({backend: numbers(backend) for backend in BACKENDS}))


if __name__ == "__main__":
    guarded(run)  # a rank that fails ends the others
