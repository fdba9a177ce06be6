"""Under mpiexec: `run_results.py FOLDER` solves by hdg_gpu on each shape, writes cells and trace, prints JSON."""

import json
import sys
from pathlib import Path

from petsc4py import PETSc
from sample_condensed import cell_balance
from sample_meshes import SHAPES, box_mesh
from sample_quadratic import SIDES, quadratic

from petsc_hdg.options import Options
from petsc_hdg.problem import Problem
from petsc_hdg.run import guarded


def numbers(cell: str, folder: Path) -> dict:
    mesh = box_mesh(cell, comm=PETSC_COMM, partition_seed=4)
    problem = Problem(mesh, quadratic(), Options(degree=1, backend="hdg_gpu", check_kernels=False))
    problem.snes.getKSP().setTolerances(rtol=1e-14)
    u = problem.solve()
    problem.write(folder / f"{cell}.vtu", u)
    problem.write_trace(folder / f"{cell}_trace.vtu", u)
    fluxes = {label: problem.flux(label, u).tolist() for label in (*SIDES[: 2 * mesh.dim], "boundary")}
    with problem.access.read(u) as buffer:
        balance, scale = cell_balance(problem.operator, buffer)
    exterior = mesh.comm.allreduce(len(mesh.boundary_facets("boundary")[0]))
    inside = mesh.comm.allreduce(mesh.num_cells * mesh.topology.entity[mesh.dim - 1].shape[1]) - exterior
    return problem.errors(u) | {
        "fluxes": fluxes,
        "balance": balance / scale,
        "facets": exterior + inside // 2,
    }


def run() -> None:
    found = {cell: numbers(cell, Path(sys.argv[1])) for cell in SHAPES}
    PETSc.Sys.Print(json.dumps(found))


PETSC_COMM = PETSc.COMM_WORLD
if __name__ == "__main__":
    guarded(run)  # a rank that fails ends the others
