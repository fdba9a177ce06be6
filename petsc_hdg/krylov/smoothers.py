"""Smoothers on the device: PETSc's Chebyshev and Richardson iterations of a fixed number of steps.

PETSc tells of a multigrid's cycle, smoothers and bounds only in the text of its viewers.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import islice
from weakref import WeakValueDictionary

import numpy as np
from petsc4py import PETSc

from ..database import is_given
from ..device import Kernel
from ..petsc import c_library, csr
from .arnoldi import Arnoldi
from .matrices import Unsupported
from .preconditioners import Preconditioner
from .sell_matrix import FEW_ROWS, SellMatrix, step_spec
from .vectors import Vectors

FEW_STEPS = 10  # of a polynomial whose steps go by its roots
MORE = 2  # steps of a fixed polynomial per step of GMRES, which fits each residual
NUMBER = r"([-+0-9.eE]+)"


def smoother_of(ksp, operator, vectors: Vectors) -> Smoother:
    """The smoother as a KSP describes it, after PETSc has set it up. Collective; raises Unsupported."""
    pc = ksp.getPC()
    if pc.getType() == "pbjacobi":
        made = _smoother_of_blocks(pc, operator, vectors)
    else:
        made = Smoother(operator, _preconditioner(pc, vectors), vectors, ())
    made.steps = _steps(ksp, made)
    return made


def _steps(ksp, smoother: Smoother) -> list[tuple[float, float, float]]:
    """Factors of the steps of a KSP. Collective; raises Unsupported."""
    kind, steps = ksp.getType(), ksp.getTolerances()[3]
    if kind == "richardson":
        scale = richardson_scale(described(ksp))
        if scale is None:
            raise Unsupported("multigrid smoothed by Richardson iterations that choose their own damping")
        return [(0.0, 1.0, scale)] * steps
    if kind == "chebyshev":
        return chebyshev_steps(*chebyshev_bounds(described(ksp)), steps)
    is_default = ksp.getAttr("petsc_hdg_default") and not is_given(ksp.getOptionsPrefix() or "", "ksp_type")
    if kind == "gmres" and is_default:  # the polynomial that GMRES takes for noise, for all residuals
        first = ksp.getOperators()[0].getOwnershipRange()[0]
        roots = Arnoldi(smoother, MORE * steps + 1).roots(first)
        if len(roots):
            return polynomial_steps(roots)
    raise Unsupported(f"multigrid smoothed by a KSP of type {kind}")


def _smoother_of_blocks(pc, operator, vectors: Vectors) -> Smoother:
    """A smoother by inverted blocks; small assembled matrices are multiplied by these once, see BlockSmoother."""
    mat = pc.getOperators()[1]
    key = mat.handle, mat.stateGet(), id(vectors.device), vectors.arrays.precision
    found = _INVERTED.get(key)
    if found is None:
        found = _INVERTED[key] = _InvertedBlocks(mat, vectors.arrays)
    if not isinstance(operator, SellMatrix) or mat.getSize()[0] > FEW_ROWS or not vectors.device.is_gpu:
        made = Smoother(operator, found.mirror, vectors, ())
    else:
        made = BlockSmoother(found.product, found.mirror, vectors, ())
    made.inverted = found  # kept for the next smoother of the same values
    return made


class _InvertedBlocks:
    """Inverted diagonal blocks of a matrix as it is now, on the device. Making one is collective.

    mirror: the blocks;  product: they times the matrix, made when it is asked for
    """

    def __init__(self, mat, arrays):
        self._mat, self._arrays, self._inverse = mat, arrays, inverse_blocks(mat)
        self.mirror = SellMatrix(self._inverse, arrays)

    @cached_property
    def product(self) -> SellMatrix:
        return SellMatrix(self._inverse.matMult(self._mat), self._arrays)


_INVERTED: WeakValueDictionary = WeakValueDictionary()  # by matrix, its state and device


def _preconditioner(pc, vectors: Vectors):
    """What a smoother multiplies residuals by."""
    made = Preconditioner(pc, vectors)
    if not made.on_device:
        raise Unsupported(f"multigrid smoothed with a PC of type {pc.getType()}")
    return made


def inverse_blocks(mat):
    """AIJ matrix of the inverted diagonal blocks, which PETSc has once its PC is set up. Collective."""
    size, rows = mat.getBlockSize(), mat.getLocalSize()[0]
    inverted = np.ascontiguousarray(mat.invertBlockDiagonal())  # [block, row, column]
    first = np.arange(0, rows, size, dtype=PETSc.IntType) + mat.getOwnershipRangeColumn()[0]
    columns = np.repeat((first[:, None] + np.arange(size, dtype=PETSc.IntType))[:, None], size, axis=1)
    starts = np.arange(0, rows * size + 1, size)
    return csr.aij(mat.getSizes(), size, starts, columns.ravel(), mat.comm, inverted.ravel())


def chebyshev_steps(lower: float, upper: float, steps: int) -> list[tuple[float, float, float]]:
    """Factors (keep, mix, scale) of step after step: x₊ = keep x₋ + mix x + scale M⁻¹ (b - A x), x₋ the one before x.

    The first kind, as PETSc's KSPCHEBYSHEV (Saad 2003, algorithm 12.1). A few steps go by the roots of their polynomial
    and do without x₋; rounding would spoil many.
    """
    if steps <= FEW_STEPS:
        angles = np.pi * (np.arange(steps) + 0.5) / steps
        return polynomial_steps((upper + lower) / 2 + (upper - lower) / 2 * np.cos(angles))
    return [*islice(steps_between(lower, upper), steps)]


def steps_between(lower: float, upper: float):
    """Factors (keep, mix, scale) of step after step: x₊ = keep x₋ + mix x + scale B (b - A x), x₋ the one before x."""
    scale = 2 / (upper + lower) if upper + lower else float("nan")
    mu = 1 / (1 - scale * lower)
    before, now = 1.0, mu
    yield 0.0, 1.0, scale
    while True:
        after = 2 * mu * now - before
        omega = 2 * mu * now / after
        yield 1 - omega, omega, omega * scale
        before, now = now, after


def polynomial_steps(roots: np.ndarray) -> list[tuple[float, float, float]]:
    """The same factors for Π (1 - z / θ) over roots θ, of which complex ones come in pairs; large ones first."""
    found = []
    for root in sorted((root for root in roots if root.imag >= 0), key=abs, reverse=True):
        size = abs(root)
        found.append((0.0, 1.0, 1 / (size if root.imag > 0 else root.real)))
        if root.imag > 0:  # with the step before it 1 - 2 Re(θ) z / |θ|² + z² / |θ|²
            mix = 2 * root.real / size - 1
            found.append((1 - mix, mix, 1 / size))
    return [tuple(map(float, factors)) for factors in found]


class Smoother:
    """Steps x₊ = keep x₋ + mix x + scale M⁻¹ (b - A x), fused with the product where M is a diagonal.

    operator  with `apply`, and `step` if it `fuses` (see SellMatrix)
    pc        with `apply`, maybe `combine` (see CellBlocks), None for M = 1
    """

    def __init__(self, operator, pc, vectors: Vectors, steps):
        self.operator, self.vectors, self.steps = operator, vectors, steps
        self.take(pc)
        self._combine = Kernel(step_spec("sell_update", vectors.arrays, self.diagonal is not None), vectors.device)

    def take(self, pc) -> None:
        """Have another M of the same kind."""
        self.pc, self.is_diagonal = pc, pc is None or getattr(pc, "is_diagonal", False)
        self.diagonal = pc.diagonal if pc is not None and self.is_diagonal else None
        self.fuses = self.is_diagonal and self.operator.fuses

    def begin(self, b) -> None:
        """The right-hand side of what is smoothed next is new."""

    def smooth(self, b, x, zero: bool) -> None:
        """Improve x, which is zero where `zero` says so. Collective."""
        now, before = x, self.vectors.buffer("before")
        if zero and len(self.steps) % 2:  # the last step ends in x
            now, before = before, now
        for number, (keep, mix, scale) in enumerate(self.steps):
            if number == 0 and zero:
                self.update(None, None, b, before, 0.0, 0.0, scale)
            else:
                is_zero = zero and number == 1  # `before` holds anything then
                self.step(b, now, before, 0.0 if is_zero else keep, mix, scale)
            now, before = before, now
        if now is not x:
            self.vectors.copy(now, x)

    def step(self, b, x, before, keep: float, mix: float, scale: float) -> None:
        """before = keep before + mix x + scale M⁻¹ (b - A x)"""
        if self.fuses:
            self.operator.step(x, before, b=b, diagonal=self.diagonal, keep=keep, mix=mix, scale=scale)
            return
        product = self.vectors.buffer("r")
        if self.is_diagonal or getattr(self.pc, "combine", None):
            self.operator.apply(x, product)
        else:
            self.operator.residual(b, x, product)
            product, b = None, product
        self.update(product, x, b, before, keep, mix, scale)

    def update(self, product, x, b, out, keep: float, mix: float, scale: float) -> None:
        """out = keep out + mix x + scale M⁻¹ (b - product), without product or x where they are None. There is no
        product where M is neither a diagonal nor combines."""
        if combine := getattr(self.pc, "combine", None):
            combine(product, x, b, out, keep, mix, scale)
            return
        if not self.is_diagonal:
            z = self.vectors.buffer("z")
            self.pc.apply(b, z)
            b = z
        count = self.vectors.count
        self._combine(count, count, product, x, b, self.diagonal, keep, 0.0 if x is None else mix, scale, out)


class BlockSmoother(Smoother):
    """The same with M⁻¹ A stored and M⁻¹ b computed once: a step is one launch, which is what few rows cost on a GPU.

    product: M⁻¹ A;  blocks: M⁻¹
    """

    def __init__(self, product: SellMatrix, blocks: SellMatrix, vectors: Vectors, steps):
        super().__init__(product, None, vectors, steps)
        self.blocks, self._scaled = blocks, vectors.arrays.zeros(max(1, vectors.count))

    def begin(self, b) -> None:
        """M⁻¹ b, for all smoothing until the next call."""
        self.blocks.apply(b, self._scaled)

    def smooth(self, b, x, zero: bool) -> None:
        """Improve x; b is what `begin` was given."""
        super().smooth(self._scaled, x, zero)


def described(thing) -> str:
    """The text of a PETSc object's view, the same on all ranks. Collective."""
    return thing.comm.tompi4py().bcast(c_library.view_text(thing))


def cycles(text: str) -> int:
    """Visits of a level below: 1 in a V-cycle, 2 in a W-cycle."""
    return 2 if re.search(r"cycles=(\w)", text).group(1) == "w" else 1


def distinct_smoothers(text: str) -> bool:
    """True if some level smooths otherwise after the coarse correction than before."""
    ups = re.findall(r"^ *Up solver.*$", text, re.MULTILINE)
    return any("same as down solver" not in line for line in ups)


def chebyshev_bounds(text: str) -> tuple[float, float]:
    """Bounds (lower, upper) that PETSc's Chebyshev iteration uses, to the six digits it prints."""
    found = re.search(rf"eigenvalue (?:targets|estimates) used:\s*min\s*=?\s*{NUMBER},\s*max\s*=?\s*{NUMBER}", text)
    return float(found.group(1)), float(found.group(2).rstrip("."))


def richardson_scale(text: str) -> float | None:
    """Damping factor of PETSc's Richardson iteration; None where it chooses one itself."""
    found = re.search(rf"damping factor\s*=?\s*{NUMBER}", text)
    return float(found.group(1)) if found else None
