"""The default preconditioner of polytopic DG, and one of matrix-free interior penalty: PETSc's PCMG on agglomerates.

Finest level: the scheme itself, smoothed by the inverted blocks of its polytopes; without a matrix as in two_level.
Coarser levels: the scheme of first degree on agglomerates of agglomerates (see AgglomerateLevels), and LU on the last.
W-cycles: iterations of V-cycles grow with the number of levels where the forms are not inherited (Antonietti, Houston,
Hu, Sarti and Verani 2017). All are defaults: -ksp_*, -pc_*, -mg_levels_* and -mg_coarse_* win.
"""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from petsc4py import PETSc

from ... import operators
from ...petsc.c_library import set_block_sizes, set_passive_dm
from . import direct_solvers, methods, two_level

STEPS = 3  # of a smoother
MOST_DIRECT = 10_000  # unknowns of the coarsest level that LU takes

krylov = two_level.krylov  # the same smoothers need the same method


def agglomerate_levels(problem) -> operators.AgglomerateLevels | None:
    """The coarse levels, None if the problem has another preconditioner, or so few unknowns that no level is coarser.
    Collective."""
    if problem.pmat != "agglomerates":
        return None
    levels = operators.AgglomerateLevels(problem.operator, problem.access, problem.petsc_comm, problem.vec_type)
    sizes = problem.comm.allreduce(np.array([o.dofmap.num_owned for o in (problem.operator, levels.operators[0])]))
    return levels if sizes[1] < sizes[0] else None


def create(problem, ksp: PETSc.KSP, symmetric: bool) -> None:
    """Give a KSP, before the user's options, the Krylov method and all levels. Collective."""
    from ...krylov.level_bounds import LevelBounds

    levels, pc = problem.callbacks.levels, ksp.getPC()
    methods.take(problem, ksp, krylov(problem, symmetric))
    two_level.set_levels(ksp, *levels.injections[::-1])
    pc.setMGCycleType(PETSc.PC.MGCycleType.W)
    finest = len(levels.matrices)
    for place, matrix in enumerate(levels.matrices):
        level = pc.getMGSmoother(finest - place - 1)
        set_passive_dm(level, matrix.mat.createVecRight())
        level.setOperators(matrix.mat)
    _set_coarse_solver(problem, pc.getMGCoarseSolve())
    _set_smoothers(problem, pc, symmetric)
    if levels.bounds is None:
        matrices = {finest - place: matrix.mat for place, matrix in enumerate(levels.matrices[:-1], 1)}
        levels.bounds = LevelBounds(matrices | {finest: problem.callbacks.preconditioning}, problem.arrays)
    levels.bounds.add(ksp)


def setting_up(problem, symmetric: bool):
    """Context manager: nothing is read from PETSc's database while levels are set up."""
    return nullcontext()


def change(problem, ksp: PETSc.KSP, symmetric: bool) -> None:
    """Follow constants that have made the matrix (un)symmetric, unless the user chose otherwise. Collective."""
    pc = ksp.getPC()
    methods.change(problem, ksp, krylov(problem, symmetric))
    if pc.getType() == "mg":
        _set_smoothers(problem, pc, symmetric)
        for level in range(1, pc.getMGLevels()):
            pc.getMGSmoother(level).setFromOptions()


def _set_coarse_solver(problem, coarse: PETSc.KSP) -> None:
    coarse.setType("preonly")
    if coarse.getOperators()[0].getSize()[0] > MOST_DIRECT:
        coarse.getPC().setType("gamg")
    else:
        direct_solvers.set_type(problem, coarse.getPC())


def _set_smoothers(problem, pc: PETSc.PC, symmetric: bool) -> None:
    """Smoothers of all levels but the coarsest, before the user's options."""
    levels, along_flow = problem.callbacks.levels, not (symmetric or problem.device.has_solvers)
    smoothed = [(o.discretization, m.mat) for o, m in zip(levels.operators, levels.matrices, strict=True)][-2::-1]
    if problem.discretization.is_polytopic:
        smoothed.append((problem.discretization, problem.callbacks.assembled.mat))
    else:
        two_level.set_smoother(problem, pc.getMGSmoother(len(levels.matrices)), symmetric)
    for place, (discretization, mat) in enumerate(smoothed, 1):
        smoother = pc.getMGSmoother(place)
        smoother.setType("chebyshev" if symmetric else "gmres")
        smoother.setAttr("petsc_hdg_default", True)
        smoother.setTolerances(max_it=STEPS)
        set_blocks(smoother.getPC(), discretization, mat, along_flow)


def set_blocks(pc: PETSc.PC, discretization, mat: PETSc.Mat, along_flow: bool = False) -> None:
    """Block Jacobi over polytopes; along the flow incomplete LU of each rank's part, on the host."""
    if along_flow:
        pc.setType("bjacobi")
    elif discretization.block_size > 1:
        pc.setType("pbjacobi")
    else:
        own = discretization.numbering.first[: discretization.polytopes.count + 1]
        set_block_sizes(mat, np.diff(own))
        pc.setType("vpbjacobi")
