"""The Jacobian as a PETSc shell matrix: every product is computed on the device, and what needs stored entries is
refused."""

from __future__ import annotations

from petsc4py import PETSc

from .. import stages
from ..device import VecAccess, enclosed
from ..errors import SolveError
from ..petsc.lifetimes import Context
from .vectors import require_sizes

REMEDY = "use -fe_pmat aij, or the copy that mat.convert('aij', PETSc.Mat()) makes"


def _refused(name: str):
    def refuse(self, mat, *arguments):
        raise SolveError(
            f"Mat.{name} needs stored entries, and this matrix computes products on the device: {self.remedy}"
        )

    refuse.__doc__ = "Raises SolveError."
    return refuse


class JacobianContext(Context):
    """Context of a PETSc Python Mat: J at the state that the operator was last linearized at, times a factor.

    PETSc itself refuses other operations that it does not offer to Python.

    assembled: AssembledMatrix of the same Jacobian, which gives what needs entries; None if there is none.
    stored: AssembledMatrix of it that products with PETSc's vectors take, and the diagonal; None: kernels compute them.
    factor: the product of what `scale` was given since the linearization; Callbacks set it to 1 there.
    repeats: whether products are launches and exchanges alone, which a recorded sequence repeats.
    remedy: the end of sentences that refuse.
    """

    factor = 1.0
    remedy = REMEDY
    name = "Jacobian"

    shift = _refused("shift")
    diagonalScale = _refused("diagonalScale")
    setDiagonal = _refused("setDiagonal")
    zeroEntries = _refused("zeroEntries")
    zeroRowsColumns = _refused("zeroRowsColumns")
    copy = _refused("copy")
    duplicate = _refused("duplicate")

    @property
    def is_copy(self) -> bool:
        """True if products are by a copy of an operator in another precision, for preconditioners."""
        return getattr(self.operator, "source", None) is not None

    @property
    def exact(self):
        """The operator that diagonals and blocks come from: that of products, or the one that it is a copy of."""
        return self.operator.source if self.is_copy else self.operator

    @property
    def level_precision(self) -> str:
        """Precision of multigrid levels that smooth by the matrix: that of a copy, else double."""
        return self.operator.arrays.precision if self.is_copy else "double"

    def follow(self) -> None:
        """Take the linearization of the operator that the matrix' own is a copy of, if it is one."""
        if self.is_copy:
            self.operator.follow()

    def drop_copy(self) -> None:
        """Have products by the operator itself from now on, not by a copy."""
        self.operator = self.exact
        self.access = VecAccess(self.operator.arrays)

    @property
    def repeats(self) -> bool:
        return self.operator.repeats

    def __init__(self, operator, access, assembled=None, stored=None):
        self.operator = operator
        self.access = access
        self.assembled = assembled
        self.stored = stored
        self.event = PETSc.Log.Event("FeProduct")

    def as_mat(self, sizes, comm, vec_type: str) -> PETSc.Mat:
        """The Mat around this context, with vectors of type `vec_type`. Collective."""
        mat = PETSc.Mat().createPython((sizes, sizes), self, comm=comm)
        mat.setVecType(vec_type)
        mat.setUp()
        return mat

    def mult(self, mat, x, y, transpose: bool = False) -> None:
        """y = J x"""
        if self._is_stored:
            (self.stored.mat.multTranspose if transpose else self.stored.mat.mult)(x, y)
        else:
            callback = self.operator.arrays.callback(f"{self.name} product")
            with callback, self.access.read(x) as given, self.access.write(y) as out:
                self.product(given, out, transpose)
        if self.factor != 1:  # PETSc would log a scaling for each product
            y.scale(self.factor)

    @property
    def _is_stored(self) -> bool:
        """True if the matrix of products has the last linearization."""
        stored = self.stored
        return stored is not None and stored.is_as_filled and stored.linearization == self.operator.linearizations

    def scale(self, mat, factor: float) -> None:
        """J *= factor, as ARKIMEX does to get the mass matrix from a large shift."""
        self.factor *= factor

    def product(self, x, y, transpose: bool = False) -> None:
        """y = J x, or Jᵀ x, on buffers of owned values, without the factor. Collective."""
        with self.logged(2 * self.operator.flops):
            (self.operator.transposed if transpose else self.operator.action)(x, y)

    def step(self, x, y, b, diagonal, keep: float, mix: float, scale: float) -> None:
        """y = keep y + mix x + scale diagonal (b - J x), without a diagonal where it is None, and without the factor,
        by an operator that `fuses`."""
        self.operator.epilogue = x, b, diagonal, float(keep), float(mix), float(scale)
        try:
            self.product(x, y)
        finally:
            self.operator.epilogue = None

    def logged(self, flops: int):
        """Context manager: count a product in PETSc's log, and its flops."""

        def end() -> None:
            PETSc.Log.logFlops(flops)
            self.event.end()

        return enclosed(self.operator.device, self.event.begin, end)

    def _entries(self, what: str) -> PETSc.Mat:
        """The assembled matrix. Raises SolveError if there is none, or if others changed it after it was filled."""
        if self.assembled is None or not self.assembled.is_as_filled:
            why = "there is none" if self.assembled is None else "it was changed after it was filled"
            raise SolveError(f"{what} come from the assembled matrix, and {why}: {self.remedy}")
        return self.assembled.mat

    def multTranspose(self, mat, x, y) -> None:
        """y = Jᵀ x"""
        self.mult(mat, x, y, True)

    def norm(self, mat, kind) -> float:
        """A norm of J, by the assembled matrix. Raises SolveError if there is none."""
        return abs(self.factor) * self._entries("norms").norm(kind)

    def getDiagonalBlock(self, mat) -> PETSc.Mat:
        """This rank's rows and columns, of the assembled matrix. Raises SolveError if there is none, or a factor."""
        if self.factor != 1:
            raise SolveError(f"a scaled Jacobian does not give its diagonal block: {self.remedy}")
        return self._entries("the rows of one rank").getDiagonalBlock()

    def getDiagonal(self, mat, diagonal) -> None:
        """diagonal = diag(J). Raises SolveError for a vector of another size, which PETSc lets pass."""
        remedy = "mat.createVecLeft() makes one"
        require_sizes("the diagonal of a matrix", mat.getSizes()[0], [diagonal], remedy)
        if self._is_stored:
            self.stored.mat.getDiagonal(diagonal)
            diagonal.scale(self.factor)
            return
        with self.operator.arrays.callback(f"{self.name} diagonal"), self.access.write(diagonal) as out:
            self.diagonal(out)
        diagonal.scale(self.factor)

    def diagonal(self, out) -> None:
        """out = the diagonal, a buffer, without the factor. Collective."""
        with stages.event("Diagonal", self.exact.diagonal_flops):
            self._diagonal(out)

    def _diagonal(self, out) -> None:
        exact, operator = self.exact, self.operator
        if not self.is_copy:
            exact.diagonal(out)
            return
        wide, count = exact.arrays.empty(max(1, exact.dofmap.num_owned)), exact.dofmap.num_owned
        exact.diagonal(wide)
        exact.arrays.convert(wide, out, count, operator.arrays)

    def view(self, mat, viewer) -> None:
        """Say what computes the products."""
        disc = self.operator.discretization
        viewer.printfASCII(
            f"  matrix-free Jacobian by {disc.name}, kernel variant '{disc.variant}', on {self.operator.device.name}\n"
        )
