"""What the contexts of a PETSc Python KSP have in common: buffers, operators, options, view."""

from __future__ import annotations

from math import inf, isfinite, sqrt

from petsc4py import PETSc

from ..errors import SolveError, collectively
from ..operators.vectors import require_sizes
from ..petsc import c_library
from ..petsc.c_library import pc_has_failed
from ..petsc.lifetimes import Context
from .matrices import Matrix, arrays_of
from .preconditioners import LEFT, Operation, Preconditioner
from .vectors import Vectors

Reason = PETSc.KSP.ConvergedReason
Norm = PETSc.KSP.NormType


class ConvergenceMonitor:
    """One solve of a KSP. `stopped` is its reason as a number, 0 while it goes on."""

    def __init__(self, ksp: PETSc.KSP):
        self.ksp = ksp
        self.norm_type = ksp.getNormType()
        self.max_it = ksp.getTolerances()[3]
        self.stopped = 0
        self.iteration = 0
        self.flops = 0  # an unknown's, beside products and preconditioners
        self._norms: list[float] = []

    def begin(self, iteration: int) -> None:
        """An iteration begins; the first is 1."""
        self.iteration = iteration
        self.ksp.setIterationNumber(iteration)

    def stop(self, reason) -> None:
        """End the solve; PETSc takes the solution from its own vector once the KSP itself has a reason."""
        self.stopped = reason

    def tell(self, iteration: int, norm: float) -> None:
        """Tell log and monitors of the residual's norm. Collective."""
        self.ksp.setResidualNorm(norm)
        self.ksp.logConvergenceHistory(norm)
        self.ksp.monitor(iteration, norm)

    def has_failed(self, *values: float) -> bool:
        """True if one of the inner products is not a number; the solve then ends, as PETSc's KSPCheckDot says."""
        if all(isfinite(value) for value in values):
            return False
        failed = pc_has_failed(self.ksp.getPC())
        self.stop(Reason.DIVERGED_PCSETUP_FAILED if failed else Reason.DIVERGED_NANORINF)
        return True

    def check(self, iteration: int, norm: float) -> bool:
        """Tell log, monitors and the convergence test of the residual's norm; whether to stop. Collective."""
        self._norms.append(norm)
        self.ksp.setResidualNorm(norm if isfinite(norm) else inf)
        if self.has_failed(norm):
            return True
        self.tell(iteration, norm)
        return self.test(iteration, norm)

    def test(self, iteration: int, norm: float) -> bool:
        """True if the convergence test says to stop. Collective."""
        reason = self.ksp.callConvergenceTest(iteration, norm)
        if reason:
            self.stop(reason)
        return bool(reason)

    def may_end(self) -> bool:
        """True if the next residual may meet the tolerance: the last norm times its last reduction squared does."""
        if self.norm_type != Norm.UNPRECONDITIONED or len(self._norms) < 2:
            return False
        (rtol, atol, *_), (before, now) = self.ksp.getTolerances(), self._norms[-2:]
        return now * (now / before) ** 2 < max(rtol * self._norms[0], atol)

    def norm(self, residual: float, natural: float, preconditioned: float) -> float:
        """The norm that the KSP asks for, of the squares r·r, z·r and z·z."""
        squares = {Norm.UNPRECONDITIONED: residual, Norm.NATURAL: abs(natural), Norm.PRECONDITIONED: preconditioned}
        return sqrt(squares.get(self.norm_type, 0.0)) if isfinite(residual + natural + preconditioned) else float("nan")


class DeviceSolver(Context):
    """Context of a PETSc Python KSP whose vectors stay on the device; a subclass has `iterate(monitor, b, x, guessed)`,
    which improves the buffer x from its present values, zero unless `guessed`. Collective.

    Right-hand side and first guess go to the device when a solve begins, and the solution comes back when it ends.
    Monitors that ask for the solution get a copy of it.

    ARKIMEX multiplies the Jacobian by a factor to get the mass matrix. A system with such a shell matrix is divided by
    the factor before it is solved; its norms are those of the divided residual.
    """

    # Norm and side of the preconditioner, from the default on; a method has no norm, too, on each of these sides.
    norms: tuple = ((Norm.PRECONDITIONED, LEFT), (Norm.UNPRECONDITIONED, LEFT), (Norm.NATURAL, LEFT))
    petsc_type = ""  # PETSc's method of the kind, which solves with the transpose

    def __init__(self):
        self.vectors = self.matrix = self.preconditioner = self.operation = None
        self._kept = None  # buffers and launches of the method
        self._made_for = None  # what the preconditioner is that of: PC, side, operators, states, null space
        self._current = None  # returns the buffer of the present iterate, during a solve
        self._event = PETSc.Log.Event("FeKrylov")

    @property
    def name(self) -> str:
        return f"petsc_hdg.{type(self).__name__}"

    # PETSc -----------------------------------------------------------------------------------------------

    def create(self, ksp) -> None:
        """The KSP begins to use this context."""
        super().create(ksp)
        known = {norm: 1 + len(self.norms) - place for place, norm in enumerate(self.norms)}
        c_library.set_supported_norms(ksp, known | {(Norm.NONE, side): 1 for _, side in self.norms})

    def setUp(self, ksp) -> None:
        """The KSP is set up for the first time, or after a reset."""
        self.preconditioner = None

    def reset(self, ksp) -> None:
        """Free the buffers."""
        self._made_for = self._kept = None
        self.vectors = self.matrix = self.preconditioner = self.operation = None

    def solve(self, ksp, b, x) -> None:
        """Solve A x = b. Collective."""
        self._require(ksp, b, x)
        ksp.getPC().setUp()  # KSPSetUp does so only after KSPSetOperators; PETSc's own methods do so in PCApply
        if c_library.pc_has_failed(ksp.getPC()):
            ksp.setConvergedReason(Reason.DIVERGED_PCSETUP_FAILED)
            return
        self.prepare(ksp, arrays_of(ksp, b), b.getLocalSize())
        access, monitor = self.vectors.access, ConvergenceMonitor(ksp)
        guessed = ksp.getInitialGuessNonzero()
        with self._event, self.vectors.arrays.callback("Krylov solve"):
            with access.read(b) as given, access.update(x) if guessed else access.write(x) as solution:
                if not guessed:
                    self.vectors.arrays.fill(solution)
                try:
                    self.iterate(monitor, self._over_factor(given), solution, guessed)
                finally:
                    self._current = None
            PETSc.Log.logFlops(monitor.flops * self.vectors.count)
        ksp.setConvergedReason(monitor.stopped)

    def _over_factor(self, b):
        """Return the buffer b, divided by the factor of the matrix."""
        if self.matrix.factor == 1:
            return b
        scaled = self.vectors.buffer("over the factor")
        self.vectors.arrays.fill(scaled)
        self.vectors.run("combine", 1 / self.matrix.factor, b, 0.0, scaled)
        return scaled

    def _require(self, ksp, b, x) -> None:
        """Raise SolveError unless matrices are square and vectors have their rows. Collective."""
        mats = ksp.getOperators()
        rows = mats[0].getSizes()[0]
        with collectively(ksp.comm.tompi4py()):
            if any(size != rows for mat in mats for size in mat.getSizes()):
                sizes = ", ".join("{} by {}".format(*mat.getSize()) for mat in mats)
                raise SolveError(f"{self.name} was given matrices of {sizes}: it takes square ones of one size")
            require_sizes(self.name, rows, (b, x), "mat.createVecs() makes right-hand sides and solutions")

    def solveTranspose(self, ksp, b, x) -> None:
        """Solve Aᵀ x = b, as adjoints in time do, by PETSc's method of the kind. Collective. Raises SolveError where
        there is none."""
        if not self.petsc_type:
            raise SolveError(
                f"{self.name} solves with the matrix, not with its transpose: use one of PETSc's -ksp_type"
            )
        other = PETSc.KSP().create(ksp.comm)
        other.setType(self.petsc_type)
        other.setOperators(*ksp.getOperators())
        other.setPC(ksp.getPC())
        other.setTolerances(*ksp.getTolerances())
        other.setInitialGuessNonzero(ksp.getInitialGuessNonzero())
        other.solveTranspose(b, x)
        ksp.setConvergedReason(other.getConvergedReason())
        ksp.setIterationNumber(other.getIterationNumber())
        other.destroy()

    def buildSolution(self, ksp, x) -> None:
        """Write the present iterate into a vector, as monitors ask for it. Collective."""
        if not x.handle:
            raise SolveError(
                f"a monitor looks for the solution in PETSc's own vector, and {self.name} has it on the device: use "
                "-ksp_monitor or -ksp_monitor_true_residual"
            )
        if self._current is None:
            ksp.getSolution().copy(x)
            return
        with self.vectors.access.write(x) as out:
            self.vectors.copy(self._current(), out)

    def view(self, ksp, viewer) -> None:
        """Say where vectors, products and preconditioner are."""
        if self.vectors is None:
            viewer.printfASCII(f"  {self.name}, not set up yet\n")
            return
        viewer.printfASCII(
            f"  {self.name}: vectors on {self.vectors.arrays.device.name}\n"
            f"    products {self.matrix.note}\n    preconditioner {self.preconditioner.note}\n"
        )

    def kept(self, kind):
        """The buffers and launches of a method, kind(vectors), made once while the vectors stay."""
        if self._kept is None:
            self._kept = kind(self.vectors)
        return self._kept

    # Methods ---------------------------------------------------------------------------------------------

    def prepare(self, ksp, arrays, count: int) -> None:
        """Buffers and operators for vectors [count] on the device of `arrays`. Collective."""
        if self.vectors is None or self.vectors.count != count or self.vectors.device is not arrays.device:
            self.reset(ksp)
            self.vectors = Vectors(arrays, count, ksp.comm.tompi4py())
        mat = ksp.getOperators()[0]
        if self.matrix is None or self.matrix.mat != mat:
            self.matrix = Matrix(mat, self.vectors)
        else:
            self.matrix.update()
        is_left, pc = ksp.getPCSide() == LEFT, ksp.getPC()
        operators = [(mat, mat.stateGet()) for mat in ksp.getOperators()]
        made_for = [pc.handle, pc.getType(), is_left, mat.getNullSpace().handle, operators]
        known = made_for[: -1 if c_library.is_reused(pc) else None]
        if self.preconditioner is None or self._made_for[: len(known)] != known:
            self.preconditioner, self._made_for = Preconditioner(pc, self.vectors, is_left), made_for
        self.operation = Operation(self.matrix, self.preconditioner, is_left, self.vectors)
