"""Continuous elements of degree 6 by their default solver on any number of ranks: prints one JSON object."""

import json

from petsc4py import PETSc
from sample_meshes import box_mesh
from sample_physics import smooth_poisson

from petsc_hdg.options import Options
from petsc_hdg.problem import Problem
from petsc_hdg.run import guarded

FACES = {"quadrilateral": (2, 2), "hexahedron": (2, 2, 1)}


def found(cell: str) -> dict:
    mesh = box_mesh(cell, FACES[cell], comm=PETSc.COMM_WORLD, partition_seed=4)
    problem = Problem(mesh, smooth_poisson(), Options(degree=6, check_kernels=False))
    errors = problem.errors(problem.solve())
    return {**errors, "iterations": problem.linear_iterations}


def main() -> None:
    PETSc.Sys.Print(json.dumps({cell: found(cell) for cell in FACES}))


if __name__ == "__main__":
    guarded(main)  # a rank that fails ends the others
