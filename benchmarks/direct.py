"""Where LU loses: processor seconds of a linear solve by default solvers and by LU, of growing meshes.

    python benchmarks/direct.py [-most 60000] [-only rubber]

-Δu + b·∇u = 1 in the unit square or cube, b = 0 (definite) or of size 10, Stokes flow, and bodies with ν = 0.4999
("rubber"). Of each size the second solve, with another matrix: default solvers with their iterations, at most 500, and
LU, by MUMPS of rubber.
"""

from __future__ import annotations

import sys
import time

import petsc4py

import petsc_hdg as fe
from petsc_hdg.physics import library

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

from petsc_hdg.database import defaults_in_database  # noqa: E402

LU = {"ksp_type": "fgmres", "pc_type": "lu", "pc_factor_shift_type": "inblocks"}
MUMPS = LU | {"pc_factor_mat_solver_type": "mumps", "mat_mumps_icntl_24": "1"}
ITERATIONS = {"ksp_max_it": "500"}  # whose user waits
POISSON = 0.4999  # with shear and Young's moduli of 1 / 2 and 1 + ν
CASES = {
    "P1, squares in triangles": ("wind", 2, True, "cg_gpu", 1, (50, 100, 150, 250, 400)),
    "Q3": ("wind", 2, False, "cg_gpu", 3, (16, 32, 48, 80)),
    "Q3, traces": ("wind", 2, False, "hdg_gpu", 3, (16, 32, 48, 80)),
    "Q3, discontinuous": ("wind", 2, False, "sipg_gpu", 3, (12, 24, 36, 60)),
    "P1, cubes in tetrahedra": ("wind", 3, True, "cg_gpu", 1, (10, 16, 24, 32)),
    "Q2, cubes": ("wind", 3, False, "cg_gpu", 2, (6, 9, 12, 16)),
    "Stokes, Q2 and Q1, squares": ("stokes", 2, False, "cg_gpu", 2, (8, 24, 40, 70)),
    "Stokes, Q2 and Q1, cubes": ("stokes", 3, False, "cg_gpu", 2, (3, 5, 7, 9)),
    "rubber, P1, traces, cubes in tetrahedra": ("rubber", 3, True, "hdg_gpu", 1, (6, 8, 11)),
    "rubber, Q2, traces, cubes": ("rubber", 3, False, "hdg_gpu", 2, (6, 8, 10)),
    "rubber, P2, cubes in tetrahedra": ("rubber", 3, True, "cg_gpu", 2, (10, 16)),
    "rubber, Q2, cubes": ("rubber", 3, False, "cg_gpu", 2, (10, 14, 17)),
    "rubber, Q2, discontinuous, cubes": ("rubber", 3, False, "sipg_gpu", 2, (6, 8)),
}


def physics_of(name: str, dim: int) -> fe.Physics:
    if name == "stokes":
        walls = [fe.Dirichlet(side, 0.0, field="velocity") for side in ("bottom", "top", "left")]
        load = "for (PetscInt d = 0; d < dim; ++d) f0[d] = -scale*(d == 0);"
        return library.stokes(dim, load, constants={"scale": 1.0}, boundary=walls)
    if name == "rubber":
        load, clamp = "f0[0] = 0; f0[1] = 0; f0[2] = 1;", [fe.Dirichlet("left", [0.0] * dim)]
        return library.elasticity(dim, load, lame_lambda=POISSON / (1 - 2 * POISSON), mu=0.5, boundary=clamp)
    return fe.Physics(
        {"u": 1},
        "f0[0] = -1; for (d = 0; d < dim; ++d) f0[0] += 10*scale*u_x[d];",
        "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        constants={"scale": 1.0},
        boundary=[fe.Dirichlet("boundary", 0.0)],
    )


def seconds(problem) -> tuple[float, int | str]:
    """Processor seconds and iterations of a solve with another matrix; the second of two."""
    constant = "mu" if "mu" in problem.physics.constants else "scale"
    for value in (1.0, 1.1):
        problem.set_constants(**{constant: value})
        begin = time.process_time()
        try:
            problem.solve()
        except fe.SolveError:
            return time.process_time() - begin, "none"
    return time.process_time() - begin, problem.linear_iterations


def main() -> None:
    most, only = PETSc.Options().getInt("most", 60_000), PETSc.Options().getString("only", "")
    for title, (name, dim, simplex, backend, degree, sizes) in CASES.items():
        for faces in sizes if only in name else ():
            mesh = fe.Mesh.box((faces,) * dim, simplex=simplex)
            row = []
            for options in (ITERATIONS, MUMPS if name == "rubber" else LU):
                with defaults_in_database("", options, unless="most_of_none"):
                    problem = fe.Problem(mesh, physics_of(name, dim), backend=backend, degree=degree)
                    if problem.num_unknowns > most:
                        break
                    row.append("{:.2f} s, {}".format(*seconds(problem)))
            if row:
                PETSc.Sys.Print(f"| {title} | {problem.num_unknowns} | {' | '.join(row)} |")


if __name__ == "__main__":
    main()
