"""Norms of interior penalty on random partitions: run_ranks.py says how it is called."""

from petsc4py import PETSc
from petsc_options import petsc_options
from run_ranks import fill, print_norms
from sample_condensed import by_name
from sample_meshes import DIM, SHAPES, box_mesh
from sample_physics import everything_on_one_field, give_everything

import petsc_hdg as fe
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem
from petsc_hdg.run import guarded

CASES = {"triangle": "everything", "quadrilateral": "convection", "tetrahedron": "tensor", "hexahedron": "elasticity"}
WAVE = "cos(8*PETSC_PI*x[0]) + cos(8*PETSC_PI*x[1])"


def made(mesh, physics, degree: int = 2, **settings) -> Problem:
    settings = {"backend": "sipg_gpu", "check_kernels": False, "pmat": "none", **settings}
    problem = Problem(mesh, physics, Options(degree=degree, **settings))
    if physics.name == "everything on one field":
        give_everything(problem)
    else:
        for field in physics.auxiliary:
            problem.set_auxiliary(field.name, lambda x: 1 + 0.5 * x[..., 0] * x[..., 1])
    return problem


def state_norms(mesh) -> dict:
    """Norms of F, J du and the penalties at a state given by coordinates."""
    name, dim = CASES[mesh.cell], DIM[mesh.cell]
    problem = made(mesh, everything_on_one_field() if name == "everything" else by_name(name, dim))
    u, rate, du, f, y = (problem.create_vec() for _ in range(5))
    for vector, wave in ((u, 1.0), (rate, 2.0), (du, 3.0)):
        fill(problem, vector, wave)
    calls = problem.callbacks
    calls.ifunction(None, 0.3, u, rate, f)
    calls.ijacobian(None, 0.3, u, rate, 1.7, calls.jacobian, calls.jacobian)
    calls.jacobian.mult(du, y)
    sigma = mesh.comm.allreduce(float(problem.operator.penalties().sum()))
    return {"residual": f.norm(), "sum": f.sum(), "action": y.norm(), "energy": y.dot(du), "penalties": sigma}


def gorlani(seed: int) -> dict:
    """Errors of solution E of Gorlani's thesis, by conjugate gradients to round-off."""
    mesh = fe.Mesh.box((8, 8), simplex=False, partition_seed=seed)
    physics = fe.Physics(
        {"u": 1},
        f0=f"f0[0] = -64*PETSC_PI*PETSC_PI*({WAVE});",
        f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[fe.Dirichlet("boundary", "exact")],
        exact=f"u[0] = {WAVE};",
        name="Gorlani E",
    )
    with petsc_options(ksp_type="cg", pc_type="jacobi", ksp_rtol="1e-14", ksp_max_it="5000"):
        problem = made(mesh, physics, 3, sipg_penalty="paper", sipg_penalty_scale=2.0)
        u = problem.solve()
    return {**problem.errors(u), "solution": u.norm(), "cells": mesh.comm.allreduce(mesh.num_cells)}


def main(seed: int, faces: dict) -> dict:
    found = {}
    for cell in faces:
        # Vertices move by `seed=3` always; their numbers, those of cells and the partition change with SEED.
        mesh = box_mesh(cell, faces[cell], seed=3, order_seed=seed, comm=PETSc.COMM_WORLD, partition_seed=seed)
        found[cell] = state_norms(mesh) | {"cells": mesh.comm.allreduce(mesh.num_cells)}
    if len(faces) == len(SHAPES):
        found["E"] = gorlani(seed)
    return found


if __name__ == "__main__":
    guarded(lambda: print_norms(main))
