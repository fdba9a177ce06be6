"""Under mpiexec: solutions on periodic meshes by each scheme that takes them; prints JSON."""

import json

from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.run import guarded

WAVE = "sin(2*PETSC_PI*x[0])*cos(2*PETSC_PI*x[1])"
CASES = {
    (backend, dim, simplex)
    for dim, simplex, backends in (
        (2, True, ("cg_gpu", "sipg_gpu", "hdg_gpu")),
        (2, False, ("cg_gpu", "sipg_gpu", "hdg_gpu")),
        (3, True, ("cg_gpu",)),
        (3, False, ("hdg_gpu",)),
    )
    for backend in backends
}


def solved(backend: str, dim: int, simplex: bool, faces: int, comm=PETSc.COMM_WORLD) -> tuple:
    """A Problem whose solution is periodic in the plane and zero at the ends of the third axis, and the solution."""
    height = "1.0" if dim == 2 else "x[2]*(1 - x[2])"
    source = f"8*PETSC_PI*PETSC_PI*{WAVE}*{height}" + (f" + 2*{WAVE}" if dim == 3 else "")
    physics = fe.Physics(
        {"u": 1},
        f"-({source})",
        "u_x[d]",
        exact={"u": f"{WAVE}*{height}"},
        boundary=[fe.Dirichlet("boundary", 0.0)] if dim == 3 else [],
    )
    counts = (faces, faces, faces if simplex else 3)[:dim]
    mesh = fe.Mesh.box(counts, simplex=simplex, periodic="xy", comm=comm, partition_seed=None if comm.size == 1 else 3)
    problem = fe.Problem(mesh, physics, degree=2, backend=backend)
    return problem, problem.solve()


def numbers(backend: str, dim: int, simplex: bool, faces: int, comm=PETSc.COMM_WORLD) -> dict:
    problem, u = solved(backend, dim, simplex, faces, comm)
    return {
        "error": problem.errors(u)["L2"],
        "volume": problem.integral("1.0", u),
        "place": float(problem.at(u, [0.99, 0.03, 0.5][:dim])["u"][0, 0]),
        "boundaries": problem.mesh.boundaries,
        "iterations": problem.linear_iterations,
    }


def run() -> None:
    PETSc.Sys.Print(json.dumps({f"{case}": numbers(*case, 4) for case in sorted(CASES)}))


if __name__ == "__main__":
    guarded(run)  # a rank that fails ends the others
