"""Solves after the first: processor seconds (and seconds) with another load, and with another coefficient.

    python benchmarks/again.py [-faces 48] [-schemes cg_gpu,hdg_gpu,sipg_gpu,poly_gpu] [-matrices auto,aij]

-∇·k κ ∇u = f in the unit square, degree 2, default solvers; the least of five solves each. On a GPU the default methods
keep their vectors there, and `-ksp_type cg` names PETSc's, which has them on the host.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

CASES = (("cg_gpu", "auto"), ("cg_gpu", "aij"), ("hdg_gpu", "auto"), ("sipg_gpu", "auto"), ("sipg_gpu", "aij"))
CASES += (("poly_gpu", "auto"), ("hdg_gpu", "aij"))
PHYSICS = fe.Physics(
    {"u": 1},
    "f0[0] = -f;",
    "for (d = 0; d < dim; ++d) f1[d] = k*a[0]*u_x[d];",
    constants={"f": 1.0, "k": 1.0},
    auxiliary={"kappa": 1},
    boundary=[fe.Dirichlet("boundary", 0.0)],
)


def made(backend: str, pmat: str, faces: int) -> fe.Problem:
    mesh = fe.Mesh.box((faces, faces))
    if backend == "poly_gpu":
        mesh = fe.agglomerate(mesh, faces * faces // 4)
    problem = fe.Problem(mesh, PHYSICS, backend=backend, pmat=pmat, degree=2)
    problem.set_auxiliary("kappa", lambda x: 1 + x[..., 0] + 0.3 * np.sin(9 * x[..., 1]))
    problem.solve()
    return problem


def seconds(problem, **constants) -> tuple[float, float]:
    """Of this process' threads, and of the clock."""
    problem.set_constants(**constants)
    start = time.process_time(), time.perf_counter()
    problem.solve()
    problem.device.finish()
    return time.process_time() - start[0], time.perf_counter() - start[1]


def main() -> None:
    faces = PETSc.Options().getInt("faces", 48)
    schemes = PETSc.Options().getString("schemes", "cg_gpu,hdg_gpu,sipg_gpu,poly_gpu").split(",")
    matrices = PETSc.Options().getString("matrices", "auto,aij").split(",")
    for backend, pmat in (case for case in CASES if case[0] in schemes and case[1] in matrices):
        problem = made(backend, pmat, faces)
        load = min(seconds(problem, f=2.0 + n) for n in range(5))
        coefficient = min(seconds(problem, k=2.0 + n) for n in range(5))
        PETSc.Sys.Print(
            f"{backend} -fe_pmat {pmat}: {problem.num_unknowns} unknowns, {problem.linear_iterations} iterations, "
            f"another load {load[0]:.3f} ({load[1]:.3f}) s, another coefficient {coefficient[0]:.3f} "
            f"({coefficient[1]:.3f}) s"
        )


if __name__ == "__main__":
    main()
