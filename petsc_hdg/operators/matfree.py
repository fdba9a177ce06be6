"""The Jacobian as a PETSc shell matrix: every product is computed on the device, nothing is stored."""

from __future__ import annotations

from petsc4py import PETSc

from .. import stages
from ..errors import SolveError
from .block_jacobi import LIVING
from .sizes import require_sizes


class JacobianContext:
    """Context of a PETSc Python Mat: J at the state that the operator was last linearized at.

    assembled: AssembledMatrix of the same Jacobian, which gives transposed products; None if there is none.
    """

    def __init__(self, operator, access, assembled=None):
        self.operator = operator
        self.access = access
        self.assembled = assembled
        self.event = PETSc.Log.Event("FeProduct")
        self.factor = 1.0  # of the Jacobian, until it is linearized anew

    def as_mat(self, sizes, comm, vec_type: str) -> PETSc.Mat:
        """The Mat around this context, with vectors of type `vec_type`. Collective."""
        mat = PETSc.Mat().createPython((sizes, sizes), self, comm=comm)
        mat.setVecType(vec_type)
        mat.setUp()
        return mat

    def create(self, mat) -> None:
        """The Mat begins to use this context."""
        LIVING["Mat"].add(mat.handle)

    def destroy(self, mat) -> None:
        """The Mat is going."""
        LIVING["Mat"].discard(mat.handle)

    def mult(self, mat, x, y) -> None:
        """y = J x"""
        arrays = self.operator.arrays
        with arrays.callback("Jacobian product"), self.access.read(x) as du, self.access.write(y) as out:
            self._multiply(du, out)
        if self.factor != 1:
            y.scale(self.factor)

    def scale(self, mat, factor: float) -> None:
        """J *= factor, as ARKIMEX does to get the mass matrix from a large shift."""
        self.factor *= factor

    def assemblyEnd(self, mat, final) -> None:
        """J has been linearized anew."""
        self.factor = 1.0

    def product(self, x, y) -> None:
        """y = J x on buffers of owned values. Collective. Raises SolveError for a scaled Jacobian."""
        if self.factor != 1:
            raise SolveError(
                "a scaled Jacobian is multiplied by PETSc's Krylov methods only: this -ts_type needs a -ksp_type such "
                "as cg or gmres"
            )
        self._multiply(x, y)

    def _multiply(self, x, y) -> None:
        with self.event:
            self.operator.action(x, y)
            PETSc.Log.logFlops(2 * self.operator.flops)

    def multTranspose(self, mat, x, y) -> None:
        """y = Jᵀ x, by the assembled matrix. Raises SolveError if there is none."""
        if self.assembled is None:
            raise SolveError(
                "the transposed Jacobian needs the assembled matrix: use -fe_pmat aij, or a solver without transposes"
            )
        self.assembled.mat.multTranspose(x, y)  # PETSc scales both

    def getDiagonal(self, mat, diagonal) -> None:
        """diagonal = diag(J). Raises SolveError for a vector of another size, which PETSc lets pass."""
        require_rows(mat, diagonal)
        callback, flops = self.operator.arrays.callback("Jacobian diagonal"), self.operator.diagonal_flops
        with stages.event("Diagonal", flops), callback, self.access.write(diagonal) as out:
            self.operator.diagonal(out)
        if self.factor != 1:
            diagonal.scale(self.factor)

    def view(self, mat, viewer) -> None:
        """Say what computes the products."""
        disc = self.operator.discretization
        viewer.printfASCII(
            f"  matrix-free Jacobian by {disc.name}, kernel variant '{disc.variant}', on {self.operator.device.name}\n"
        )


def require_rows(mat, vector) -> None:
    """Raise SolveError unless a vector is one of a matrix' rows."""
    require_sizes("the diagonal of a matrix", mat.getSizes()[0], [vector], "mat.createVecLeft() makes one")
