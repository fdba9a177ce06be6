"""Physics for runs in time. The solution sin(t) (1 + x y) lies in all spaces of degree 2: only time steps err."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc
from sample_meshes import box_mesh

from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Neumann, Physics
from petsc_hdg.problem import Problem

EXACT = "u[0] = sin(t)*(1 + x[0]*x[1]);"
RATE = "u_t[0] - cos(t)*(1 + x[0]*x[1])"
SQUARES = "sin(t)*sin(t)*sin(t)*(1 + x[0]*x[1])*(x[0]*x[0] + x[1]*x[1])"  # u |∇u|²


def moving(name: str, diffusivity: str, source: str = "0", flux: str = "sin(t)*x[1]", capacity: str = "1") -> Physics:
    """capacity ∂u/∂t - ∇·(diffusivity ∇u) + source = …; Dirichlet data and a flux that move with time."""
    return Physics(
        {"u": 1},
        f"f0[0] = ({capacity})*({RATE}) + ({source});",
        f"for (d = 0; d < dim; ++d) f1[d] = ({diffusivity})*u_x[d];",
        boundary=[Neumann("right", f"g[0] = ({diffusivity.replace('u[0]', '(sin(t)*(1 + x[1]))')})*{flux};")]
        + [Dirichlet(side, "exact") for side in ("left", "bottom", "top")],
        constants={"k": 1.0},
        exact={"u": EXACT},
        name=name,
    )


HEAT = moving("heat in time", "k")
VARYING = moving("varying in time", "k + t")  # linear, and the matrix changes with time
HEATED = moving("capacity in time", "k", capacity="1 + t + u[0]*u[0]")  # whose mass matrix follows state and time
NONLINEAR = moving("nonlinear in time", "k + u[0]*u[0]", f"2*{SQUARES}")


def problem_in_time(physics, comm=PETSc.COMM_SELF, faces=(3, 3), **settings) -> Problem:
    """A problem of second degree on squares, by cg_gpu unless the settings say otherwise."""
    mesh = box_mesh("quadrilateral", faces, amplitude=0.0, comm=comm)
    return Problem(mesh, physics, Options(**{"degree": 2, **settings}))


def start(problem, t: float = 0.0) -> PETSc.Vec:
    """The solution at a time."""
    return problem.interpolate(lambda x: np.sin(t) * (1 + x[..., 0] * x[..., 1]))


def final_error(problem, steps: int, begin=start, t0: float = 0.2, t1: float = 1.0) -> float:
    """Error in L2 at t1 of a run with that many steps."""
    u = problem.solve_in_time(begin(problem, t0), t1, (t1 - t0) / steps, t0)
    assert problem.time_steps == steps and abs(problem.time - t1) < 1e-12, (problem.time_steps, problem.time)
    return problem.errors(u, t1)["L2"]


def waves(diffusing: str, sign: int = 1):
    """u_t = v, v_t = Δu, where Δu belongs to the equation of one field or of the other; sign: of the first one."""
    rate, other = "f0[0] = u_t[1];", {"u": "v", "v": "u"}[diffusing]
    f0 = {diffusing: rate, other: f"f0[0] = {sign}*(u_t[0] - u[1]);"}
    return Physics(
        {"u": 1, "v": 1},
        f0,
        {diffusing: "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"},
        boundary=[Dirichlet("boundary", 0.0, "u")],
        name="waves",
    )
