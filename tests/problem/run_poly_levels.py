"""Multigrid on agglomerates on any number of ranks: prints one JSON object of norms and iterations."""

import json

import numpy as np
from petsc4py import PETSc
from sample_meshes import box_mesh
from sample_physics import smooth_poisson

import petsc_hdg
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem
from petsc_hdg.run import guarded

FACES = {"triangle": (12, 12), "tetrahedron": (4, 4, 4)}


def found(cell: str, backend: str, polytopes: int) -> dict:
    mesh = box_mesh(cell, FACES[cell], comm=PETSc.COMM_WORLD, partition_seed=None if polytopes else 4)
    if polytopes:
        mesh = petsc_hdg.agglomerate(mesh, polytopes)
    options = Options(
        backend=backend,
        degree=2,
        sipg_kernel="split" if polytopes else "auto",
        pmat="agglomerates",
        check_kernels=False,
    )
    problem = Problem(mesh, smooth_poisson(), options)
    u = problem.solve()
    levels = problem.callbacks.levels
    one = levels.operators[0].dofmap.num_owned
    return {
        "L2": problem.errors(u)["L2"],
        "iterations": problem.linear_iterations,
        "counts": levels.counts,
        "first": levels.matrices[0].mat.norm(PETSc.NormType.FROBENIUS),
        "injection": levels.injections[0].norm(PETSc.NormType.FROBENIUS),
        "owned": mesh.comm.allgather(one),
        "defect": consistent(problem),
    }


def consistent(problem) -> float:
    """Largest change of a linear function on its way from the coarsest level to the finest."""
    levels = problem.callbacks.levels
    x = [op.discretization for op in levels.operators][-1]
    values = levels.injections[-1].createVecRight()
    values.setArray(_linear(x))
    for injection in levels.injections[::-1]:
        fine = injection.createVecLeft()
        injection.mult(values, fine)
        values = fine
    values.axpy(-1, problem.interpolate(lambda x: 1 + x @ np.arange(1.0, x.shape[-1] + 1)))
    return values.norm(PETSc.NormType.INFINITY)


def _linear(disc) -> np.ndarray:
    """Unknowns of 1 + x + 2 y (+ 3 z) on each polytope: value in the middle of the box, then slopes of φ = √3 ξ."""
    own = slice(disc.polytopes.count)
    lower, upper = disc.numbering.lower[own], disc.numbering.upper[own]
    slope = np.arange(1.0, disc.dim + 1)
    middle = 1 + (lower + upper) / 2 @ slope
    out = np.zeros((len(lower), disc.dim + 1))
    for row, powers in enumerate(disc.exponents):
        out[:, row] = ((upper - lower) / 2 / np.sqrt(3) * slope) @ powers if powers.any() else middle
    return out.ravel()


def main() -> None:
    values = {
        "triangle": found("triangle", "poly_gpu", 120),
        "tetrahedron": found("tetrahedron", "poly_gpu", 130),
        "nodal": found("triangle", "sipg_gpu", 0),
    }
    PETSc.Sys.Print(json.dumps(values))


if __name__ == "__main__":
    guarded(main)  # a rank that fails ends the others
