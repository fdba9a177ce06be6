"""Sod's shock tube: the Euler equations u_t + ∇·F(u) = ∇·(ε ∇u), u = (ρ, ρ v, E), with an artificial viscosity ε.

    python examples/sod_hdg.py -faces 100 -ts_monitor

A gas of pressure 1 and density 1 is beside one of 0.1 and 0.125. A rarefaction moves to the left, a contact and a shock
to the right. The exact solution is known (E. F. Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics, 4.3.3).

Scheme: hybridizable DG on one row of squares; backward Euler or BDF in time. After each step fe.ShockSensor sets ε by
the share of the highest modes of the density in each cell: above 0 near the shock, 0 where the flow is smooth.
Things to try: -faces 50 and 200 for the order, -speed 0 (no viscosity: the run fails or oscillates), -threshold -4,
-flux roe, -fe_degree 3, -u_picture sod.png.
"""

import sys

import petsc4py

petsc4py.init(sys.argv)

import numpy as np
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.physics import library
from petsc_hdg.physics.library import gas

LEFT, RIGHT = np.array([1.0, 0.0, 0.0, 2.5]), np.array([0.125, 0.0, 0.0, 0.25])
# Pressure and velocity between rarefaction and shock, densities on both sides of the contact, speed of the shock.
STAR = {"p_star": 0.303130178, "v_star": 0.927452620, "left": 0.426319428, "right": 0.265573712, "shock": 1.752155732}
EXACT = """
  const PetscReal c = sqrt(gamma), s = x[0] - 0.5, tail = v_star - sqrt(gamma*p_star/left);
  const PetscReal fan = 2.0/(gamma + 1.0)*(c + s/fmax(t, 1e-12)), thin = 1.0 - 0.5*(gamma - 1.0)*fan/c;
  const PetscInt where = s < -c*t ? 0 : s < tail*t ? 1 : s < v_star*t ? 2 : s < shock*t ? 3 : 4;
  const PetscReal rho = where == 0 ? 1.0 : where == 1 ? pow(thin, 2.0/(gamma - 1.0))
                      : where == 2 ? left : where == 3 ? right : 0.125;
  const PetscReal v = where == 0 || where == 4 ? 0.0 : where == 1 ? fan : v_star;
  const PetscReal p = where == 0 ? 1.0 : where == 1 ? pow(rho, gamma) : where == 4 ? 0.1 : p_star;
  u[0] = rho;
  u[1] = rho*v;
  u[2] = 0;
  u[3] = p/(gamma - 1.0) + 0.5*rho*v*v;
"""


@fe.main
def main():
    options = PETSc.Options()
    physics = library.euler(
        2,
        gas.RATE,
        flux=options.getString("flux", "lax_friedrichs"),
        artificial_viscosity=True,
        boundary=[fe.Dirichlet("left", "exact"), fe.Dirichlet("right", "exact"), gas.slip_wall("boundary")],
        exact=EXACT,
        constants=STAR,
    )
    faces, end = options.getInt("faces", 50), options.getReal("end", 0.2)
    mesh = fe.Mesh.box((faces, 1), simplex=False, upper=(1.0, 1.0 / faces))
    problem = fe.Problem(mesh, physics, backend="hdg_gpu", degree=2)
    threshold = options.getReal("threshold", -4 - 4.25 * 0.30103)
    sensor = fe.ShockSensor(problem, "u[0]", speed=options.getReal("speed", 2.0), threshold=threshold,
        width=options.getReal("width", 1.0))
    u0 = problem.interpolate(lambda x: LEFT + np.clip(0.5 + 0.5*faces*(x[..., :1] - 0.5), 0, 1)*(RIGHT - LEFT))
    sensor.update(u0)
    u = problem.solve_in_time(u0, end, dt=options.getReal("courant", 0.2) / faces, monitor=sensor)
    rho = problem.field("u[0]", u, end).values()
    p = problem.field("(gamma - 1)*(u[3] - 0.5*(u[1]*u[1] + u[2]*u[2])/u[0])", u, end).values()
    mine = sensor.update(u,end)
    print(problem.comm.rank, f"steps {problem.time_steps}, Newton {problem.newton_iterations}, rho {rho.min():.4f} {rho.max():.4f} p {p.min():.4f} {p.max():.4f} visc>0 in {(mine>0).sum()} of {len(mine)}", "total variation", end=" ")
    line = problem.field("u[0]", u, end).along((1e-9, 0.3/faces), (1-1e-9, .3/faces), 2001)[1][:, 0]
    print(np.abs(np.diff(line)).sum())
    rho_exact = "({ PetscReal w[4]; })"
    body = EXACT.replace("u[0] = rho;", "obj[0] = fabs(u[0] - rho)/%g;" % (1 / faces)).split("  u[1]")[0]
    print("L1", problem.integral(body, u, end))
