"""Bounds of Chebyshev smoothers of assembled levels, estimated on the device as PETSc would on the host.

PETSc's estimate of a level takes ten products on one core of the host, which is most of what its set-up of a large
multigrid takes. The matrices mirrored for it are those that the multigrid on the device works with.
"""

from __future__ import annotations

import ctypes

import numpy as np
from petsc4py import PETSc

from ..mesh import petsc_c
from ..options import Options, any_given
from .eigenvalues import extreme_eigenvalues
from .null_space import removal
from .operation import Operation
from .sell_matrix import SellMatrix, mirrored
from .smoothers import inverse_blocks
from .solver import DeviceSolver
from .vectors import Vectors

STEPS, LOWER, UPPER = 10, 0.1, 1.1  # of GMRES; bounds over the largest eigenvalue found: PETSc's defaults


class LevelBounds:
    """Gives levels smoothed by inverted blocks their bounds, in all KSPs that share their matrices; keeps the mirrors
    of these until those of the next ones.

    matrices: assembled ones by number of the level.
    """

    def __init__(self, matrices: dict[int, PETSc.Mat], arrays):
        self.matrices, self.arrays = dict(sorted(matrices.items())), arrays
        self._ksps: list[PETSc.KSP] = []
        self._mirrors: list[SellMatrix] = []

    def add(self, ksp: PETSc.KSP) -> None:
        """Take a KSP whose smoothers get bounds from the next `update` on."""
        self._ksps.append(ksp)

    def update(self) -> None:
        """Bounds of the smoothers of the matrices as they are now, where a KSP works on the device and the user gives
        no option of Chebyshev's. Each matrix's largest eigenvalue is estimated once. Collective."""
        self._mirrors, pcs = [], [ksp.getPC() for ksp in self._ksps if _on_device(ksp)]
        pcs = [pc for pc in pcs if pc.getType() == "mg" and not _is_told(pc)]
        for number, mat in self.matrices.items():
            smoothers = [pc.getMGSmoother(number) for pc in pcs]
            smoothers = [s for s in smoothers if s.getType() == "chebyshev" and s.getPC().getType() == "pbjacobi"]
            if smoothers:
                self._set(smoothers, mat, Options.from_petsc(pcs[0].getOptionsPrefix()).pmat_precision)

    def _set(self, smoothers: list[PETSc.KSP], mat: PETSc.Mat, precision: str) -> None:
        vectors = Vectors(self.arrays, mat.getLocalSize()[0], mat.comm.tompi4py())
        matrix = mirrored(mat, vectors.arrays, precision)
        self._mirrors.append(matrix)
        operation = Operation(_Product(matrix), _Blocks(mat, vectors), True, vectors)
        largest = extreme_eigenvalues(operation, mat.getOwnershipRange()[0], STEPS)[1]
        if not (np.isfinite(largest) and largest > 0):
            return
        bounds = [ctypes.c_double(factor * largest) for factor in (UPPER, LOWER)]
        for smoother in smoothers:
            petsc_c.call("KSPChebyshevSetEigenvalues", ctypes.c_void_p(smoother.handle), *bounds)


class _Product:
    """`mult` by a mirrored matrix."""

    on_device = True

    def __init__(self, matrix: SellMatrix):
        self.mult = matrix.apply


class _Blocks:
    """`apply` of a matrix's inverted blocks."""

    on_device, is_identity = True, False

    def __init__(self, mat: PETSc.Mat, vectors: Vectors):
        self.apply = SellMatrix(inverse_blocks(mat), vectors.arrays).apply
        self.null_space = removal(mat, vectors)


def _on_device(ksp: PETSc.KSP) -> bool:
    return ksp.getType() == "python" and isinstance(ksp.getPythonContext(), DeviceSolver)


def _is_told(pc: PETSc.PC) -> bool:
    """Whether an option of Chebyshev's is given to a level."""
    return any_given((pc.getOptionsPrefix() or "") + "mg_levels_", "ksp_chebyshev_")
