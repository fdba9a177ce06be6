"""Under mpiexec: auxiliary fields that change on the last rank alone, as load and as coefficient."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc
from petsc_log import logged
from sample_loads import loaded

import petsc_hdg as fe
from petsc_hdg.options import Options
from petsc_hdg.run import guarded

CASES = (("cg_gpu", "conforming"), ("hdg_gpu", "aij"), ("sipg_gpu", "auto"), ("poly_gpu", "auto"))


def made(mesh, backend: str, pmat: str) -> fe.Problem:
    problem = fe.Problem(mesh, loaded(), Options(backend=backend, degree=2, pmat=pmat, check_kernels=False))
    for name in ("kappa", "source"):
        problem.set_auxiliary(name, 1.0)
    return problem


def check(backend: str, pmat: str) -> None:
    mesh = fe.Mesh.box((6, 6), comm=PETSc.COMM_WORLD)
    comm, changed = mesh.comm, made(mesh, backend, pmat)
    cells = changed.mesh.num_cells
    other = np.full(cells, 4.0 if comm.rank == comm.size - 1 else 1.0)
    counts = []
    changed.solve()
    for name in ("source", "kappa"):
        changed.set_auxiliary(name, other)
        counts.append(logged("PCSetUp", changed.solve)[0])
    fresh = made(mesh, backend, pmat)
    for name in ("source", "kappa"):
        fresh.set_auxiliary(name, other)
    means = [problem.integral("u[0]", problem.solve()) for problem in (changed, fresh)]
    assert counts[0] == 0 < counts[1], (backend, counts)
    assert abs(means[0] - means[1]) < 1e-7 * abs(means[1]), (backend, means)


def main() -> None:
    PETSc.Log.begin()
    for case in CASES:
        check(*case)
    PETSc.Sys.Print("agreed")


if __name__ == "__main__":
    guarded(main)  # a rank that fails ends the others
