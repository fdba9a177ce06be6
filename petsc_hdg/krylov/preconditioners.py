"""A PC on buffers: none, Jacobi and our block Jacobi on the device, others by PETSc, staged."""

from __future__ import annotations

from petsc4py import PETSc

from ..operators.block_jacobi import BlockJacobi
from .null_space import removal
from .staging import Converted, Staged
from .vectors import Vectors


class Preconditioner:
    """`apply(x, y)` on buffers, null space of the matrix removed, as of the time it is made. Collective.

    on_device    whether nothing passes through PETSc's vectors
    is_diagonal  whether it is y = diagonal x, `diagonal` None meaning ones, and nothing else
    """

    def __init__(self, pc: PETSc.PC, vectors: Vectors, left: bool = True):
        self.pc, self.vectors = pc, vectors
        self.kind = pc.getType()
        matrix, for_pc = pc.getOperators()
        self.diagonal = None
        self.on_device = True
        self._apply = self._scale
        context = pc.getPythonContext() if self.kind == PETSc.PC.Type.PYTHON else None
        if self.kind == PETSc.PC.Type.JACOBI:
            self._take_diagonal(for_pc)
        elif isinstance(context, BlockJacobi) and context.context.operator.device is vectors.arrays.device:
            self._converted, self._blocks = Converted(vectors, context.context.operator.arrays), context.blocks
            self._apply = self._apply_blocks
        elif self.kind != PETSc.PC.Type.NONE:
            self.on_device, self._staged = False, Staged(vectors, for_pc)
            self._apply = self._apply_staged
        self.null_space = removal(matrix, vectors) if left else None
        self.is_diagonal = self._apply == self._scale and self.null_space is None

    @property
    def note(self) -> str:
        """Where it is applied, for `-ksp_view`."""
        return "on the device" if self.on_device else f"by PETSc ({self.kind}), staged"

    def apply(self, x, y) -> None:
        """y = B x. Collective."""
        self._apply(x, y)
        if self.null_space is not None:
            self.null_space.remove(y)

    def _scale(self, x, y) -> None:
        if self.diagonal is None:
            self.vectors.copy(x, y)
        else:
            self.vectors.run("multiply", self.diagonal, x, y)

    def _apply_blocks(self, x, y) -> None:
        self._converted.apply(self._blocks.apply, x, y)

    def _apply_staged(self, x, y) -> None:
        self._staged.apply(self.pc.apply, x, y)

    def _take_diagonal(self, mat) -> None:
        """What PETSc's Jacobi multiplies by, whichever of its kinds it is."""
        ones, diagonal = mat.createVecs()
        ones.set(1.0)
        self.pc.apply(ones, diagonal)
        self.diagonal = self.vectors.buffer("diagonal")
        with self.vectors.access.read(diagonal) as values:
            self.vectors.copy(values, self.diagonal)
        for vec in (ones, diagonal):
            vec.destroy()
