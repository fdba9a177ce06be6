"""Sod's shock tube: the Euler equations u_t + ∇·F(u) = ∇·(ε ∇u), u = (ρ, ρ v, E), with an artificial viscosity ε.

    python examples/sod_hdg.py -faces 64 -ts_monitor

A gas of pressure 1 and density 1 is beside one of 0.1 and 0.125. A rarefaction moves to the left, a contact and a shock
to the right. The exact solution is that of E. F. Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics, 4.3.

Scheme: hybridizable DG on one row of squares, BDF of second order in time. After each step fe.ShockSensor sets ε in
each cell by the share of the highest modes in the density: up to speed h/p at the shock, 0 where the flow is smooth.
Things to try: -speed 0 (no viscosity: oscillations at the shock), -threshold -4, -flux roe, -fe_degree 3, -courant 0.2,
-ts_type beuler, -u_picture sod.png.
"""

import sys

import numpy as np
import petsc4py

import petsc_hdg as fe
from petsc_hdg.physics import library
from petsc_hdg.physics.library import gas

petsc4py.init(sys.argv)

from petsc4py import PETSc

LEFT, RIGHT = np.array([1.0, 0.0, 0.0, 2.5]), np.array([0.125, 0.0, 0.0, 0.25])
END = 0.2
# Pressure and velocity between rarefaction and shock, densities on both sides of the contact, speed of the shock.
STAR = {"p_star": 0.303130178, "v_star": 0.927452620, "left": 0.426319428, "right": 0.265573712, "shock": 1.752155732}
DENSITY = """
  const PetscReal c = sqrt(gamma), s = x[0] - 0.5, tail = v_star - sqrt(gamma*p_star/left);
  const PetscReal fan = 2.0/(gamma + 1.0)*(c + s/fmax(t, 1e-12)), thin = 1.0 - 0.5*(gamma - 1.0)*fan/c;
  const PetscReal rho = s < -c*t ? 1.0 : s < tail*t ? pow(thin, 2.0/(gamma - 1.0))
                      : s < v_star*t ? left : s < shock*t ? right : 0.125;
"""
PRESSURE = "(gamma - 1)*(u[3] - 0.5*(u[1]*u[1] + u[2]*u[2])/u[0])"


def tube(faces: int, flux: str = "lax_friedrichs", **options) -> fe.Problem:
    """The tube (0, 1) of one row of squares, of degree 2."""
    sides = [fe.Dirichlet("left", list(LEFT)), fe.Dirichlet("right", list(RIGHT)), gas.slip_wall("boundary")]
    physics = library.euler(2, gas.RATE, flux=flux, artificial_viscosity=True, boundary=sides, constants=STAR)
    mesh = fe.Mesh.box((faces, 1), simplex=False, upper=(1.0, 1.0 / faces))
    return fe.Problem(mesh, physics, backend="hdg_gpu", degree=2, **options)


def run(problem: fe.Problem, faces: int, courant: float = 0.1, **settings) -> tuple:
    """The sensor and the state at END; steps are courant h, the first state has the jump over two cells."""
    sensor = fe.ShockSensor(problem, "u[0]", **settings)
    u0 = problem.interpolate(lambda x: LEFT + np.clip(0.5 + 0.5 * faces * (x[..., :1] - 0.5), 0, 1) * (RIGHT - LEFT))
    sensor.update(u0)
    return sensor, problem.solve_in_time(u0, END, dt=courant / faces, monitor=sensor)


def numbers(problem: fe.Problem, sensor: fe.ShockSensor, u: PETSc.Vec, faces: int) -> dict[str, float]:
    """L1 error of the density, its variation along the tube over the exact one, extremes, cells with viscosity."""
    line = problem.field("u[0]", u, END).along((0.0, 0.5 / faces), (1.0, 0.5 / faces), 20 * faces + 1)[1]
    pressure = problem.field(PRESSURE, u, END).along((0.0, 0.5 / faces), (1.0, 0.5 / faces), 20 * faces + 1)[1]
    return {
        "L1": problem.integral(f"{DENSITY} obj[0] = {faces}*fabs(u[0] - rho);", u, END),
        "variation": float(np.abs(np.diff(line[:, 0])).sum() / 0.875),
        "least density": float(line.min()),
        "most density": float(line.max()),
        "least pressure": float(pressure.min()),
        "cells": problem.comm.allreduce(int(np.count_nonzero(sensor.update(u, END)))),
    }


@fe.main
def main():
    options = PETSc.Options()
    faces = options.getInt("faces", 32)
    problem = tube(faces, options.getString("flux", "lax_friedrichs"))
    settings = {"speed": options.getReal("speed", 1.0), "courant": options.getReal("courant", 0.1)}
    if options.hasName("threshold"):
        settings["threshold"] = options.getReal("threshold")
    sensor, u = run(problem, faces, **settings)
    found = numbers(problem, sensor, u, faces)
    PETSc.Sys.Print(
        f"time {END} after {problem.time_steps} steps   "
        + "   ".join(f"{name} {value:.4g}" for name, value in found.items())
    )
    if picture := options.getString("u_picture", ""):
        problem.plot(picture, u, END, values=problem.field("u[0]", u, END), title=f"t = {END:g}", label="density")
