"""Bounds of Chebyshev smoothers of levels, estimated on the device as PETSc would on the host.

PETSc's estimate of a level takes ten steps of GMRES on vectors of the host, on one core, which is much of what its
set-up of a large multigrid takes. The matrices mirrored for it are those that the multigrid on the device works with.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from petsc4py import PETSc

from ..database import any_given
from ..operators.block_jacobi import BlockJacobi
from ..petsc import c_library
from .arnoldi import Arnoldi
from .matrices import Unsupported, context_of, level_operator
from .preconditioners import Preconditioner
from .sell_matrix import SellMatrix
from .smoothers import Smoother, inverse_blocks
from .solver import DeviceSolver
from .vectors import Vectors, removal

STEPS, LOWER, UPPER = 10, 0.1, 1.1  # of GMRES; bounds over the largest eigenvalue found: PETSc's defaults
SAFE = 1.5  # in place of UPPER, where jumps of coefficients hide large eigenvalues from ten steps
# Of a matrix that suits single precision: the root mean square of its diagonal, and of the inverted diagonal, is below
# FAR and above 1 / FAR, and their product is at most MOST_CONTRAST.
FAR, MOST_CONTRAST = 1e25, 1e5
MOST_KEPT = 1 << 22  # unknowns of a rank up to which the vectors of an estimate are kept: 88 bytes each
# Parts of options that have smoothers be, or have bounds, as the user says; PETSc reads them when it sets levels up.
TOLD = ("ksp_chebyshev_", "esteig_", "ksp_type", "pc_type")


class LevelBounds:
    """Gives levels smoothed by a diagonal or by inverted blocks their bounds, in all KSPs that share their matrices;
    keeps the mirrors of these until those of the next ones.

    matrices: assembled ones, and shell matrices of ours, by number of the level.   safe: levels with larger bounds.
    """

    def __init__(self, matrices: dict[int, PETSc.Mat], arrays, safe: tuple[int, ...] = ()):
        self.matrices, self.arrays, self._safe = dict(sorted(matrices.items())), arrays, safe
        self._ksps: list[PETSc.KSP] = []
        self._mirrors: list[SellMatrix] = []
        self._kept: dict[tuple[int, str], Arnoldi] = {}  # by level and kind of smoother

    def add(self, ksp: PETSc.KSP) -> None:
        """Take a KSP whose smoothers get bounds from the next `update` on, as long as others hold it too."""
        self._ksps = [*filter(_is_held, self._ksps), ksp]

    def update(self, finest_only: bool = False) -> None:
        """Bounds of the smoothers of the matrices as they are now, where a KSP works on the device and the user gives
        no option for them. Each matrix's largest eigenvalue is estimated once for each kind of smoother. Collective.

        finest_only: the matrices of other levels have the same values as before.
        """
        self._ksps, finest = [*filter(_is_held, self._ksps)], max(self.matrices)
        if not finest_only:
            self._mirrors = []
            context, comm = context_of(self.matrices[finest]), self.matrices[finest].comm.tompi4py()
            if context is not None and context.is_copy and not suits_single_precision(context, comm):
                context.drop_copy()  # products are by the operator itself: a copy has too few digits
        pcs = [ksp.getPC() for ksp in self._ksps if _on_device(ksp)]
        pcs = [pc for pc in pcs if pc.getType() == "mg" and not _is_told(pc)]
        for number, mat in self.matrices.items():
            if finest_only and number != finest:
                continue
            alike: dict[str, list[PETSc.KSP]] = {}
            for smoother in (pc.getMGSmoother(number) for pc in pcs):
                if smoother.getType() == "chebyshev":
                    alike.setdefault(_kind(smoother.getPC()), []).append(smoother)
            alike.pop("", None)
            for kind, smoothers in alike.items():
                self._set((number, kind), smoothers, mat)

    def _set(self, key: tuple[int, str], smoothers: list[PETSc.KSP], mat: PETSc.Mat) -> None:
        try:
            made = self._arnoldi(key, smoothers[0], mat)
        except Unsupported:
            return
        largest = made.extreme(mat.getOwnershipRange()[0])[1]
        if not (np.isfinite(largest) and largest > 0):
            return
        upper = SAFE if key[0] in self._safe else UPPER
        for ksp in smoothers:
            c_library.set_chebyshev_bounds(ksp, LOWER * largest, upper * largest)

    def _arnoldi(self, key: tuple[int, str], ksp: PETSc.KSP, mat: PETSc.Mat) -> Arnoldi:
        """Arnoldi's process on what a smoother of PETSc multiplies by in each step; kept where that is the product of a
        shell matrix with few unknowns. Raises Unsupported."""
        context, made = context_of(mat), self._kept.get(key)
        precision = "double" if context is None else context.level_precision
        if made is not None and made.smoother.vectors.arrays.precision == precision:
            made.smoother.take(_preconditioner(ksp, mat, made.smoother.vectors))
            return made
        vectors = Vectors(self.arrays, mat.getLocalSize()[0], mat.comm.tompi4py(), precision)
        operator = level_operator(mat, vectors)
        made = Arnoldi(Smoother(operator, _preconditioner(ksp, mat, vectors), vectors, ()), STEPS)
        if isinstance(operator, SellMatrix):
            self._mirrors.append(operator)
        elif vectors.count <= MOST_KEPT:
            self._kept[key] = made
        return made


def suits_single_precision(context, comm) -> bool:
    """True if numbers of a matrix suit single precision: sizes that floats have, and a small contrast. Collective."""
    operator = context.exact
    vectors = Vectors(operator.arrays, operator.dofmap.num_owned, comm)
    diagonal, count = vectors.buffer("diagonal"), comm.allreduce(vectors.count)
    operator.diagonal(diagonal)
    size = np.sqrt(vectors.sums(diagonal, diagonal)[0] / count)
    vectors.run("invert", diagonal)
    inverse = np.sqrt(vectors.sums(diagonal, diagonal)[0] / count)
    return bool(1 / FAR < size < FAR and 1 / FAR < inverse < FAR and size * inverse <= MOST_CONTRAST)


def _preconditioner(ksp: PETSc.KSP, mat: PETSc.Mat, vectors: Vectors):
    """The preconditioner of one of PETSc's smoothers, on the device. Collective; raises Unsupported."""
    pc = ksp.getPC()
    if pc.getType() == "pbjacobi":
        blocks = SellMatrix(inverse_blocks(mat), vectors.arrays)
        return SimpleNamespace(apply=blocks.apply, null_space=removal(mat, vectors))
    if not c_library.has_operators(ksp):
        ksp.setOperators(mat, mat)  # as PETSc does when it sets the levels up
    elif ksp.getOperators()[1] != mat:
        raise Unsupported("a level with a matrix of the user's")
    pc.setUp()
    return Preconditioner(pc, vectors)


def _on_device(ksp: PETSc.KSP) -> bool:
    return ksp.getType() == "python" and isinstance(ksp.getPythonContext(), DeviceSolver)


def _is_held(ksp: PETSc.KSP) -> bool:
    """True if others than us hold a KSP."""
    return ksp.getRefCount() > 1


def _kind(pc: PETSc.PC) -> str:
    """What smooths: the type of a PC that scales by numbers or blocks known on the device, "" for others."""
    if pc.getType() in ("jacobi", "pbjacobi"):
        return pc.getType()
    context = pc.getPythonContext() if pc.getType() == "python" else None
    return type(context).__name__ if isinstance(context, BlockJacobi) else ""


def _is_told(pc: PETSc.PC) -> bool:
    """True if an option is given to a level that says how it is smoothed."""
    return any(any_given((pc.getOptionsPrefix() or "") + "mg_levels_", part) for part in TOLD)
