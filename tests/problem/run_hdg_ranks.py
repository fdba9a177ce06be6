"""Norms of condensed problems on random partitions: run_ranks.py says how it is called."""

import numpy as np
from full_system import solve_full
from petsc4py import PETSc
from petsc_options import petsc_options
from run_ranks import fill, print_norms
from sample_condensed import by_name
from sample_meshes import DIM, box_mesh
from sample_physics import smooth_poisson

from petsc_hdg.options import Options
from petsc_hdg.problem import Problem
from petsc_hdg.run import guarded

CASES = {"triangle": "burgers", "quadrilateral": "elasticity", "tetrahedron": "convection", "hexahedron": "nonlinear"}
TIGHT = {"snes_rtol": "1e-13", "snes_atol": "1e-14", "snes_stol": "0", "ksp_rtol": "1e-13", "ksp_max_it": "5000"}


def main(seed: int, faces: dict) -> dict:
    found = {}
    for number, cell in enumerate(faces):
        # Vertices move by `seed=3` always; their numbers, those of cells and the partition change with SEED.
        mesh = box_mesh(cell, faces[cell], seed=3, order_seed=seed, comm=PETSc.COMM_WORLD, partition_seed=seed)
        kind = ("dbf", "element")[number % 2]
        found[cell] = state_norms(mesh, kind) | solution_norms(mesh, kind) | full_norms(mesh)
        found[cell]["cells"] = mesh.comm.allreduce(mesh.num_cells)
    return found


def made(mesh, physics, **settings) -> Problem:
    """A problem of hdg_gpu with values for its auxiliary fields."""
    problem = Problem(mesh, physics, Options(**{"backend": "hdg_gpu", "degree": 1, "check_kernels": False, **settings}))
    for field in physics.auxiliary:
        problem.set_auxiliary(field.name, lambda x: 1 + 0.5 * x[..., 0] * x[..., 1])
    return problem


def state_norms(mesh, kind: str) -> dict:
    """Norms of F and K du at a trace given by coordinates."""
    problem = made(mesh, by_name(CASES[mesh.cell], DIM[mesh.cell]), hdg_trace_mat=kind, pmat="aij")
    u, du, f, y = (problem.create_vec() for _ in range(4))
    fill(problem, u, 1.0)
    fill(problem, du, 3.0)
    calls = problem.callbacks
    calls.residual(None, u, f)
    calls.linearize(None, u, calls.jacobian, calls.assembled.mat)
    calls.jacobian.mult(du, y)
    assembled = y.duplicate()
    calls.assembled.mat.mult(du, assembled)
    assert (assembled - y).norm() < 1e-12 * y.norm()
    diagonal = calls.jacobian.getDiagonal()
    return {"residual": f.norm(), "action": y.norm(), "diagonal": diagonal.norm(), "energy": y.dot(du)}


def solution_norms(mesh, kind: str) -> dict:
    problem = made(mesh, smooth_poisson(), hdg_trace_mat=kind)
    with petsc_options(ksp_type="cg", pc_type="jacobi", **TIGHT):
        u = problem.solve()
    through = problem.flux("right", u)
    return {"solution": u.norm(), "flux": float(np.abs(through).sum()), **problem.errors(u)}


def full_norms(mesh) -> dict:
    """The system of all unknowns gives the trace of the condensed one."""
    problem = made(mesh, smooth_poisson())
    u, _ = solve_full(problem)
    return {"full": u.norm(), "unknowns": problem.num_unknowns}


if __name__ == "__main__":
    guarded(lambda: print_norms(main))
