"""Solvers of the coarse level of a problem: set up when its matrix has been filled, with restrictions that PETSc lacks.

PETSc takes an interpolation or its transpose by their sizes alone (MatRestrict). Where a level has as many unknowns as
the next finer one, as aggregates of few nodes with many modes may have, it restricts by the interpolation itself, and
the cycle is not symmetric, nor definite: conjugate gradients stall.
"""

from __future__ import annotations

import weakref

from petsc4py import PETSc

from ...options import defaults_in_database
from ...petsc import c_library

# Pᵀ A P. PETSc's own choice of several ranks sums what comes from others in the order in which it arrives; that of one
# rank takes longer than two products.
SAME_BITS = {"matptap_via": "allatonce"}
TWO_PRODUCTS = {"matptap_via": "rap"}
MOST_GATHERED = 1 << 22  # rows that each rank has all of: a GPU sets them up sooner than all hosts do their parts


def products(problem):
    """Context manager: how PETSc multiplies the matrices of coarse levels."""
    same = SAME_BITS if problem.options.deterministic and problem.comm.size > 2 else {}
    return defaults_in_database("", TWO_PRODUCTS if problem.comm.size == 1 else same, unless="matptap_via")


def on_device(problem, mat: PETSc.Mat) -> bool:
    """Whether multigrid for a matrix is set up on the device, where its smoothers suit it: on one rank, or on GPUs."""
    return problem.comm.size == 1 or (problem.device.has_solvers and mat.getSize()[0] <= MOST_GATHERED)


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
