"""An isentropic vortex in a gas, carried by the free stream: the Euler equations u_t + ∇·F(u) = 0, u = (ρ, ρ v, E).

    python examples/vortex_hdg.py -fe_degree 3 -ts_monitor

The vortex is an exact solution. It begins at (0.3, 0.3) and moves by (0.8, 0.6) in a time of 1, through a boundary that
lets waves leave and has the state of the vortex for those that enter (characteristic far field).

Scheme: hybridizable DG with f̂·n = f1(û)·n - S(û)(u - û), S by Roe or Lax-Friedrichs; BDF of second order in time. The
Jacobian is differentiated from the text of flux, stabilization and boundary.
Things to try: -flux roe, -faces 8 and 16 for the order in space, -ts_type arkimex -ts_arkimex_type l2, -ts_dt 0.01,
-end 0.5, -u_picture vortex.png, -hdg_flux projected with Dirichlet data.
"""

import sys

import petsc4py

import petsc_hdg as fe
from petsc_hdg.physics import library
from petsc_hdg.physics.library import gas

petsc4py.init(sys.argv)

from petsc4py import PETSc

# Temperature and entropy of the free stream are 1; RADIUS and STRENGTH are those of the vortex.
VORTEX = """
  const PetscReal r0 = (x[0] - 0.3 - 0.8*t)/radius, r1 = (x[1] - 0.3 - 0.6*t)/radius;
  const PetscReal bell = strength*exp(0.5*(1.0 - r0*r0 - r1*r1));
  const PetscReal temperature = 1.0 - 0.5*(gamma - 1.0)/gamma*bell*bell, rho = pow(temperature, 1.0/(gamma - 1.0));
  const PetscReal v0 = 0.8 - bell*r1, v1 = 0.6 + bell*r0;
  {0}[0] = rho;
  {0}[1] = rho*v0;
  {0}[2] = rho*v1;
  {0}[3] = rho*temperature/(gamma - 1.0) + 0.5*rho*(v0*v0 + v1*v1);
"""


@fe.main
def main():
    options = PETSc.Options()
    physics = library.euler(
        2,
        gas.RATE,
        gamma=1.4,
        flux=options.getString("flux", "lax_friedrichs"),
        boundary=gas.far_field("boundary", VORTEX.format("w")),
        exact=VORTEX.format("u"),
        constants={"radius": 0.15, "strength": 0.3},
    )
    faces, end = options.getInt("faces", 16), options.getReal("end", 0.25)
    problem = fe.Problem(fe.Mesh.box((faces, faces)), physics, backend="hdg_gpu", degree=2)
    u = problem.solve_in_time(problem.interpolate("exact"), end, dt=0.0125)
    entropy = "log((gamma - 1)*(u[3] - 0.5*(u[1]*u[1] + u[2]*u[2])/u[0])) - gamma*log(u[0])"
    produced = problem.integral(f"({entropy})*({entropy})", u, problem.time)
    PETSc.Sys.Print(
        f"time {problem.time:g} after {problem.time_steps} steps, {problem.newton_iterations} of Newton's method   "
        f"error L2 {problem.errors(u, problem.time)['L2']:.2e}   entropy {produced**0.5:.2e}"
    )
    if picture := options.getString("u_picture", ""):
        density = problem.field("u[0]", u, problem.time)
        problem.plot(picture, u, problem.time, values=density, title=f"t = {problem.time:g}", label="density")
