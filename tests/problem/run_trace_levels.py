"""Under mpiexec: the matrix that hybridizable DG takes by default, its iterations, and a mean of the solution."""

from __future__ import annotations

from petsc4py import PETSc
from petsc_options import petsc_options
from sample_trace_levels import PHYSICS

import petsc_hdg as fe
from petsc_hdg.options import Options
from petsc_hdg.run import guarded

CASES = ("Poisson", "1 + u²", "Helmholtz", "wind")


def main() -> None:
    mesh = fe.Mesh.box((8, 8), comm=PETSc.COMM_WORLD, partition_seed=7)
    for name in CASES:
        problem = fe.Problem(mesh, PHYSICS[name][0], Options(backend="hdg_gpu", degree=2, check_kernels=False))
        if name == "wind":
            problem.set_constants(w=1e4)
        problem.solve()
        iterations = problem.linear_iterations
        with petsc_options(ksp_rtol="1e-11", snes_rtol="1e-11"):
            problem.snes.setFromOptions()
            u = problem.solve()
        mean = problem.integral("u[0]*(1 + x[0])", u)
        PETSc.Sys.Print(f"{name.replace(' ', '')} {problem.pmat} {iterations} {mean:.15e}")


if __name__ == "__main__":
    guarded(main)
