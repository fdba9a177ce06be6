"""Where LU wins: processor seconds of small problems by default iterations and by LU, of growing meshes.

    python benchmarks/small.py [-most 60000] [-only "time"]

Diffusion in the unit square or cube: a linear solve with a new matrix, Newton's method with 1 + u², and 20 steps of
BDF. Columns: kind, elements, unknowns, seconds and linear iterations by default iterations, the same with another
load, seconds of both by LU (MUMPS above 20 000 unknowns), their ratio. The first row of an element may compile kernels.
"""

from __future__ import annotations

import sys
import time

import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

from petsc_hdg.database import defaults_in_database  # noqa: E402

LU = {"ksp_type": "fgmres", "pc_type": "lu", "pc_factor_shift_type": "inblocks"}
ITERATIONS = {"ksp_max_it": "10000"}
SIZES = {2: {1: (24, 48, 96, 160), 2: (12, 24, 48, 80), 4: (6, 12, 24, 40)}, 3: {1: (8, 13, 20, 30), 2: (4, 7, 10, 15)}}
KINDS = {
    "linear": ("f0[0] = -load;", "for (d = 0; d < dim; ++d) f1[d] = u_x[d]*k;"),
    "nonlinear": ("f0[0] = -load;", "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d]*k;"),
    "time": ("f0[0] = u_t[0] - load;", "for (d = 0; d < dim; ++d) f1[d] = u_x[d]*k;"),
    "nonlinear time": ("f0[0] = u_t[0] - load;", "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d]*k;"),
}


def seconds(call) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def run(problem, kind: str) -> None:
    if "time" in kind:
        problem.solve_in_time(problem.interpolate(0.0), 0.2, dt=0.01)
    else:
        problem.solve()


def measured(mesh, kind: str, backend: str, degree: int, options: dict) -> tuple:
    f0, f1 = KINDS[kind]
    with defaults_in_database("", options, unless="most_of_none"):
        physics = fe.Physics(
            {"u": 1}, f0, f1, constants={"load": 5.0, "k": 1.0}, boundary=[fe.Dirichlet("boundary", 0.0)], name="small"
        )
        problem = fe.Problem(mesh, physics, backend=backend, degree=degree)
        if problem.num_unknowns > PETSc.Options().getInt("most", 60_000):
            return problem.num_unknowns, None, None, None
        problem.callbacks  # noqa: B018  (kernels are checked)
        first = seconds(lambda: run(problem, kind))
        its = problem.linear_iterations
        problem.set_constants(load=6.0)
        again = seconds(lambda: run(problem, kind))
        return problem.num_unknowns, first, its, again


def main() -> None:
    only = PETSc.Options().getString("only", "")
    for kind in KINDS:
        for dim in SIZES:
            for backend in ("cg_gpu", "sipg_gpu", "hdg_gpu", "poly_gpu"):
                for degree in SIZES[dim]:
                    for simplex in (True, False):
                        title = f"{kind} {dim}D {backend} {'P' if simplex else 'Q'}{degree}"
                        if not title.startswith(only):
                            continue
                        row(title, kind, dim, backend, degree, simplex)


def row(title: str, kind: str, dim: int, backend: str, degree: int, simplex: bool) -> None:
    for n in SIZES[dim][degree]:
        mesh = fe.Mesh.box((n,) * dim, simplex=simplex)
        unknowns, first, its, again = measured(mesh, kind, backend, degree, ITERATIONS)
        if first is None:
            return
        lu = dict(LU, pc_factor_mat_solver_type="mumps") if unknowns > 20_000 else LU
        _, by_lu, _, again_lu = measured(mesh, kind, backend, degree, lu)
        PETSc.Sys.Print(
            f"| {title} | {unknowns} | {first:.2f} ({its}), {again:.2f} | {by_lu:.2f}, {again_lu:.2f} | "
            f"{first / by_lu:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
