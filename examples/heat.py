"""The heat equation, ∂u/∂t - ∇·∇u = 0, in time by PETSc's TS.

    python examples/heat.py -ts_type bdf -ts_monitor

Scheme: continuous Lagrange elements or another of -fe_backend in space, any implicit scheme of PETSc in time (IFunction
and IJacobian). u = sin(πx) sin(πy) exp(-2π²t), so the error is known.
Things to try: -fe_backend hdg_gpu, sipg_gpu or poly_gpu, -ts_type arkimex, -ts_dt 0.001, -ts_type beuler (first order),
-ts_adapt_type basic, -dm_refine 1.
"""

import sys

import numpy as np
import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc

PHYSICS = fe.Physics(
    {"u": 1},
    f0="f0[0] = u_t[0];",
    f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    boundary=[fe.Dirichlet("boundary", "g[0] = 0;")],
    exact="u[0] = sin(PETSC_PI*x[0]) * sin(PETSC_PI*x[1]) * exp(-2*PETSC_PI*PETSC_PI*t);",
    name="heat",
)


@fe.main
def main():
    problem = fe.Problem(fe.Mesh.box((16, 16)), PHYSICS, degree=3)
    u0 = problem.interpolate(lambda x: np.sin(np.pi * x[..., 0]) * np.sin(np.pi * x[..., 1]))
    u = problem.solve_in_time(u0, 0.05, dt=0.002)
    errors = problem.errors(u, problem.time)
    PETSc.Sys.Print(
        f"time {problem.time:g} after {problem.time_steps} steps, {problem.linear_iterations} iterations   "
        f"error L2 {errors['L2']:.2e}, H1 {errors['H1']:.2e}"
    )
