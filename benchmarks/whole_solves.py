"""What a user waits for: nonlinear physics, variable coefficients, convection and steps in time by each scheme, by
default options.

    python benchmarks/whole_solves.py -fe_device gpu -unknowns 2e6 -u_cases "cg nonlinear,sipg" -u_out rows.json

A row has the seconds of the mesh, of Problem (kernels compiled), of the first solve and of the same solve again from
zero (of heat ten steps in time), and the functions that most of the interpreter's time of a third one went to. With
`-u_cold`, those of the mesh, of Problem and the first solve instead. `mpiexec` runs it on ranks.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import sys
import time
from functools import partial

import petsc4py

import petsc_hdg as fe  # before MPI starts, so that each rank has its GPU

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

from petsc_hdg.physics import library  # noqa: E402

NONLINEAR = {
    "f0": "f0[0] = u[0]*u[0]*u[0] - 10*sin(3*x[0])*cos(2*x[1]);",
    "f1": "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*(1 + 0.5*x[0])*u_x[d];",
}
VARIABLE = {"f0": "f0[0] = -1;", "f1": "for (d = 0; d < dim; ++d) f1[d] = (1 + x[0]*x[0] + x[1])*u_x[d];"}
WIND = {"f0": "f0[0] = x[1]*u_x[0] - x[0]*u_x[1] - 1;", "f1": "for (d = 0; d < dim; ++d) f1[d] = 1e-2*u_x[d];"}
LAWS = {
    "nonlinear": NONLINEAR,
    "variable": VARIABLE,
    "wind": WIND,
    "wind 1e-4": WIND | {"f1": "for (d = 0; d < dim; ++d) f1[d] = 1e-4*u_x[d];"},
    "burgers": {"f0": "f0[0] = u[0]*u_x[0] - 1;", "f1": "for (d = 0; d < dim; ++d) f1[d] = 0.05*u_x[d];"},
    "heat": {
        "f0": "f0[0] = u_t[0] - 10*sin(3*x[0] + 5*t);",
        "f1": "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];",
    },
}
CASES = [  # scheme, physics, cell, degree, unknowns of a box per cube of the mesh
    ("cg_gpu", "nonlinear", "quad", 3, 9),
    ("cg_gpu", "nonlinear", "tri", 2, 4),
    ("cg_gpu", "nonlinear", "hex", 3, 27),
    ("cg_gpu", "nonlinear", "tet", 2, 8),
    ("cg_gpu", "variable", "hex", 2, 8),
    ("cg_gpu", "beam", "hex", 2, 24),
    ("sipg_gpu", "variable", "quad", 3, 16),
    ("sipg_gpu", "nonlinear", "quad", 3, 16),
    ("sipg_gpu", "nonlinear", "hex", 3, 64),
    ("hdg_gpu", "variable", "tri", 3, 12),
    ("hdg_gpu", "nonlinear", "tri", 3, 12),
    ("hdg_gpu", "variable", "tet", 2, 72),
    ("poly_gpu", "variable", "tri", 2, 3),
    ("poly_gpu", "nonlinear", "tri", 2, 3),
    ("cg_gpu", "wind", "tri", 2, 4),
    ("hdg_gpu", "wind", "tri", 2, 9),
    ("hdg_gpu", "wind 1e-4", "tri", 2, 9),
    ("sipg_gpu", "wind", "quad", 2, 9),
    ("sipg_gpu", "wind 1e-4", "quad", 2, 9),
    ("poly_gpu", "wind", "tri", 2, 3),
    ("cg_gpu", "burgers", "tri", 2, 4),
    ("sipg_gpu", "burgers", "quad", 2, 9),
    ("cg_gpu", "heat", "quad", 2, 4),
    ("sipg_gpu", "heat", "quad", 2, 9),
    ("hdg_gpu", "heat", "quad", 2, 15),
]
STEP, STEPS = 0.01, 10  # of heat, in time
SHARES = {"beam": 0.3, "poly_gpu": 0.1}  # of the unknowns that are asked for
MOST = 8  # functions of the profile


def physics(kind: str) -> fe.Physics:
    """A scalar law by its name, or a neo-Hookean beam that is sheared."""
    if kind == "beam":
        pull = "g[0] = -0.0005; g[1] = 0.0002; g[2] = 0;"
        walls = [fe.Dirichlet("left", [0, 0, 0]), fe.Dirichlet("right", pull)]
        return library.neo_hookean(3, lame_lambda=4.0, boundary=walls)
    return fe.Physics({"u": 1}, boundary=[fe.Dirichlet("boundary", 0.0)], name=kind, **LAWS[kind])


def timed(problem, run) -> float:
    """Seconds of a call, to the end of what it launched on all ranks."""
    problem.comm.Barrier()
    start = time.perf_counter()
    run()
    problem.device.finish()
    problem.comm.Barrier()
    return time.perf_counter() - start


def row(unknowns: float, scheme: str, kind: str, cell: str, degree: int, per: int) -> dict:
    """One row of the table."""
    cold = PETSc.Options().getBool("u_cold", False)
    profile = cProfile.Profile()
    if cold:
        profile.enable()
    dim = 2 if cell in ("tri", "quad") else 3
    share = SHARES.get(kind, SHARES.get(scheme, 1.0))
    start = time.perf_counter()
    edge = max(2, round((unknowns * share / per) ** (1 / dim)))
    mesh = fe.Mesh.box((edge,) * dim, simplex=cell in ("tri", "tet"))
    if scheme == "poly_gpu":
        mesh = fe.agglomerate(mesh, mesh.num_cells // 4)
    made = time.perf_counter()
    problem = fe.Problem(mesh, physics(kind), backend=scheme, degree=degree)
    found = {"mesh": made - start, "problem": time.perf_counter() - made, "unknowns": problem.num_unknowns}
    run = problem.solve if kind != "heat" else partial(problem.solve_in_time, problem.create_vec(), STEPS * STEP, STEP)
    found |= {"first": timed(problem, run)}
    profile.disable()
    found |= {"again": timed(problem, run)}
    found |= {"newton": problem.newton_iterations, "iterations": problem.linear_iterations, "vectors": problem.vec_mode}
    if not cold:
        profile.runcall(timed, problem, run)
    calls = sorted(pstats.Stats(profile).stats.items(), key=lambda item: -item[1][2])[: MOST * (1 + 3 * cold)]
    found["profile"] = [[f"{file.split('/')[-1]}:{name}", round(own[2], 4), own[0]] for (file, _, name), own in calls]
    return found


def main() -> None:
    """Print the rows of the cases that are asked for, and write them."""
    options, rows = PETSc.Options(), []
    only = [part for part in options.getString("u_cases", "").split(",") if part]
    for case in CASES:
        name = f"{case[0].removesuffix('_gpu')} {case[1]} {case[2]} p{case[3]}"
        if not only or any(part in name for part in only):
            rows.append({"name": name, **row(options.getReal("unknowns", 2e6), *case)})
            PETSc.Sys.Print(json.dumps(rows[-1]), flush=True)
    if PETSc.COMM_WORLD.rank == 0:
        with open(options.getString("u_out", "output/whole_solves.json"), "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
