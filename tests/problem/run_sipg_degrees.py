"""Norms of fields of different degrees by sipg_gpu, which must not depend on ranks, as JSON."""

import json
import sys

import numpy as np
from petsc4py import PETSc
from petsc_options import petsc_options
from run_mixed import of_products
from sample_meshes import box_mesh
from sample_physics import everything

import petsc_hdg as fe
from petsc_hdg.physics import library
from petsc_hdg.run import guarded

FLOW = {  # v without divergence, p of mean 0, and -f0 by which both solve Stokes' equations
    2: (
        "u[0] = sin(x[0])*cos(2*x[1]); u[1] = -0.5*cos(x[0])*sin(2*x[1]);",
        "1.5*x[0] + x[1] - 1.25",
        ("5*sin(x[0])*cos(2*x[1]) + 1.5*c", "c - 2.5*cos(x[0])*sin(2*x[1])"),
    ),
    3: (
        "u[0] = sin(x[1])*cos(x[2]); u[1] = sin(x[2] + x[0]); u[2] = cos(x[0])*sin(x[1]);",
        "x[0] + x[1] - x[2] - 0.5",
        ("2*sin(x[1])*cos(x[2]) + c", "2*sin(x[2] + x[0]) + c", "2*cos(x[0])*sin(x[1]) - c"),
    ),
}


def flow(dim: int) -> fe.Physics:
    """Stokes flow with a known solution, the velocity of which is given on the boundary."""
    velocity, place, rows = FLOW[dim]
    source = f"PetscReal c = cos({place}); " + "".join(f"f0[{k}] = -({row});" for k, row in enumerate(rows))
    return library.stokes(
        dim,
        source,
        boundary=[fe.Dirichlet("boundary", "exact", field="velocity")],
        exact={"velocity": velocity, "pressure": f"u[0] = sin({place});"},
    )


def norms(cell: str, comm=None) -> dict:
    """Norms of a residual and of products; of a flow, and what is taken of it."""
    mesh = box_mesh(cell, (4, 3) if cell in ("triangle", "quadrilateral") else (2, 2, 2), comm=comm or PETSc.COMM_WORLD)
    options = fe.Options(backend="sipg_gpu", degree=2, check_kernels=False, pmat="none")
    problem = fe.Problem(mesh, everything(), options)
    found, diagonal = of_products(problem), problem.create_vec()
    problem.callbacks.jacobian.getDiagonal(diagonal)
    found["diagonal"] = diagonal.norm()
    solved = fe.Problem(mesh, flow(mesh.dim), backend="sipg_gpu", degree=2, check_kernels=False)
    with petsc_options(ksp_rtol="1e-14"):
        u = solved.solve()
    at = np.array([[0.31, 0.62, 0.43], [0.9, 0.1, 0.55]])[:, : mesh.dim]
    found |= {f"error in {norm}": value for norm, value in solved.errors(u).items()} | {"u": u.norm()}
    found |= {f"{name} at": float(values.sum()) for name, values in solved.at(u, at).items()}
    found["flux"] = float(solved.flux("left", u)[0])
    return found | {
        "energy": solved.integral("u[0]*u[0]", u),
        "pressure over": solved.integral("pressure", u, over="top"),
    }


if __name__ == "__main__":
    guarded(lambda: PETSc.Sys.Print(json.dumps({cell: norms(cell) for cell in sys.argv[1:]})))
