"""Linear solves of a condensed scheme in time: cells eliminated, PETSc solves for the trace, cells recovered."""

from __future__ import annotations

from petsc4py import PETSc

from ...errors import SolveError
from ..advice import advice
from ..block_jacobi import LIVING
from ..callbacks import Callbacks

SAME = 1e-8  # of the residual, by which what is to be solved may differ from it


class StateMatrix:
    """Context of a PETSc Python Mat: the Jacobian of trace and interior, which is never multiplied.

    operator: CondensedInTime.   trace, rough: the matrix of the trace, and the one for its preconditioner.
    residual: the last one that Callbacks computed.
    """

    def __init__(self, operator, access, trace: PETSc.Mat, rough: PETSc.Mat, residual: PETSc.Vec):
        self.operator, self.access, self.trace, self.rough = operator, access, trace, rough
        self.residual = residual

    def create(self, mat) -> None:
        """The Mat begins to use this context."""
        LIVING["Mat"].add(mat.handle)

    def destroy(self, mat) -> None:
        """The Mat is going."""
        LIVING["Mat"].discard(mat.handle)

    def as_mat(self, comm, vec_type: str) -> PETSc.Mat:
        """The Mat around this context. Collective."""
        sizes = self.residual.getSizes()
        mat = PETSc.Mat().createPython((sizes, sizes), self, comm=comm)
        mat.setVecType(vec_type)
        mat.setUp()
        return mat

    def scale(self, mat, factor: float) -> None:
        """Raises SolveError: ARKIMEX and DIRK of PETSc 3.20 and later begin with the mass matrix alone."""
        raise SolveError(
            "hdg_gpu in time has no mass matrix by itself, with which this -ts_type begins: take -ts_type bdf or theta"
        )

    def mult(self, mat, x, y) -> None:
        """Raises SolveError: steps come from elimination."""
        raise SolveError(
            "hdg_gpu in time has no products with the Jacobian of cells and trace: leave -cells_ksp_type at preonly "
            "and take -snes_linesearch_type l2 or basic; -ksp_type and -pc_type choose the solver of the trace"
        )

    def view(self, mat, viewer) -> None:
        """Say what the matrix is."""
        viewer.printfASCII("  Jacobian of trace and cells; cells are eliminated\n")


class CellElimination:
    """Context of a PETSc Python PC that solves: `ksp` for the trace, the cells on the device.

    What is solved is the residual of the last state, as Newton's method and linear steps ask. iterations: of `ksp`, in
    all solves.
    """

    def __init__(self, system: StateMatrix, ksp: PETSc.KSP):
        self.system, self.ksp = system, ksp
        self.iterations = 0
        self.right_side, self.step = system.trace.createVecs()
        self._difference = system.residual.duplicate()
        ksp.setOperators(system.trace, system.rough)

    def create(self, pc) -> None:
        """The PC begins to use this context."""
        LIVING["PC"].add(pc.handle)

    def destroy(self, pc) -> None:
        """The PC is going, and what it owns with it: PETSc would keep objects that Python gives up. Collective."""
        LIVING["PC"].discard(pc.handle)
        for thing in (self.ksp, self.right_side, self.step, self._difference):
            thing.destroy()

    def setFromOptions(self, pc) -> None:
        """Options of the trace's solver."""
        self.ksp.setFromOptions()

    def apply(self, pc, b, x) -> None:
        """x = J⁻¹ b, where b is the last residual. Collective. Raises SolveError."""
        self._check(b)
        operator, access = self.system.operator, self.system.access
        with operator.arrays.callback("elimination"), access.write(self.right_side) as out:
            operator.eliminate(out)
        self.ksp.solve(self.right_side, self.step)
        self.iterations += self.ksp.getIterationNumber()
        if self.ksp.getConvergedReason() < 0:
            raise SolveError(
                f"the solver of the trace stopped after {self.ksp.getIterationNumber()} iterations (PETSc's reason "
                f"{self.ksp.getConvergedReason()}); {advice(self.ksp)}"
            )
        with operator.arrays.callback("recovery"), access.write(x) as out:
            with access.read(self.step) as w:
                operator.place_step(w, out)
            self.step.scale(-1.0)
            with access.read(self.step) as minus_w:
                operator.recover_step(minus_w, out)

    def _check(self, b: PETSc.Vec) -> None:
        known = self.system.residual
        b.copy(self._difference)
        self._difference.axpy(-1.0, known)
        if self._difference.norm() > SAME * known.norm():
            raise SolveError(
                "hdg_gpu in time solves for steps of Newton's method and of linear problems, and was given another "
                "right-hand side: take -ts_type bdf, beuler or theta and -snes_type newtonls or ksponly"
            )

    def view(self, pc, viewer) -> None:
        """Show the solver of the trace."""
        viewer.printfASCII("  cells are eliminated; the solver of the trace:\n")
        self.ksp.view(viewer)


class StateCallbacks(Callbacks):
    """Callbacks of trace and interior together. `jacobian` is a StateMatrix, `trace` the matrix of the trace alone."""

    def __init__(self, operator, access, system: StateMatrix, comm, vec_type: str, assembled):
        super().__init__(operator, access, system.as_mat(comm, vec_type), assembled)
        self.system = system

    def _residual(self, t, x, x_t, f) -> None:
        super()._residual(t, x, x_t, f)
        f.copy(self.system.residual)

    def _linearize(self, t, x, x_t, shift, jacobian, preconditioner) -> None:
        super()._linearize(t, x, x_t, shift, jacobian, preconditioner)
        self.system.trace.assemble()
        if self.system.rough != self.system.trace:
            self.system.rough.assemble()

    @property
    def preconditioning(self) -> PETSc.Mat:
        """The matrix that preconditioners take: the same, which CellElimination knows."""
        return self.jacobian

    @property
    def matrices(self) -> list[PETSc.Mat]:
        """The matrix of the state, and those of the trace."""
        return [self.jacobian, self.system.trace, self.system.rough]
