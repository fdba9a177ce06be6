"""Base of the package's PETSc shell matrices: creation, lifetime, refusals of what needs stored entries."""

from __future__ import annotations

from petsc4py import PETSc

from ..errors import SolveError
from ..petsc.lifetimes import Context

REMEDY = "use -fe_pmat aij, or the copy that mat.convert('aij', PETSc.Mat()) makes"


def _refused(name: str):
    def refuse(self, mat, *arguments):
        raise SolveError(
            f"Mat.{name} needs stored entries, and this matrix computes products on the device: {self.remedy}"
        )

    refuse.__doc__ = "Raises SolveError."
    return refuse


class ShellMatrix(Context):
    """Context of a PETSc Python Mat whose products are computed on a device.

    factor: of the matrix; Callbacks set it to 1 where they linearize.   remedy: the end of sentences that refuse.
    PETSc itself refuses other operations that it does not offer to Python.
    """

    factor = 1.0
    remedy = REMEDY

    shift = _refused("shift")
    diagonalScale = _refused("diagonalScale")
    setDiagonal = _refused("setDiagonal")
    zeroEntries = _refused("zeroEntries")
    zeroRowsColumns = _refused("zeroRowsColumns")
    copy = _refused("copy")
    duplicate = _refused("duplicate")
    norm = _refused("norm")

    def as_mat(self, sizes, comm, vec_type: str) -> PETSc.Mat:
        """The Mat around this context, with vectors of type `vec_type`. Collective."""
        mat = PETSc.Mat().createPython((sizes, sizes), self, comm=comm)
        mat.setVecType(vec_type)
        mat.setUp()
        return mat
