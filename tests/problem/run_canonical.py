"""Functions of x in the order that no partition changes: run_canonical.py FILE SEED writes one array a case to FILE.

Meshes of all shapes with cells, vertices and ranks dealt out at random by SEED; all schemes; components of which one is
essential on a part of the boundary.
"""

import sys

import numpy as np
import run_mixed
from petsc4py import PETSc
from sample_meshes import SHAPES, bent, box_mesh

from petsc_hdg.discretizations import scheme
from petsc_hdg.discretizations.canonical import CanonicalUnknowns
from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Physics
from petsc_hdg.problem.input_data import nodal_values
from petsc_hdg.run import guarded

PHYSICS = Physics(
    {"u": 3},
    f1="for (d = 0; d < dim*3; ++d) f1[d] = u_x[d];",
    boundary=[Dirichlet("left", "g[0] = 0;", components=(0,))],
)
MIXED = ("plane", "solid")  # meshes of several shapes
SCHEMES = {"cg_gpu": 3, "hdg_gpu": 2, "sipg_gpu": 2, "poly_gpu": 1}


def functions(x: np.ndarray) -> np.ndarray:
    first = np.sin(3 * x[..., 0] + 0.2) + np.cos(2 * x[..., 1]) * x[..., 0] + x[..., -1] ** 2
    return np.stack([first, 2 * first, first**2], axis=-1)


def main(path: str, seed: int) -> None:
    found = {}
    for cell in (*SHAPES, *MIXED):
        for name, degree in SCHEMES.items() if cell in SHAPES else [("cg_gpu", 3)]:
            if cell in MIXED:
                mesh = run_mixed.made(cell, seed)
            else:
                mesh = box_mesh(cell, seed=3, order_seed=seed, comm=PETSc.COMM_WORLD, partition_seed=seed)
            if name == "cg_gpu" and cell in ("triangle", "quadrilateral"):
                mesh = bent(mesh)
            options = Options(backend=name, degree=degree, poly_agglomerates=5)
            kind = scheme(options)
            mesh = kind.on_mesh(mesh, options)
            disc = kind.on(mesh, kind.prepared(PHYSICS, options, mesh.dim), options, None)
            disc.dofmap  # noqa: B018  numbers
            unknowns = CanonicalUnknowns(disc)
            values = nodal_values(disc, functions)
            block = unknowns.order.collect(values)
            assert np.array_equal(unknowns.order.deal(block), values)
            whole = np.concatenate(mesh.comm.allgather(block))
            digests = [int(text, 16) for text in (unknowns.digest, unknowns.cells.digest)]
            found[f"{cell} {name}"], found[f"{cell} {name} digests"] = whole, np.array(digests, np.uint64)
    if PETSc.COMM_WORLD.rank == 0:
        np.savez(path, **found)


if __name__ == "__main__":
    guarded(lambda: main(sys.argv[1], int(sys.argv[2])))
