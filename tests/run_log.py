"""Under mpiexec: `run_log.py FILE` solves a nonlinear problem, one in time, and one whose waves are too short."""

import sys

import petsc4py

petsc4py.init(sys.argv)

from sample_time import HEAT  # noqa: E402

import petsc_hdg as fe  # noqa: E402
from petsc_hdg.physics import library  # noqa: E402
from petsc_hdg.run import guarded  # noqa: E402


def run() -> None:
    mesh = fe.Mesh.box((4, 4))
    edge = fe.Dirichlet("boundary", "x[0] + x[0]*x[1]")
    problem = fe.Problem(mesh, library.minimal_surface(boundary=edge), degree=1)
    problem.write(sys.argv[1], problem.solve())
    heat = fe.Problem(mesh, HEAT, degree=1)
    heat.solve_in_time(heat.interpolate(0.0), 0.2, 0.1)
    wave = fe.Physics({"u": 1}, "-900*u - 1", "u_x[d]", boundary=fe.Dirichlet("boundary", 0.0), name="wave")
    fe.Problem(mesh, wave, degree=1).solve()


if __name__ == "__main__":
    guarded(run)
