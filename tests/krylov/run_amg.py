"""Under mpiexec: multigrid set up on the device over ranks, the last of which has no rows, beside that of one rank.

Prints {case: [iterations, those of one rank, largest relative difference of what the PC makes of a vector]} and, for a
nonlinear problem, {"problem": [Newton steps, iterations, integral] of all ranks, and of one}.
"""

import json

import numpy as np
from petsc4py import PETSc
from test_amg import lame, laplacian, solver

import petsc_hdg as fe
from petsc_hdg.run import guarded

COMM = PETSc.COMM_WORLD


def matrix(dense: np.ndarray, size: int, comm) -> PETSc.Mat:
    """AIJ; rows in equal parts on all ranks but the last."""
    nodes, parts = len(dense) // size, max(1, comm.size - 1)
    first, last = (nodes * min(rank, parts) // parts * size for rank in (comm.rank, comm.rank + 1))
    rows = dense[first:last]
    row, column = rows.nonzero()
    starts = np.searchsorted(row, np.arange(len(rows) + 1)).astype(PETSc.IntType)
    sizes = (len(rows), len(dense))
    csr = starts, column.astype(PETSc.IntType), rows[row, column]
    return PETSc.Mat().createAIJ((sizes, sizes), bsize=size, csr=csr, comm=comm)


def solved(mat: PETSc.Mat, twice: bool) -> tuple[int, np.ndarray]:
    """Iterations of CG, and what the PC makes of a vector [row]."""
    ksp = solver(mat, limit=60)
    pc = ksp.getPC()
    x, b = mat.createVecs()
    b.set(1.0)
    if twice:  # the same pattern, other values
        mat.scale(3.0)
        ksp.solve(b, x)
        mat.scale(1 / 3)
    ksp.solve(b, x)
    first, last = b.getOwnershipRange()
    b.setArray(np.sin(np.arange(first, last)))
    pc.apply(b, x)
    assert ksp.getConvergedReason() > 0
    return ksp.getIterationNumber(), np.concatenate(mat.comm.tompi4py().allgather(x.getArray()))


def nonlinear(comm) -> list:
    """A problem whose default solvers are those of GPUs."""
    physics = fe.Physics(
        {"u": 1},
        "f0[0] = -10;",
        "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];",
        boundary=[fe.Dirichlet("boundary", "g[0] = 0.2*x[1];")],
    )
    problem = fe.Problem(fe.Mesh.box((24, 24), simplex=False, comm=comm), physics, backend="cg_gpu", degree=2)
    problem.device.has_solvers = True
    u = problem.solve()
    coarse = problem.snes.getKSP().getPC().getMGCoarseSolve().getPC()
    assert coarse.getPythonType() == "petsc_hdg.AMG"
    return [problem.newton_iterations, problem.linear_iterations, problem.integral("u[0]*u[0]", u)]


@guarded
def main() -> None:
    found = {}
    for name, dense, size in (("numbers", laplacian(20), 1), ("blocks", lame(12), 2)):
        (count, there), (alone, here) = (solved(matrix(dense, size, comm), True) for comm in (COMM, PETSc.COMM_SELF))
        found[name] = [count, alone, float(np.abs(there - here).max() / np.abs(here).max())]
    found["problem"] = nonlinear(COMM), nonlinear(PETSc.COMM_SELF)
    if COMM.rank == 0:
        print(json.dumps(found))
