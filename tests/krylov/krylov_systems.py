"""Systems for Krylov methods, and their solution by PETSc's method or ours, told in the same words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from petsc4py import PETSc
from sample_meshes import box_mesh
from sample_physics import smooth_poisson

from petsc_hdg.options import Options
from petsc_hdg.problem import Problem

FACES = {"triangle": (5, 4), "quadrilateral": (5, 4)}
SCHEMES = {
    "sipg_gpu": {"degree": 2, "pmat": "none"},
    "hdg_gpu": {"degree": 1, "pmat": "none"},
    "cg_gpu": {"degree": 2, "pmat": "none"},
}


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
    assert ours.history.shape == theirs.history.shape
    scale = np.abs(theirs.history).max(initial=0)
    difference = np.abs(ours.history - theirs.history)
    assert difference[:EARLY].max(initial=0) <= early * scale
    assert difference.max(initial=0) <= late * scale
    assert np.abs(ours.x - theirs.x).max() <= late * max(np.abs(theirs.x).max(), 1e-300)
