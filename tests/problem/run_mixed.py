"""Norms on meshes of several cell shapes, which must not depend on ranks, as JSON: run_mixed.py [SEED to deal cells]"""

import json
import sys

import numpy as np
from mixed_meshes import plane, solid, two_cells
from petsc4py import PETSc
from sample_physics import everything, give_everything, smooth_poisson

from petsc_hdg import Mesh, Options, Problem, rebalance
from petsc_hdg.operators import create_operator
from petsc_hdg.run import guarded

MESHES = {"plane": (plane, 4, 1), "solid": (solid, 3, 0), "two": (two_cells, 1, 0)}  # cells along each axis, overlap


def made(name: str, seed: int | None, comm=None, meshes=MESHES) -> Mesh:
    """A mesh, whose cells go to the ranks at random with a seed."""
    make, n, overlap = meshes[name]
    comm = comm or PETSc.COMM_WORLD
    given = make(n) if comm.rank == 0 else {"cells": None, "points": None}
    return Mesh.from_cells(**given, comm=comm, overlap=overlap, partition_seed=seed)


def wave(shift: float, components: range):
    """A smooth function of x with some components."""
    return lambda x: np.stack(
        [0.5 + 0.3 * np.sin(x @ (1.0 + k + np.arange(x.shape[-1])) + shift) for k in components], -1
    )


def state(problem, shift: float) -> PETSc.Vec:
    """A state of `everything` that coordinates give."""
    return problem.interpolate({"v": wave(shift, range(2)), "p": wave(shift, range(2, 3))})


def assert_same(problem: Problem, disc) -> None:
    """Assert that kernels of a problem of `everything` and those of another discretization compute the same."""
    other, arrays, count = create_operator(disc, problem.arrays), problem.arrays, disc.dofmap.num_owned
    for name, values in problem.operator.auxiliary_onto(disc):
        other.set_auxiliary(name, *values)
    u, rate, du = (arrays.to_device(state(problem, shift).getArray(), "x") for shift in (0.0, 1.0, 2.0))
    found = []
    for operator in (problem.operator, other):
        out = [arrays.empty(count) for _ in range(4)]
        operator.residual(u, out[0], 0.3, rate)
        operator.linearize(u, 0.3, rate, 1.5)
        operator.action(du, out[1])
        operator.transposed(du, out[2])
        operator.diagonal(out[3])
        found.append([arrays.to_host(each, count) for each in out])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(theirs, mine, atol=1e-13 * np.abs(mine).max())


def of_products(problem: Problem) -> dict:
    """Norms of the residual and of products of a problem of `everything`."""
    give_everything(problem)
    u, rate, du = (state(problem, shift) for shift in (0.0, 1.0, 2.0))
    f, y, z, calls = problem.create_vec(), problem.create_vec(), problem.create_vec(), problem.callbacks
    calls.ifunction(None, 0.3, u, rate, f)
    calls.ijacobian(None, 0.3, u, rate, 1.5, calls.jacobian, calls.jacobian)
    calls.jacobian.mult(du, y)
    calls.jacobian.multTranspose(du, z)
    return {"F": f.norm(), "J": y.norm(), "Jt": z.norm(), "free": problem.num_unknowns}


def norms(mesh: Mesh) -> dict:
    """Norms of a residual and of products; of a solution, and what is taken of it."""
    found = of_products(Problem(mesh, everything(), Options(degree=2, check_kernels=False, pmat="none")))
    found["cells"] = mesh.num_cells_all
    solved = Problem(mesh, smooth_poisson(), Options(degree=2, check_kernels=False))
    u = solved.solve()
    at = np.array([[0.31, 0.62, 0.43], [0.9, 0.1, 0.55]])[:, : mesh.dim]
    found |= {**solved.errors(u), "u": u.norm(), "at": float(solved.at(u, at)["u"].sum())}
    found |= {"flux": float(solved.flux("left", u)[0]), "side": solved.integral("u_x[0]*n[0] + u[0]", u, over="left")}
    moved, last = rebalance(mesh, np.ones(mesh.num_cells)), mesh.cell_regions[-1]
    found |= {"moved": moved.num_cells_all, "of region": mesh.comm.allreduce(int(moved.cell_mask(last).sum()))}
    return found | {"part": solved.integral("u[0]", u, label=last)}


def main(*seeds: str) -> dict:
    """Norms of all meshes by name."""
    return {name: norms(made(name, int(seeds[0]) if seeds else None)) for name in MESHES}


def print_norms() -> None:
    """Print what `main` finds."""
    found = main(*sys.argv[1:])
    PETSc.Sys.Print(json.dumps(found))


if __name__ == "__main__":
    guarded(print_norms)
