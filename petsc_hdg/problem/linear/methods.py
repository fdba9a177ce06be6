"""The Krylov method that a problem takes where the user names none: PETSc's, or on GPUs ours, which works there."""

from __future__ import annotations

import math

from petsc4py import PETSc

from ...database import given_text, is_given

OURS = {"cg": "petsc_hdg.CG", "gmres": "petsc_hdg.GMRES", "fgmres": "petsc_hdg.FGMRES"}
VECTORS = {"cg": 6, "gmres": 34, "fgmres": 64}  # that a method has at most
IN_NEWTON = 1e-6  # relative tolerance of a linear solve in Newton's method
SMALL_STEP = 1e-4  # of Newton's method in single precision, relative to the state
FORCING, PART_OF_RATIO = 1e-3, 0.1  # the same of the first step of a steady problem and the largest of later ones
# Bounds of that of others: what rounding allows for, and what is asked for of coarse meshes.
ACCURACIES = {"double": (1e-12, 1e-10), "single": (1e-7, 1e-7)}
PART = 0.01  # of the error of discretization that a linear solver may add
MEMORY = 0.25  # part of the device's memory that they may take
PCS = ("mg", "jacobi", "none")  # which run on the device; for any other vectors would come back


def take(problem, ksp: PETSc.KSP, method: str) -> None:
    """Give a KSP a method, by PETSc's name for it, before the user's options. Collective."""
    ksp.setType(method)  # first in any case: of two methods of ours PETSc would keep the norms of the former
    if _on_device(problem, ksp.getPC(), method):
        ksp.setType("python")
        ksp.setPythonType(OURS[method])


def set_tolerances(problem, snes: PETSc.SNES, ts: PETSc.TS | None = None) -> None:
    """Tolerances of a SNES and its KSP before the user's options. Collective.

    Linear physics, and a TS that solves one linear system a stage (rosw), get one below the error of discretization;
    linear solves of others are a part of Newton's method, which in single precision ends where its steps are small:
    rounding keeps the residual large.
    """
    alone = ts is not None and given_text(problem.prefix, "ts_type", ts.getType() or "") == "rosw"
    snes.getKSP().setTolerances(rtol=_accuracy(problem) if alone or problem.physics.is_linear else IN_NEWTON)
    if problem.options.precision == "single":
        snes.setTolerances(stol=SMALL_STEP)


def set_forcing(problem, snes: PETSc.SNES) -> None:
    """Let linear solves of steady nonlinear physics follow the residuals (Eisenstat and Walker 1996, choice 2), unless
    the user gives -ksp_rtol. Before the user's options. Not on traces, whose stabilization is found anew after each of
    the first steps: a run of one step has no residuals to follow. Not with checkpoints, which lack the last residuals.
    """
    options, is_fixed = problem.options, problem.physics.is_linear or is_given(problem.prefix, "ksp_rtol")
    if not (is_fixed or problem.is_condensed or options.checkpoint or options.restart):
        snes.setUseEW(True)
        snes.setParamsEW(version=2, rtol_0=FORCING, rtol_max=FORCING, gamma=PART_OF_RATIO)


def _accuracy(problem) -> float:
    """A part of the error of sin(πx) on a uniform mesh of as many cells, or of what is recovered of it. Collective."""
    cells, is_dg = problem.comm.allreduce(problem.mesh.num_cells), problem.scheme.has_jumps
    order = problem.options.degree + (2 if is_dg else 1)
    expected = PART * (math.pi / order * cells ** (-1 / problem.mesh.dim)) ** order
    least, most = ACCURACIES[problem.options.precision]
    return min(most, max(least, expected))


def change(problem, ksp: PETSc.KSP, method: str) -> None:
    """Give a KSP another method unless the user names one, and its options. Collective."""
    if not is_given(problem.prefix, "ksp_type"):
        take(problem, ksp, method)
    ksp.setFromOptions()


def has_taken(ksp: PETSc.KSP, method: str) -> bool:
    """Return True if a KSP has a method, PETSc's or ours."""
    return ksp.getType() == method or (ksp.getType() == "python" and ksp.getPythonType() == OURS.get(method))


def _on_device(problem, pc: PETSc.PC, method: str) -> bool:
    """True if a default method is ours: on GPUs, with preconditioners that run there, if vectors fit; not where a trust
    region looks at each iterate. Collective."""
    calls, given = problem.callbacks, given_text(problem.prefix, "pc_type", "mg")
    in_region = given_text(problem.prefix, "snes_type", "").startswith("newtontr")
    is_amg = pc.getType() == "python" and pc.getPythonType() == "petsc_hdg.AMG"
    runs_there = given in PCS and (calls.assembled is None or calls.levels is not None or is_amg) and not in_region
    if not (problem.device.has_solvers and runs_there) or is_given(problem.prefix, "ksp_type"):
        return False
    wanted = VECTORS[method] * problem.discretization.dofmap.num_owned * problem.arrays.real.itemsize
    return problem.comm.allreduce(int(wanted > MEMORY * problem.device.memory_bytes)) == 0
