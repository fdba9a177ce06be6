"""Linear solves of a condensed scheme in time: cells eliminated, PETSc solves for the trace, cells recovered."""

from __future__ import annotations

from petsc4py import PETSc

from ...errors import SolveError
from ...given import plural
from ...lifetimes import Context
from ..advice import advice
from ..callbacks import Callbacks
from ..shell import ShellMatrix

SAME = 1e-8  # of the residual, by which what is to be solved may differ from it


class StateMatrix(ShellMatrix):
    """Context of a PETSc Python Mat: the Jacobian of trace and interior, of which one product is known.

    operator: CondensedInTime.   trace, rough: the matrix of the trace, and the one for its preconditioner.
    residual: the last one that Callbacks computed.   step: what CellElimination has solved it for.
    """

    remedy = "take -fe_backend cg_gpu, sipg_gpu or poly_gpu, whose Jacobians in time have them"

    def __init__(self, operator, access, trace: PETSc.Mat, rough: PETSc.Mat, residual: PETSc.Vec):
        self.operator, self.access, self.trace, self.rough = operator, access, trace, rough
        self.residual = residual
        self.step, self._difference, self.is_solved = residual.duplicate(), residual.duplicate(), False

    def destroy(self, mat) -> None:
        """The Mat is going, and what it owns with it."""
        super().destroy(mat)
        for thing in (self.step, self._difference):
            thing.destroy()

    def scale(self, mat, factor: float) -> None:
        """Raises SolveError: ARKIMEX and DIRK of PETSc 3.20 and later begin with the mass matrix alone."""
        raise SolveError(
            "hdg_gpu in time has no mass matrix by itself, with which this -ts_type begins: take -ts_type bdf or theta"
        )

    def mult(self, mat, x, y) -> None:
        """y = J x, where x is the step that was solved for last, or a multiple of it, as line searches ask. Collective.
        Raises SolveError for any other: steps come from elimination."""
        factor = x.dot(self.step) / (self.step.dot(self.step) or 1.0) if self.is_solved else 0.0
        if not self.is_solved or not self.are_alike(x, self.step, factor):
            raise SolveError(
                "hdg_gpu in time has no products with the Jacobian of cells and trace but those of line searches: "
                "leave -cells_ksp_type at preonly; -ksp_type and -pc_type choose the solver of the trace"
            )
        self.residual.copy(y)
        y.scale(factor)

    def multTranspose(self, mat, x, y) -> None:
        """Raises SolveError: cells are eliminated and recovered, and their rows are nowhere transposed."""
        raise SolveError(
            f"hdg_gpu in time has no transposed products, which TSAdjoint and solves with Jᵀ need: {self.remedy}"
        )

    def getDiagonal(self, mat, diagonal) -> None:
        """Raises SolveError."""
        raise SolveError(f"hdg_gpu in time has no diagonal of the Jacobian of cells and trace: {self.remedy}")

    def are_alike(self, x: PETSc.Vec, known: PETSc.Vec, factor: float = 1.0) -> bool:
        """Whether x is `factor` times what is known, to SAME. Collective."""
        x.copy(self._difference)
        self._difference.axpy(-factor, known)
        return self._difference.norm() <= SAME * abs(factor) * known.norm()

    def view(self, mat, viewer) -> None:
        """Say what the matrix is."""
        viewer.printfASCII("  Jacobian of trace and cells; cells are eliminated\n")


class CellElimination(Context):
    """Context of a PETSc Python PC that solves: `ksp` for the trace, the cells on the device.

    What is solved is the residual of the last state, as Newton's method and linear steps ask. iterations: of `ksp`, in
    all solves.
    """

    def __init__(self, system: StateMatrix, ksp: PETSc.KSP):
        self.system, self.ksp = system, ksp
        self.iterations = 0
        self.right_side, self.step = system.trace.createVecs()
        ksp.setOperators(system.trace, system.rough)

    def destroy(self, pc) -> None:
        """The PC is going, and what it owns with it: PETSc would keep objects that Python gives up. Collective."""
        super().destroy(pc)
        for thing in (self.ksp, self.right_side, self.step):
            thing.destroy()

    def setFromOptions(self, pc) -> None:
        """Options of the trace's solver."""
        self.ksp.setFromOptions()

    def apply(self, pc, b, x) -> None:
        """x = J⁻¹ b, where b is the last residual or a multiple of it. Collective. Raises SolveError."""
        factor = self._factor(b)
        operator, access = self.system.operator, self.system.access
        with operator.arrays.callback("elimination"), access.write(self.right_side) as out:
            operator.eliminate(out)
        self.ksp.solve(self.right_side, self.step)
        self.iterations += self.ksp.getIterationNumber()
        if self.ksp.getConvergedReason() < 0:
            raise SolveError(
                f"the solver of the trace stopped after {plural(self.ksp.getIterationNumber(), 'iteration')} (PETSc's "
                f"reason {self.ksp.getConvergedReason()}); {advice(self.ksp)}"
            )
        with operator.arrays.callback("recovery"), access.write(x) as out:
            with access.read(self.step) as w:
                operator.place_step(w, out)
            self.step.scale(-1.0)
            with access.read(self.step) as minus_w:
                operator.recover_step(minus_w, out)
        x.copy(self.system.step)
        self.system.is_solved = True
        x.scale(factor)

    def _factor(self, b: PETSc.Vec) -> float:
        """What b is of the last residual, which some methods scale. Collective. Raises SolveError for another b."""
        known = self.system.residual
        factor = b.dot(known) / (known.dot(known) or 1.0)
        if not self.system.are_alike(b, known, factor):
            raise SolveError(
                "hdg_gpu in time solves for steps of Newton's method and of linear problems, and was given another "
                "right-hand side: take -ts_type bdf, beuler or theta and -snes_type newtonls or ksponly"
            )
        return factor

    def view(self, pc, viewer) -> None:
        """Show the solver of the trace."""
        viewer.printfASCII("  cells are eliminated; the solver of the trace:\n")
        self.ksp.view(viewer)


class StateCallbacks(Callbacks):
    """Callbacks of trace and interior together. `jacobian` is a StateMatrix, `trace` the matrix of the trace alone."""

    def __init__(self, operator, access, system: StateMatrix, comm, vec_type: str, assembled):
        jacobian = system.as_mat(system.residual.getSizes(), comm, vec_type)
        super().__init__(operator, access, jacobian, assembled)
        self.system = system

    def _residual(self, t, x, x_t, f) -> None:
        super()._residual(t, x, x_t, f)
        f.copy(self.system.residual)
        self.system.is_solved = False

    def _linearize(self, t, x, x_t, shift, jacobian, preconditioner) -> None:
        super()._linearize(t, x, x_t, shift, jacobian, preconditioner)
        self.system.trace.assemble()
        if self.system.rough != self.system.trace:
            self.system.rough.assemble()

    @property
    def solved(self) -> PETSc.Mat:
        """The matrix of the systems that iterations solve: that of the trace."""
        return self.system.trace

    @property
    def preconditioning(self) -> PETSc.Mat:
        """The matrix that preconditioners take: the same, which CellElimination knows."""
        return self.jacobian

    @property
    def matrices(self) -> list[PETSc.Mat]:
        """The matrix of the state, and those of the trace."""
        return [self.jacobian, self.system.trace, self.system.rough]
