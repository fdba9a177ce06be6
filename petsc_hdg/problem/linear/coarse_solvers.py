"""Solvers of the coarse level of a problem: set up when its matrix has been filled, with restrictions that PETSc lacks.

PETSc takes an interpolation or its transpose by their sizes alone (MatRestrict). Where a level has as many unknowns as
the next finer one, as aggregates of few nodes with many modes may have, it restricts by the interpolation itself, and
the cycle is not symmetric, nor definite: conjugate gradients stall.
"""

from __future__ import annotations

import weakref

from petsc4py import PETSc

from ...database import defaults_in_database, given_numbers
from ...operators.block_rows import MOST_ROWS
from ...petsc import c_library
from ...value_checks import plural
from .. import cells_in_time

# Pᵀ A P. PETSc's own choice of several ranks sums what comes from others in the order in which it arrives; that of one
# rank takes longer than two products.
SAME_BITS = {"matptap_via": "allatonce"}
TWO_PRODUCTS = {"matptap_via": "rap"}


def products(problem):
    """Context manager: how PETSc multiplies the matrices of coarse levels."""
    same = SAME_BITS if problem.options.deterministic and problem.comm.size > 2 else {}
    return defaults_in_database("", TWO_PRODUCTS if problem.comm.size == 1 else same, unless="matptap_via")


def on_device(problem, mat: PETSc.Mat, prefix: str) -> bool:
    """True if multigrid for a matrix is set up on the device, where its smoothers suit it: on one rank, or on GPUs up
    to a number of rows, -PREFIXpc_amg_gather_limit. Raises OptionError."""
    (limit,) = given_numbers(prefix, "pc_amg_gather_limit", (MOST_ROWS,), least=0)
    return problem.comm.size == 1 or (problem.device.has_solvers and mat.getSize()[0] <= limit)


def view(problem) -> list[str]:
    """A line for -fe_view: where the coarse level of a problem on several ranks is, once it has its solver."""
    snes = vars(problem).get("snes")
    pc = cells_in_time.trace_solver(problem, snes.getKSP()).getPC() if snes and problem.comm.size > 1 else None
    if pc is None or pc.getType() != "mg" or not c_library.has_operators(pc.getMGCoarseSolve()):
        return []
    coarse, rows = pc.getMGCoarseSolve().getPC(), pc.getMGCoarseSolve().getOperators()[1].getSize()[0]
    kind = coarse.getPythonType() if coarse.getType() == "python" else coarse.getType()
    where = "whole on each rank" if kind in ("petsc_hdg.AMG", "redundant") else "in parts of all ranks"
    return [f"  coarse level: {plural(rows, 'unknown')}, {where} ({kind})"]


class CoarseSolvers:
    """KSPs on the matrix of a problem's coarse level, as long as others hold them too.

    setting_up: context manager, of the problem and whether its matrix is symmetric, for options of the set-up.
    """

    def __init__(self, problem, setting_up):
        self._problem, self._setting_up = weakref.ref(problem), setting_up
        self._ksps: list[PETSc.KSP] = []

    def add(self, ksp: PETSc.KSP) -> None:
        """Take a KSP."""
        self._ksps.append(ksp)

    def update(self) -> None:
        """Set them up. Collective."""
        self._ksps, problem = [ksp for ksp in self._ksps if ksp.getRefCount() > 1], self._problem()
        with products(problem), self._setting_up(problem, bool(problem.symmetric)):
            for ksp in filter(c_library.has_operators, self._ksps):  # those that no solver has reset
                ksp.setUp()
                _transpose_square(ksp.getPC())


def _transpose_square(pc: PETSc.PC) -> None:
    """Give GAMG restrictions that are the transposed interpolations where these are square. Collective."""
    if pc.getType() != "gamg" or not c_library.restricts_untransposed():
        return
    for level in range(1, pc.getMGLevels()):
        interpolation = pc.getMGInterpolation(level)
        rows, columns = interpolation.getSize()
        if rows == columns:
            pc.setMGRestriction(level, interpolation.transpose(PETSc.Mat()))
