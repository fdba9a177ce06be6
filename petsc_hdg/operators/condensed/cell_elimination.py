"""Linear solves of a condensed scheme in time: cells eliminated, PETSc solves for the trace, cells recovered."""

from __future__ import annotations

from petsc4py import PETSc

from ...errors import SolveError
from ...petsc.lifetimes import Context
from ...value_checks import plural
from ..callbacks import INEXACT, Callbacks, advice
from ..matfree import JacobianContext
from .in_time import SAME


class StateMatrix(JacobianContext):
    """Context of a PETSc Python Mat: the Jacobian of trace and interior.

    operator: CondensedInTime.   trace, rough: the matrix of the trace, and the one for its preconditioner.
    residual: the last one that Callbacks computed.
    """

    remedy = "use the copy that mat.convert('aij', PETSc.Mat()) makes"
    repeats = False

    def __init__(self, operator, access, trace: PETSc.Mat, rough: PETSc.Mat, residual: PETSc.Vec):
        super().__init__(operator, access)
        self.trace, self.rough, self.residual = trace, rough, residual

    def product(self, x, y, transpose: bool = False) -> None:
        with self.event:
            self.operator.products.multiply(x, y, transpose)

    def getDiagonal(self, mat, diagonal) -> None:
        """Raises SolveError."""
        raise SolveError(f"hdg_gpu in time has no diagonal of the Jacobian of cells and trace: {self.remedy}")

    def view(self, mat, viewer) -> None:
        """Say what the matrix is."""
        viewer.printfASCII("  Jacobian of trace and cells; cells are eliminated\n")


class CellElimination(Context):
    """Context of a PETSc Python PC that solves: `ksp` for the trace, the cells on the device.

    The residual of the last state of a linear physics has been eliminated with the matrix, as that of Newton's method
    where U of the cells is kept. Other right-hand sides and those of the transpose are eliminated for themselves.
    iterations: of `ksp`, in all solves.
    """

    def __init__(self, system: StateMatrix, ksp: PETSc.KSP):
        self.system, self.ksp = system, ksp
        self.iterations = 0
        self.right_side, self.step = system.trace.createVecs()
        self._difference = system.residual.duplicate()
        ksp.setOperators(system.trace, system.rough)

    def destroy(self, pc) -> None:
        """The PC is going, and what it owns with it: PETSc would keep objects that Python gives up. Collective."""
        super().destroy(pc)
        for thing in (self.ksp, self.right_side, self.step, self._difference):
            thing.destroy()

    def setFromOptions(self, pc) -> None:
        """Options of the trace's solver."""
        self.ksp.setFromOptions()

    def apply(self, pc, b, x) -> None:
        """x = J⁻¹ b. Collective. Raises SolveError where the solver of the trace fails."""
        factor = self._factor(b)
        if factor is None:
            self._solve(b, x, False)
            return
        operator, access = self.system.operator, self.system.access
        with operator.arrays.callback("elimination"), access.write(self.right_side) as out:
            operator.eliminate(out)
        self._solve_trace(self.ksp.solve)
        with operator.arrays.callback("recovery"), access.write(x) as out:
            with access.read(self.step) as w:
                operator.place_step(w, out)
            self.step.scale(-1.0)
            with access.read(self.step) as minus_w:
                operator.recover_step(minus_w, out)
        x.scale(factor / self.system.factor)

    def applyTranspose(self, pc, b, x) -> None:
        """x = J⁻ᵀ b. Collective. Raises SolveError where the solver of the trace fails."""
        self._solve(b, x, True)

    def _solve(self, b, x, transposed: bool) -> None:
        """The solution for any right-hand side. Collective."""
        operator, access = self.system.operator, self.system.access
        with operator.arrays.callback("elimination"), access.read(b) as given, access.write(self.right_side) as out:
            operator.products.eliminate(given, out, transposed)
        self._solve_trace(self.ksp.solveTranspose if transposed else self.ksp.solve)
        with operator.arrays.callback("recovery"), access.read(b) as given, access.read(self.step) as w:
            with access.write(x) as out:
                operator.products.recover(given, w, out, transposed)
        x.scale(1 / self.system.factor)

    def _solve_trace(self, solve) -> None:
        """Solve for `step`. Collective. Raises SolveError."""
        solve(self.right_side, self.step)
        self.iterations += self.ksp.getIterationNumber()
        reason = self.ksp.getConvergedReason()
        serves = reason == PETSc.KSP.ConvergedReason.DIVERGED_MAX_IT and self.ksp.getAttr(INEXACT)
        if reason < 0 and not serves:
            raise SolveError(
                f"the solver of the trace stopped after {plural(self.ksp.getIterationNumber(), 'iteration')} (PETSc's "
                f"reason {reason}); {advice(self.ksp)}"
            )

    def _factor(self, b: PETSc.Vec) -> float | None:
        """Return s where b = s times the last residual of a linear physics, 1 where it is that of the last
        linearization, else None. Collective."""
        known, operator = self.system.residual, self.system.operator
        if not operator.is_linear:
            with self.system.access.read(b) as given:
                return 1.0 if operator.eliminates(given) else None
        if not operator.holds_residual:
            return None
        factor = b.dot(known) / (known.dot(known) or 1.0)
        b.copy(self._difference)
        self._difference.axpy(-factor, known)
        return factor if self._difference.norm() <= SAME * abs(factor) * known.norm() else None

    def view(self, pc, viewer) -> None:
        """Show the solver of the trace."""
        viewer.printfASCII("  cells are eliminated; the solver of the trace:\n")
        self.ksp.view(viewer)


class StateCallbacks(Callbacks):
    """Callbacks of trace and interior together. `jacobian` is a StateMatrix, `trace` the matrix of the trace alone."""

    def __init__(self, operator, access, system: StateMatrix, comm, vec_type: str, assembled, conforming):
        jacobian = system.as_mat(system.residual.getSizes(), comm, vec_type)
        super().__init__(operator, access, jacobian, assembled, conforming)
        self.system = system

    def assemble(self, assembled) -> None:
        """Have an AssembledMatrix in the place of coarse levels, in solvers that are made from now on."""
        super().assemble(assembled)
        self.system.rough = assembled.mat

    def _residual(self, t, x, x_t, f) -> None:
        super()._residual(t, x, x_t, f)
        f.copy(self.system.residual)

    def _linearize(self, snes, *at) -> None:
        super()._linearize(snes, *at)
        if snes:
            self.operator.keep_residual()

    def _note_values(self, jacobian: PETSc.Mat, preconditioner: PETSc.Mat) -> None:
        super()._note_values(jacobian, preconditioner)
        super()._note_values(self.system.trace, self.system.rough)

    def _of_solver(self, x):
        """The trace's part of a vector of a nonlinear physics; a linear one reads none."""
        if x is None or self.operator.is_linear:
            return x
        trace = self.system.trace.createVecRight()
        with self.access.read(x) as given, self.access.write(trace) as out:
            self.operator.place_step(given, out)
        return trace

    @property
    def solved(self) -> PETSc.Mat:
        """The matrix of the systems that iterations solve: that of the trace."""
        return self.system.trace

    @property
    def preconditioning(self) -> PETSc.Mat:
        """The matrix that preconditioners take: the same, which CellElimination knows."""
        return self.jacobian

    @property
    def smoothed(self) -> PETSc.Mat:
        """The matrix of the finest level: that of the trace."""
        return self.system.rough

    @property
    def matrices(self) -> list[PETSc.Mat]:
        """The matrix of the state, and those of the trace."""
        coarse = [] if self.conforming is None else [self.conforming.mat]
        return [self.jacobian, self.system.trace, self.system.rough, *coarse]
