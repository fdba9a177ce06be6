"""Under mpiexec: a run in time that writes a series, run_series.py FILE.pvd; prints the largest value at its end."""

import sys

from petsc4py import PETSc
from sample_time import HEAT, problem_in_time, start

from petsc_hdg.run import guarded


def run() -> None:
    problem = problem_in_time(HEAT, PETSc.COMM_WORLD, check_kernels=False, output=sys.argv[1], output_interval=2)
    u = problem.solve_in_time(start(problem), 0.5, 0.1)
    PETSc.Sys.Print(f"{u.max()[1]:.12g} of {problem.comm.allreduce(problem.mesh.num_cells)} cells")


if __name__ == "__main__":
    guarded(run)
