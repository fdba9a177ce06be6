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
    """Gives levels smoothed by inverted blocks their bounds; keeps their mirrors until those of the next matrices."""

    def __init__(self):
        self._mirrors: list[SellMatrix] = []

    def set(self, ksp: PETSc.KSP, matrices: dict[int, PETSc.Mat], arrays) -> list[int]:
        """Bounds of the smoothers of assembled matrices by number of the level, where the KSP works on the device and
        the user gives no option of Chebyshev's; the numbers of the levels that got bounds. Collective."""
        self._mirrors, pc = [], ksp.getPC()
        if not _on_device(ksp) or pc.getType() != "mg" or _is_told(pc):
            return []
        precision = Options.from_petsc(pc.getOptionsPrefix()).pmat_precision
        return [n for n, mat in matrices.items() if self._set(pc.getMGSmoother(n), mat, arrays, precision)]

    def _set(self, smoother: PETSc.KSP, mat: PETSc.Mat, arrays, precision: str) -> bool:
        if smoother.getType() != "chebyshev" or smoother.getPC().getType() != "pbjacobi":
            return False
        vectors = Vectors(arrays, mat.getLocalSize()[0], mat.comm.tompi4py())
        matrix = mirrored(mat, vectors.arrays, precision)
        self._mirrors.append(matrix)
        operation = Operation(_Product(matrix), _Blocks(mat, vectors), True, vectors)
        largest = extreme_eigenvalues(operation, mat.getOwnershipRange()[0], STEPS)[1]
        if not (np.isfinite(largest) and largest > 0):
            return False
        bounds = (ctypes.c_double(factor * largest) for factor in (UPPER, LOWER))
        petsc_c.call("KSPChebyshevSetEigenvalues", ctypes.c_void_p(smoother.handle), *bounds)
        return True


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
