"""The Jacobian as a PETSc AIJ or BAIJ matrix, filled from the device's element matrices: through the COO interface,
which sums them, or row by row where the device has done so."""

from __future__ import annotations

from petsc4py import PETSc

from .. import stages
from ..mesh import petsc_c
from .finite import require_finite


class AssembledMatrix:
    """A matrix and the order in which element matrices are handed to it. Collective.

    mat_type: "aij", or "baij" where the values come row by row in blocks of one size.
    """

    def __init__(self, operator, sizes, comm, vec_type: str, mat_type: str = "aij"):
        self.operator = operator
        self.mat = PETSc.Mat().create(comm)
        self.mat.setSizes((sizes, sizes))
        self.mat.setType(mat_type)
        self.mat.setBlockSize(operator.discretization.block_size)
        self.mat.setVecType(vec_type)
        self.mat.setAttr("petsc_hdg_arrays", operator.arrays)  # for solvers on the device, which see the Mat alone
        self.rows = operator.discretization.matrix_rows()
        if self.rows is None:
            petsc_c.set_preallocation_coo(self.mat, *operator.discretization.matrix_numbers())
        else:
            self.mat.setPreallocationCSR(self._pattern(mat_type))
        if comm.size > 1:  # PETSc forgets the block size of this rank's part, which point-block smoothers read
            self.mat.getDiagonalBlock().setBlockSize(operator.discretization.block_size)

    def _pattern(self, mat_type: str):
        """Starts and columns of rows, of BAIJ those of block rows."""
        blocks = self.operator.discretization.matrix_blocks()
        return self.rows if blocks is None or mat_type != "baij" else blocks

    def update(self) -> None:
        """Fill the matrix at the state the operator was last linearized at. Collective.

        Raises SolveError, on all ranks, if its diagonal is not finite: preconditioners fail over that without a reason.
        """
        flops = self.operator.matrix_flops
        with stages.event("Matrix", flops), self.operator.arrays.callback("Jacobian matrix"):
            if self.rows is None:
                petsc_c.set_values_coo(self.mat, self.values())
            else:
                self.mat.setValuesCSR(*self.rows, self.values().astype(petsc_c.SCALAR, copy=False))
                self.mat.assemble()
            diagonal = self.mat.getDiagonal()
            require_finite(self.operator.discretization, diagonal, "the Jacobian")
            diagonal.destroy()

    def values(self):
        """Element matrices, flat, as `matrix_numbers` names their entries."""
        return self.operator.matrices()
