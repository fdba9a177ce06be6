"""Norms of sipg_gpu on meshes of several cell shapes, which must not depend on ranks, as JSON: see run_mixed.py"""

import json
import sys
from functools import partial

import numpy as np
from mixed_meshes import solid
from petsc4py import PETSc
from petsc_options import petsc_options
from run_mixed import MESHES, made, of_products
from sample_physics import everything, smooth_poisson

from petsc_hdg import Mesh, Options, Problem
from petsc_hdg.run import guarded

FEWER = MESHES | {"solid": (partial(solid, across=(2, 2)), 3, 0)}  # cubes across


def norms(mesh: Mesh) -> dict:
    """Norms of a residual and of products; of a solution, and what is taken of it."""
    problem = Problem(mesh, everything(), Options(backend="sipg_gpu", degree=2, check_kernels=False, pmat="none"))
    found, diagonal = of_products(problem), problem.create_vec()
    problem.callbacks.jacobian.getDiagonal(diagonal)
    found["diagonal"] = diagonal.norm()
    at = np.array([[0.31, 0.62, 0.43], [0.9, 0.1, 0.55]])[:, : mesh.dim]
    for pmat in ("auto", "aij"):
        with petsc_options(ksp_rtol="1e-11"):
            options = Options(backend="sipg_gpu", degree=2, check_kernels=False, pmat=pmat)
            solved = Problem(mesh, smooth_poisson(), options)
            u = solved.solve()
        found |= {f"{what} {pmat}": value for what, value in solved.errors(u).items()}
        found |= {f"u {pmat}": u.norm(), f"at {pmat}": float(solved.at(u, at)["u"].sum())}
        found |= {f"flux {pmat}": float(solved.flux("left", u)[0])}
    return found | {"part": solved.integral("u[0]", u, label=mesh.cell_regions[-1])}


def main(*seeds: str) -> dict:
    """Norms of all meshes by name."""
    return {name: norms(made(name, int(seeds[0]) if seeds else None, meshes=FEWER)) for name in FEWER}


if __name__ == "__main__":
    guarded(lambda: PETSc.Sys.Print(json.dumps(main(*sys.argv[1:]))))
