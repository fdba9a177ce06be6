"""Under mpiexec: `run_shock_sensor.py` runs a shock of Burgers' equation whose viscosity a sensor sets after each step;
prints centroids and viscosities [cell] of the end, sorted, and the extremes of u, with the sensor and without."""

import json
import sys

import numpy as np
import petsc4py

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

import petsc_hdg as fe  # noqa: E402
from petsc_hdg.physics import library  # noqa: E402
from petsc_hdg.run import guarded  # noqa: E402

FACES, STEPS, END = 12, 16, 0.5


def tube(comm=None, **options) -> fe.Problem:
    """u_t + ∇·(u²/2 (1, 1)) = ∇·(ε ∇u) between u = 1 on the left and 0 on the right, of degree 2."""
    physics = library.burgers(
        "f0[0] = u_t[0];",
        artificial_viscosity=True,
        boundary=[
            fe.Dirichlet("left", 1.0),
            fe.Dirichlet("right", 0.0),
            fe.BoundaryFlux("boundary", "b[0] = u[0] - u_in[0];"),
        ],
    )
    mesh = fe.Mesh.box((FACES, 1), simplex=False, upper=(1.0, 1.0 / FACES), comm=comm)
    return fe.Problem(mesh, physics, backend="hdg_gpu", degree=2, check_kernels=False, **options)


def run(comm=None, **settings) -> tuple[fe.Problem, np.ndarray, tuple[float, float]]:
    """The tube, viscosity [cell] at the end, extremes of u over this rank's cells."""
    problem = tube(comm)
    sensor = fe.ShockSensor(problem, "1 + u[0]", **settings)
    u = problem.interpolate(lambda x: np.clip(0.5 - 0.5 * FACES * (x[..., 0] - 0.25), 0.0, 1.0))
    sensor.update(u)
    u = problem.solve_in_time(u, END, END / STEPS, monitor=sensor)
    values = problem.field("u", u, END).values(np.random.default_rng(0).uniform(size=(30, 2)))
    return problem, sensor.update(u, END), (float(values.min(initial=1)), float(values.max(initial=0)))


def main() -> None:
    problem, viscosity, extremes = run(speed=1.0)
    mesh = problem.mesh
    x = mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells]].mean(axis=1)[:, 0]
    rows = problem.comm.allgather(np.column_stack([x, viscosity]).tolist())
    ends = problem.comm.allgather(extremes)
    PETSc.Sys.Print(json.dumps([sorted(sum(rows, [])), min(e[0] for e in ends), max(e[1] for e in ends)]))


if __name__ == "__main__":
    guarded(main)
