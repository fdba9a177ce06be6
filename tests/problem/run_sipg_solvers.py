"""Interior penalty by its default solver on any number of ranks: prints one JSON object of norms and iterations."""

import json

import numpy as np
from petsc4py import PETSc
from sample_meshes import SHAPES, box_mesh
from sample_physics import smooth_poisson

from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Physics
from petsc_hdg.problem import Problem
from petsc_hdg.run import guarded

FACES = {"triangle": (8, 8), "quadrilateral": (8, 8), "tetrahedron": (3, 3, 3), "hexahedron": (3, 3, 3)}


def nonlinear(name: str, f0: str, flux: str) -> Physics:
    """Data and the solution that errors are taken against are zero."""
    boundary, exact = [Dirichlet("boundary", 0.0)], {"u": "u[0] = 0;"}
    return Physics(
        {"u": 1}, f0, f"for (d = 0; d < dim; ++d) f1[d] = {flux};", boundary=boundary, exact=exact, name=name
    )


BURGERS = nonlinear("burgers", "f0[0] = -sin(3*x[0]);", "(1 + u[0]*u[0])*u_x[d] - 5*u[0]*u[0]")
LOADED = nonlinear("loaded", "f0[0] = -50;", "(1 + u[0]*u[0])*u_x[d]")  # penalties grow on the way


def found(cell: str, physics, degree: int) -> dict:
    mesh = box_mesh(cell, FACES[cell], comm=PETSc.COMM_WORLD, partition_seed=4)
    options = Options(
        backend="sipg_gpu", degree=degree, sipg_kernel="split", check_kernels=False, sipg_check_coercivity=True
    )
    problem = Problem(mesh, physics, options)
    u = problem.solve()
    conforming = problem.callbacks.conforming
    state = problem.interpolate(lambda x: 1 + x[..., 0] * np.cos(x[..., 1]))
    conforming.update(state)
    return {
        "L2": problem.errors(u)["L2"],
        "iterations": problem.linear_iterations,
        "coarse": conforming.mat.norm(PETSc.NormType.FROBENIUS),
        "interpolation": conforming.interpolation.norm(PETSc.NormType.FROBENIUS),
        "state": conforming.average(state).norm() + 1,
        "eigenvalues": problem.eigenvalues,
    }


def main() -> None:
    values = {cell: found(cell, smooth_poisson(), 2) for cell in SHAPES}
    values |= {f"nonlinear {cell}": found(cell, BURGERS, 2) for cell in ("triangle", "quadrilateral")}
    values["loaded"] = found("quadrilateral", LOADED, 2)
    PETSc.Sys.Print(json.dumps(values))


if __name__ == "__main__":
    guarded(main)  # a rank that fails ends the others
