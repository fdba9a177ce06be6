"""A reacting front in a wind, ∂u/∂t + b·∇u - ε∇·∇u = R u (1 - u) (u - 1/4): advection, diffusion, a stiff reaction.

    python examples/reacting_front.py -fe_backend hdg_gpu -ts_monitor

u is 1 behind the front and 0 before it. The front is sqrt(8ε/R) wide and runs with the speed sqrt(εR/2)/2 across the
wind: u = (1 - tanh((n·x - s(t)) / width)) / 2 is the exact solution. The reaction answers within 1/R, far below what a
step lasts: an explicit method would need steps of 2/R.

Scheme: any of -fe_backend in space, BDF of second order in time, Newton's method in each step.
Things to try: -fe_backend sipg_gpu or poly_gpu, -reaction 400, -ts_type theta -ts_theta_theta 0.5, -ts_bdf_order 3,
-ts_adapt_type basic, -ts_dt 0.02, -u_picture front.png, -fe_checkpoint front.h5 -fe_checkpoint_interval 10 and, once
it was stopped, -fe_restart front.h5.
"""

import sys

import numpy as np
import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc

# The front's direction is n = (0.8, 0.6); it starts at n·x = 0.4.
FRONT = """
    PetscReal width = sqrt(8*diffusion/reaction), speed = sqrt(diffusion*reaction/2)/2 + 0.8*wind_x + 0.6*wind_y;
    u[0] = 0.5*(1 - tanh((0.8*x[0] + 0.6*x[1] - 0.4 - speed*t)/width));
"""
PHYSICS = fe.Physics(
    {"u": 1},
    f0="""f0[0] = u_t[0] + wind_x*u_x[0] + wind_y*u_x[1] - reaction*u[0]*(1 - u[0])*(u[0] - 0.25);""",
    f1="for (d = 0; d < dim; ++d) f1[d] = diffusion*u_x[d];",
    boundary=[fe.Dirichlet("boundary", "exact")],
    constants={"wind_x": 0.6, "wind_y": 0.2, "diffusion": 0.02, "reaction": 100.0},
    exact=FRONT,
    name="reacting front",
)


def at_start(x, diffusion: float, reaction: float) -> np.ndarray:
    """The front at t = 0 [...] for coordinates x [..., dim]."""
    return 0.5 * (1 - np.tanh((x @ [0.8, 0.6] - 0.4) / np.sqrt(8 * diffusion / reaction)))


@fe.main
def main():
    options = PETSc.Options()
    diffusion, reaction = PHYSICS.constants["diffusion"], options.getReal("reaction", 100.0)
    faces = options.getInt("faces", 24)
    problem = fe.Problem(fe.Mesh.box((faces, faces)), PHYSICS, degree=3)
    problem.set_constants(reaction=reaction)
    u0 = problem.interpolate(lambda x: at_start(x, diffusion, reaction))

    def show(t, u):
        PETSc.Sys.Print(f"  t = {t:.3f}   error L2 {problem.errors(u, t)['L2']:.2e}")

    u = problem.solve_in_time(u0, 0.2, dt=0.005, monitor=show if options.getBool("show", False) else None)
    PETSc.Sys.Print(
        f"time {problem.time:g} after {problem.time_steps} steps, {problem.newton_iterations} of Newton's method, "
        f"{problem.linear_iterations} iterations   error L2 {problem.errors(u, problem.time)['L2']:.2e}"
    )
    if picture := options.getString("u_picture", ""):
        problem.plot(picture, u, problem.time, title=f"t = {problem.time:g}")
