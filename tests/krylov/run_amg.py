"""Under mpiexec: multigrid set up on the device over ranks, the last of which has no rows, beside that of one rank.

Prints {case: [iterations, those of one rank, largest relative difference of what the PC makes of a vector]}, under
"transfers" how far those with a whole level are from a matrix, and whether all ranks have the same bits of it, under
"inverse" how far a level of GAMG is from being solved by its inverse. With the argument `problem` also for a nonlinear
problem {"problem": [Newton steps, iterations, integral] of all ranks with PETSc's sums of the coarse matrix, of all
with the device's, and of one}, and the difference of these sums under "sums".
"""

import json
import sys

import numpy as np
from krylov_systems import multigrid
from mirrored import difference
from petsc4py import PETSc
from test_amg import lame, laplacian, solver

import petsc_hdg as fe
from petsc_hdg.device import Arrays, Device
from petsc_hdg.krylov.dense_matrix import whole_matrix
from petsc_hdg.krylov.multigrid import whole_transfers
from petsc_hdg.operators.block_rows import MatrixRows
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


def nonlinear(comm, by_rows: bool, **options) -> tuple[list, PETSc.Mat]:
    """A problem with the default solvers and queues of GPUs, and its coarse matrix at the end."""
    MatrixRows.suit = staticmethod(lambda operator, is_coarse: by_rows)
    physics = fe.Physics(
        {"u": 1},
        "f0[0] = -10;",
        "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];",
        boundary=[fe.Dirichlet("boundary", "g[0] = 0.2*x[1];")],
    )
    mesh, options = fe.Mesh.box((24, 24), simplex=False, comm=comm), {"backend": "cg_gpu", "degree": 2, **options}
    problem = fe.Problem(mesh, physics, **options)
    problem.device.has_solvers = problem.device.two_queues = True
    u = problem.solve()
    coarse = problem.snes.getKSP().getPC().getMGCoarseSolve().getPC()
    assert coarse.getPythonType() == "petsc_hdg.AMG"
    assert (coarse.getPythonContext().cycle._sums is not None) == by_rows
    found = [problem.newton_iterations, problem.linear_iterations, problem.integral("u[0]*u[0]", u)]
    return found, problem.callbacks.conforming.mat.copy()


def transfers() -> list:
    """A random interpolation of 40 rows, all on the first ranks, from 13 numbers."""
    rng, arrays, rank = np.random.default_rng(5), Arrays(Device.select("any")), COMM.rank
    dense = rng.uniform(-1, 1, (40, 13)) * (rng.uniform(0, 1, (40, 13)) < 0.3)
    r, x = rng.uniform(-1, 1, 40), rng.uniform(-1, 1, 13)
    ends = [40 * min(k, max(1, COMM.size - 1)) // max(1, COMM.size - 1) for k in (rank, rank + 1)]
    rows, own = dense[slice(*ends)], slice(*ends)
    row, column = rows.nonzero()
    csr = np.searchsorted(row, np.arange(len(rows) + 1)), column, rows[row, column]
    csr = *(part.astype(PETSc.IntType) for part in csr[:2]), csr[2]
    columns = [13 * k // COMM.size for k in (rank, rank + 1)]
    mat = PETSc.Mat().createAIJ(((len(rows), 40), (columns[1] - columns[0], 13)), csr=csr, comm=COMM)
    made = whole_transfers(mat, arrays)
    assert whole_transfers(mat, arrays) is made
    given, b, found = (
        arrays.to_device(np.append(r[own], 0.0)),
        arrays.zeros(13),
        arrays.to_device(np.append(r[own], 0.0)),
    )
    made.apply(given, b)
    made.interpolation.add(arrays.to_device(x), found)
    restricted, there = arrays.to_host(b, 13), COMM.tompi4py()
    wrong = (
        np.abs(restricted - dense.T @ r).max(),
        np.abs(arrays.to_host(found, len(rows)) - (r + dense @ x)[own]).max(initial=0),
    )
    return [float(max(there.allgather(max(wrong)))), len(set(there.allgather(restricted.tobytes()))) == 1]


def inverse() -> float:
    """Residual of a level that all ranks have the inverse of."""
    _, mirror = difference(multigrid(matrix(laplacian(20), 1, COMM), pc_gamg_coarse_eq_limit=4))
    level, there = mirror.levels[-2], COMM.tompi4py()
    mirror.join(0, level.total)
    given = np.cos(np.arange(*level.mat.getOwnershipRange()))
    arrays, count = level.vectors.arrays, level.vectors.count
    b, x = arrays.to_device(np.append(given, 0.0)), arrays.zeros(count + 1)
    mirror._visit(len(mirror.levels) - 1, b, x)
    found, wanted = (np.concatenate(there.allgather(part)) for part in (arrays.to_host(x, count), given))
    return float(np.abs(whole_matrix(level.mat) @ found - wanted).max())


@guarded
def main() -> None:
    found = {}
    for name, dense, size in (("numbers", laplacian(20), 1), ("blocks", lame(12), 2)):
        (count, there), (alone, here) = (solved(matrix(dense, size, comm), True) for comm in (COMM, PETSc.COMM_SELF))
        found[name] = [count, alone, float(np.abs(there - here).max() / np.abs(here).max())]
    if sys.argv[1:]:
        (petscs, a), (ours, b) = nonlinear(COMM, False), nonlinear(COMM, True)
        found["problem"] = petscs, ours, nonlinear(PETSc.COMM_SELF, True)[0]
        for backend in ("cg_gpu", "sipg_gpu"):
            given = {"backend": backend, "pmat_precision": "single"}
            found[f"{backend} in single precision"] = [nonlinear(c, True, **given)[0] for c in (COMM, PETSc.COMM_SELF)]
        found["sums"] = (a - b).norm() / a.norm()
    found |= {"transfers": transfers(), "inverse": inverse()}
    if COMM.rank == 0:
        print(json.dumps(found))
