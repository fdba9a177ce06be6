"""Norms that must not depend on ranks, partition or vertex order: prints one JSON object.

run_ranks.py RUN ...: norms of residual, Jacobian and solution, one problem a shape, on random partitions. A RUN is
SEED, "SEED two cells", "SEED few", of two shapes, or "SEED SHAPE".
"""

import hashlib
import json
import sys

import numpy as np
from petsc4py import PETSc
from sample_meshes import SHAPES, box_mesh
from sample_physics import everything_on_one_field, give_everything, smooth_poisson

from petsc_hdg.discretizations.dofmap import dof_nodes
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem
from petsc_hdg.run import guarded

FEW = ("triangle", "hexahedron")
TWO_CELLS = {"triangle": (1, 1), "quadrilateral": (2, 1), "hexahedron": (2, 1, 1)}


def main(seed: int, faces: dict) -> dict:
    found = {}
    for cell in faces:
        # The vertices move by `seed=3` always; their numbers, and those of cells, and the partition change with SEED.
        mesh = box_mesh(cell, faces[cell], seed=3, order_seed=seed, comm=PETSc.COMM_WORLD, partition_seed=seed)
        found[cell] = residual_norms(mesh) | solution_norms(mesh)
        found[cell]["cells"] = mesh.comm.allreduce(mesh.num_cells)
        found[cell]["empty"] = int(mesh.comm.allreduce(int(mesh.num_cells == 0)))
    return found


def residual_norms(mesh) -> dict:
    """Norms of F and J du at a state given by coordinates, for a physics with everything, of degree 3."""
    problem = Problem(mesh, everything_on_one_field(), Options(degree=3, check_kernels=False, pmat="none"))
    give_everything(problem)
    u, rate, du, f, y = (problem.create_vec() for _ in range(5))
    for vector, wave in ((u, 1.0), (rate, 2.0), (du, 3.0)):
        fill(problem, vector, wave)
    calls = problem.callbacks
    calls.ifunction(None, 0.3, u, rate, f)
    calls.ijacobian(None, 0.3, u, rate, 1.7, calls.jacobian, calls.jacobian)
    calls.jacobian.mult(du, y)
    diagonal = calls.jacobian.getDiagonal()
    written_again(calls, u, f.duplicate())
    return {
        "state": u.norm(),
        "residual": f.norm(),
        "residual sum": f.sum(),
        "action": y.norm(),
        "diagonal": diagonal.norm(),
        "energy": y.dot(du),
        "bits": digest(problem, f, y, diagonal),
    }


def written_again(calls, u, f) -> None:
    """PETSc remembers norms: after a write every rank must take a new one, also one without values."""
    f.set(0.0)
    assert f.norm() == 0.0
    calls.ifunction(None, 0.3, u, u, f)
    assert f.norm() > 0


def solution_norms(mesh) -> dict:
    problem = Problem(mesh, smooth_poisson(), Options(degree=3, check_kernels=False))
    snes = problem.create_snes()
    snes.getKSP().setTolerances(rtol=1e-14, atol=1e-15)
    snes.getKSP().getPC().setType("jacobi")
    u = problem.create_vec()
    snes.solve(None, u)
    errors = problem.errors(u)
    return {"solution": u.norm(), "L2": errors["L2"], "H1": errors["H1"], "unknowns": problem.num_unknowns}


def fill(problem, vector, wave: float) -> None:
    """A state that depends on coordinates and component only."""
    disc = problem.discretization
    dofmap, space = disc.dofmap, disc.spaces[0]
    x = dof_nodes(problem.mesh, space)
    values = np.stack(
        [1 + 0.3 * np.sin(wave * x.sum(axis=-1) + c + x[..., 0] ** 2) for c in range(space.components)], axis=-1
    )
    numbers = dofmap.compact[dofmap.cell_dofs].ravel()
    owned = numbers < dofmap.num_owned
    local = np.full(dofmap.num_owned, np.nan)
    local[numbers[owned]] = values.ravel()[owned]
    missing = np.isnan(local)  # owned here, but all cells around are on other ranks
    vector.setArray(np.where(missing, 0.0, local))
    assert not problem.comm.allreduce(int(missing.sum())), "a rank owns values of no cell of its own"


def digest(problem, *vectors) -> str:
    """All bits of vectors over all ranks."""
    mine = hashlib.sha256(b"".join(v.getArray().tobytes() for v in vectors)).hexdigest()
    return hashlib.sha256("".join(problem.comm.allgather(mine)).encode()).hexdigest()


def norms_of_runs(norms, names) -> dict:
    """{run: norms(seed, faces)} of runs by their names."""
    found = {}
    for name in names:
        seed, _, cells = name.partition(" ")
        faces = {"": dict.fromkeys(SHAPES), "few": dict.fromkeys(FEW), "two cells": TWO_CELLS}
        found[name] = norms(int(seed), faces.get(cells) or {cells: None})
    return found


def print_norms(norms) -> None:
    """Print the norms of the runs that the command line names."""
    found = norms_of_runs(norms, sys.argv[1:])
    PETSc.Sys.Print(json.dumps(found))


if __name__ == "__main__":
    guarded(lambda: print_norms(main))  # a rank that fails ends the others
