"""Systems for Krylov methods, and their solution by PETSc's method or ours, told in the same words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from petsc4py import PETSc
from sample_meshes import box_mesh
from sample_physics import smooth_poisson

from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Physics
from petsc_hdg.problem import Problem

FACES = {"triangle": (5, 4), "quadrilateral": (5, 4)}
SCHEMES = {
    "sipg_gpu": {"degree": 2, "pmat": "none"},
    "hdg_gpu": {"degree": 1, "pmat": "none"},
    "cg_gpu": {"degree": 2, "pmat": "none"},
}
# Of GAMG, smoothers whose mirror on the device needs no estimate of eigenvalues, which PETSc prints to six digits.
LEVELS = {
    "pc_gamg_coarse_eq_limit": 20,
    "mg_levels_ksp_type": "richardson",
    "mg_levels_ksp_richardson_scale": 0.6,
    "mg_levels_pc_type": "jacobi",
}

CONVECTION = Physics(
    {"u": 1},
    f0="f0[0] = 20*u_x[0] + 7*u_x[1] - 1;",
    f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    boundary=[Dirichlet("boundary", "g[0] = x[0];")],
    name="convection",
)


def system(backend: str, cell: str = "triangle", comm=PETSc.COMM_SELF, physics=None, **options):
    """(problem, b): a problem linearized at zero, and the right-hand side of its linear system."""
    options = Options(backend=backend, check_kernels=False, **{**SCHEMES[backend], **options})
    problem = Problem(box_mesh(cell, FACES[cell], seed=3, comm=comm), physics or smooth_poisson(), options)
    calls, zero = problem.callbacks, problem.create_vec()
    calls.linearize(None, zero, calls.jacobian, calls.matrices[-1])
    b = problem.create_vec()
    calls.residual(None, zero, b)
    b.scale(-1.0)
    return problem, b


def laplacian(
    n: int = 12, comm=PETSc.COMM_SELF, diagonal: float = 2.0, singular: bool = False, convection: float = 0.0
) -> PETSc.Mat:
    """An AIJ matrix, -1 and 2 along a line; singular: with natural ends."""
    mat = PETSc.Mat().createAIJ((n, n), nnz=3, comm=comm)
    for row in range(*mat.getOwnershipRange()):
        for column in (row - 1, row + 1):
            if 0 <= column < n:
                mat[row, column] = -1.0 + convection * (column - row)
        mat[row, row] = 1.0 if singular and row in (0, n - 1) else diagonal
    mat.assemble()
    return mat


def wave(mat: PETSc.Mat) -> PETSc.Vec:
    b = mat.createVecLeft()
    first, last = b.getOwnershipRange()
    b.setArray(np.cos(1.0 + 0.7 * np.arange(first, last)))
    return b


@dataclass
class Solved:
    """What a KSP did."""

    history: np.ndarray
    x: np.ndarray
    reason: int
    iterations: int
    norm: float
    ksp: PETSc.KSP


def solved(method: str, mat: PETSc.Mat, b: PETSc.Vec, guess=None, setting=None, **options) -> Solved:
    """Solve by the KSP type `method`, or by ours if it is the name of a class: options without their prefix."""
    from petsc_options import petsc_options

    ksp = PETSc.KSP().create(mat.comm)
    ksp.setOptionsPrefix("tried_")
    ksp.setOperators(mat)
    if method in ("CG", "BiCGStab", "GMRES", "FGMRES", "Chebyshev"):
        options = {"ksp_type": "python", "ksp_python_type": f"petsc_hdg.{method}", **options}
    else:
        options = {"ksp_type": method, **options}
    x = b.duplicate()
    x.set(0.0)
    with petsc_options(**{f"tried_{name}": str(value) for name, value in options.items()}):
        ksp.setFromOptions()
        ksp.setConvergenceHistory()
        if guess is not None:
            guess.copy(x)
            ksp.setInitialGuessNonzero(True)
        if setting is not None:
            setting(ksp)
        ksp.solve(b, x)
    return Solved(
        ksp.getConvergenceHistory().copy(),
        x.getArray().copy(),
        ksp.getConvergedReason(),
        ksp.getIterationNumber(),
        ksp.getResidualNorm(),
        ksp,
    )


EARLY = 25  # iterations before rounding has grown


def agree(ours: Solved, theirs: Solved, early: float = 1e-9, late: float = 1e-4) -> None:
    """Same iterations, reason, norms and solution, to rounding, which Krylov methods let grow."""
    assert (ours.iterations, ours.reason) == (theirs.iterations, theirs.reason)
    logged = _once(theirs.history) if len(theirs.history) > len(ours.history) else theirs.history
    assert ours.history.shape == logged.shape
    scale = np.abs(logged).max(initial=0)
    difference = np.abs(ours.history - logged)
    assert difference[:EARLY].max(initial=0) <= early * scale
    assert difference.max(initial=0) <= late * scale
    assert np.abs(ours.x - theirs.x).max() <= late * max(np.abs(theirs.x).max(), 1e-300)


def laplacian_2d(n: int, block: int = 1) -> PETSc.Mat:
    """AIJ matrix of the five-point star on n² points with `block` unknowns, coupled, of each."""
    coupling = np.eye(block) + 0.2 * np.ones((block, block))
    line = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    dense = np.kron(np.kron(line, np.eye(n)) + np.kron(np.eye(n), line), coupling)
    row, column = dense.nonzero()
    starts = np.searchsorted(row, np.arange(len(dense) + 1)).astype(PETSc.IntType)
    csr = starts, column.astype(PETSc.IntType), dense[row, column]
    mat = PETSc.Mat().createAIJ(dense.shape, csr=csr, comm=PETSc.COMM_SELF)
    mat.setBlockSize(block)
    return mat


def multigrid(mat: PETSc.Mat, **options) -> PETSc.PC:
    """GAMG, set up, with options without their prefix."""
    from petsc_options import petsc_options

    pc = PETSc.PC().create(mat.comm)
    pc.setOptionsPrefix("tried_")
    pc.setOperators(mat)
    pc.setType("gamg")
    options = {"pc_gamg_coarse_eq_limit": 20, **options}
    with petsc_options(**{f"tried_{name}": str(value) for name, value in options.items()}):
        pc.setFromOptions()
        pc.setUp()
    return pc


def _once(history: np.ndarray) -> np.ndarray:
    """PETSc 3.18 logs the norm at a restart of FGMRES twice."""
    again = np.isclose(history[1:], history[:-1], rtol=1e-6, atol=0)
    return history[np.concatenate([[True], ~again])]


def both(mat, b, guess=None, setting=None, ours="CG", theirs="cg", **options):
    """Solve twice and compare; returns what ours did."""
    pair = [solved(m, mat, b, guess, setting, **options) for m in (ours, theirs)]
    agree(*pair)
    return pair[0]


def constants_are_left_out(pair: dict) -> bool:
    """Whether a method of ours and PETSc's solve a singular system alike, whose null space is given."""
    mat = laplacian(singular=True)
    constants = PETSc.NullSpace().create(constant=True, comm=mat.comm)
    mat.setNullSpace(constants)
    mat.setTransposeNullSpace(constants)
    return both(mat, wave(mat), **pair, pc_type="jacobi").reason > 0
