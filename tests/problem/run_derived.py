"""Under mpiexec: `run_derived.py FOLDER` derives fields by every scheme, writes and draws them; prints JSON."""

import json
import sys
from pathlib import Path

import numpy as np
from petsc4py import PETSc
from sample_meshes import box_mesh

from petsc_hdg.errors import PetscHdgError
from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet
from petsc_hdg.physics.library import elasticity
from petsc_hdg.problem import Problem
from petsc_hdg.run import guarded

BACKENDS = ("cg_gpu", "sipg_gpu", "hdg_gpu", "poly_gpu")
SLOPES = np.array([[2.0, 0.5], [-1.0, 3.0]])  # of a linear displacement, whose stress is the same everywhere
STRESS = np.array([[23.0, -1.0], [-1.0, 27.0]])  # λ tr(ε) + 2 μ ε with λ = 3, μ = 2; normal to the plane 15
MISES_STRESS = 115.0**0.5  # 23² + 27² + 15² - 23·27 - 27·15 - 15·23 + 3·1²
MISES = """
    const PetscReal p = lame_lambda*(u_x[0] + u_x[3]), q = mu*(u_x[1] + u_x[2]);
    const PetscReal xx = p + 2*mu*u_x[0], yy = p + 2*mu*u_x[3];
    obj[0] = sqrt(xx*xx + yy*yy + p*p - xx*yy - yy*p - p*xx + 3*q*q);
"""
TRACTION = "for (d = 0; d < dim; ++d) obj[d] = lame_lambda*(u_x[0] + u_x[3])*n[d]" + (
    " + mu*((u_x[2*d] + u_x[d])*n[0] + (u_x[2*d + 1] + u_x[dim + d])*n[1]);"
)


def stretched():
    """Plane strain under the displacement SLOPES x."""
    exact = f"u[0] = {SLOPES[0, 0]}*x[0] + {SLOPES[0, 1]}*x[1]; u[1] = {SLOPES[1, 0]}*x[0] + {SLOPES[1, 1]}*x[1];"
    boundary = [Dirichlet("boundary", "exact")]
    return elasticity(2, lame_lambda=3.0, mu=2.0, boundary=boundary, exact={"u": exact}, name="stretched")


def refused(problem, u) -> list[str]:
    """What each rank raises for a text that is wrong on the last rank alone, and for another boundary there."""
    comm, found, last = problem.comm, [], problem.comm.rank == problem.comm.size - 1
    for given in (
        lambda: problem.field("u_y[0]" if last else "u[0]", u),
        lambda: problem.field("u[0]", u, name=3 if last else "u0"),
        lambda: problem.write("a.vtu", u, fields=["mises"] if last else {}),
        lambda: setattr(problem, "outputs", {"mises": "mu*u_t[0]" if last else "mu"}),
    ):
        try:
            given()
        except PetscHdgError as error:
            found.append(type(error).__name__)
    return [name for names in zip(*comm.allgather(found), strict=True) for name in names]


def with_few_cells(backend: str, folder: Path) -> list[int]:
    """Cells of each rank, of two in all, where fields are derived, written and gathered."""
    mesh = box_mesh("triangle", (1, 1), comm=PETSc.COMM_WORLD)
    problem = Problem(mesh, stretched(), Options(backend=backend, degree=1, check_kernels=False))
    u = problem.interpolate("exact")
    problem.write(folder / "few.vtu", u, fields=[problem.field("f1", u)])
    whole = problem.to_numpy(u, gather=True)
    assert whole is None or len(whole.cells) == 2
    traction, grid = problem.field(TRACTION, u, over="boundary"), problem.to_numpy(u)
    assert [len(traction.values()), len(traction.means())] == [2 * mesh.num_cells] * 2
    assert len(problem.field(MISES, u).means()) == len(grid.cells) == mesh.num_cells
    return problem.comm.allgather(mesh.num_cells)


def numbers(backend: str, folder: Path) -> dict:
    mesh = box_mesh("triangle", comm=PETSc.COMM_WORLD, partition_seed=4)
    problem = Problem(mesh, stretched(), Options(backend=backend, degree=1, check_kernels=False))
    u, comm = problem.solve(), problem.comm
    stress, traction = problem.field("f1", u), problem.field(TRACTION, u, over="right")
    problem.outputs = {"mises": MISES}
    problem.write(folder / f"{backend}.vtu", u)
    problem.plot(folder / f"{backend}.png", u, field="mises", displacement=problem.field("u", u), dpi=30)
    x = np.random.default_rng(1).uniform(0, 1, (50, 2))
    ends = traction.coordinates([[0.0], [1.0]])
    lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    return {
        "mises": float(np.abs(problem.field(MISES, u).means() - MISES_STRESS).max(initial=0.0)),
        "stress": float(np.abs(stress.at(x) - STRESS.ravel()).max()),
        "gradient": float(np.abs(problem.field("grad_u", u).values() - SLOPES.ravel()).max(initial=0.0)),
        "force": comm.allreduce(lengths @ traction.means()).tolist(),
        "extremes": [of.tolist() for of in problem.field("x[0] + 10*x[1]", u).extremes()],
        "facets": comm.allreduce(len(lengths)),
        "line": problem.field("u", u).along([0, 0], [1, 1], 3)[1].tolist(),
        "refused": refused(problem, u),
        "counts": comm.allgather(mesh.num_cells),
        "few": with_few_cells(backend, folder),
    }


def run() -> None:
    PETSc.Sys.Print(json.dumps({backend: numbers(backend, Path(sys.argv[1])) for backend in BACKENDS}))


if __name__ == "__main__":
    guarded(run)  # a rank that fails ends the others
