"""Residual and Jacobian as PETSc's callbacks for SNES and TS, each inside its own log event."""

from __future__ import annotations

import math
from typing import Any

from petsc4py import PETSc

from ..errors import SolveError
from ..petsc import c_library
from ..petsc.lifetimes import Alive
from .vectors import require_sizes

STRONGER, STRONGEST = 2.0, 8.0  # factor of penalties for each step in time that failed, and the largest one
# What is kept of a preconditioner: nothing, everything except the bounds of the smoother on the finest level, all.
NOTHING, LEVELS, ALL = range(3)
INEXACT = "petsc_hdg_inexact"  # attribute of a KSP whose iterate is used when it reaches its last iteration
SHIFT_BITS = 36  # t/dt · eps is what times lose: this is enough for 1e5 steps
_REASON = PETSc.KSP.ConvergedReason
INDEFINITE = (_REASON.DIVERGED_INDEFINITE_PC, _REASON.DIVERGED_INDEFINITE_MAT)
SLOW = (_REASON.DIVERGED_MAX_IT, _REASON.DIVERGED_DTOL, _REASON.DIVERGED_BREAKDOWN)
_DEFINITE = "conjugate gradients need a matrix that is definite; -{0}ksp_type fgmres takes any"
_COURSE = "-{0}ksp_monitor_true_residual shows its course, -{0}ksp_type and -{0}pc_type choose another"
_DIRECT = (
    "; -{0}ksp_type preonly -{0}pc_type {1} solves directly what iterations do not, such as "
    "Helmholtz' equation or waves"
)


class Callbacks:
    """Callbacks of SNES and TS.

    One object serves `snes.setFunction`, `snes.setJacobian`, `ts.setIFunction` and `ts.setIJacobian`.

    jacobian: the shell Mat.   assembled: AssembledMatrix for the preconditioner, or None.
    conforming: ConformingSubspace for the preconditioner, or None.   levels: AgglomerateLevels for it, or None.
    stored: AssembledMatrix of the Jacobian that its products take, or None.
    rough: the shell Mat of a matrix of less precision for the preconditioner, or None.
    linearized: called with the callbacks after the first linearization.
    null_space: its `follow(callbacks)` is called after each, or None.
    set_up: called with the KSP of each linear system before PETSc sets its preconditioner up, or None.
    kept_levels: its `serve(snes, place)` says what of an earlier linearization's preconditioner serves, or None.
    """

    jacobian = Alive("The Jacobian of a problem")
    rough = Alive("The rough Jacobian of a problem")

    def __init__(
        self,
        operator,
        access,
        jacobian: PETSc.Mat,
        assembled=None,
        conforming=None,
        linearized=None,
        levels=None,
        rough: PETSc.Mat | None = None,
    ):
        self.operator = operator
        self.access = access
        self.jacobian = jacobian
        self.assembled = assembled
        self.conforming = conforming
        self.levels = levels
        self.rough = rough
        self.null_space: Any = None
        self.stored: Any = None
        self._linearized = linearized
        self.set_up = None
        self.kept_levels: Any = None
        self._time: float | None = None  # of the last residual in time
        self._failures = 0  # of the present run
        self._known: tuple | None = None  # what the matrices belong to, where that is no state
        self.events = {name: PETSc.Log.Event(f"Fe{name}") for name in ("Residual", "Jacobian")}

    def assemble(self, assembled) -> None:
        """Have an AssembledMatrix in the place of coarse levels, and all matrices filled anew."""
        self.conforming, self.levels, self.assembled = None, None, assembled
        if self.jacobian != assembled.mat:
            self.jacobian.getPythonContext().assembled = assembled
        self.forget()

    def residual(self, snes, x, f) -> None:
        """SNES function: f = F(x)"""
        self._residual(0.0, x, None, f)
        if self.operator.failure and snes is not None:
            c_library.set_function_domain_error(snes)

    def ifunction(self, ts, t, x, x_t, f) -> None:
        """TS implicit function: f = F(t, x, x_t)

        What follows the states, such as penalties of nonlinear physics, is found anew at each new time and kept while
        a step is solved, so that a step depends on nothing but the states that TS keeps. A step that failed is tried
        again by penalties twice as large (see `time_stepping`).
        """
        failures = 0 if ts is None else ts.getSNESFailures()
        if failures != self._failures:
            self._failures = failures
            self.operator.strengthen(min(STRONGER**failures, STRONGEST))
        if t != self._time:
            self._time = t
            if not self.operator.discretization.is_steady:
                self.operator.restart()
        self._residual(t, x, x_t, f)
        if ts is not None:
            self._look_after(ts.getSNES())

    def _look_after(self, snes) -> None:
        """Tell the solver of a step what the residual found, and give it its matrices anew, which ARKIMEX of PETSc 3.18
        loses in its first step."""
        if self.operator.failure:
            c_library.set_function_domain_error(snes)
        if snes.getJacobian()[1] != self.preconditioning:
            snes.setJacobian(None, self.jacobian, self.preconditioning)

    def linearize(self, snes, x, jacobian, preconditioner) -> None:
        """SNES Jacobian at x: the shell keeps the state, the assembled matrix is filled. Both are kept with their
        preconditioner where they are the same for all states and no data that they read have changed."""
        self._try_to_linearize(snes, 0.0, x, None, 0.0, jacobian, preconditioner)

    def ijacobian(self, ts, t, x, x_t, shift, jacobian, preconditioner) -> None:
        """TS implicit Jacobian: dF/dx + shift dF/dx_t, kept with its preconditioner while it does not change.

        Multistep methods find the shift from differences of times, and rounding varies it from step to step: where the
        Jacobian is the same for all states and times, it is that of the shift's first SHIFT_BITS binary digits.
        """
        if self.operator.discretization.is_steady:
            shift = _rounded(shift)
        self._try_to_linearize(ts and ts.getSNES(), t, x, x_t, shift, jacobian, preconditioner)

    def _try_to_linearize(self, snes, *at) -> None:
        """Linearize, and set up what the problem asks for. SNES ends its solve at a state of nonlinear physics whose
        local problems are singular: another start or a shorter step in time may not meet it."""
        try:
            self._linearize_once(snes, *at)
        except SolveError:
            if not snes or self.operator.discretization.physics.is_linear or not self.operator.failure:
                raise
            c_library.set_jacobian_domain_error(snes)
            return
        if snes and self.set_up is not None:
            self.set_up(snes.getKSP())

    def forget(self) -> None:
        """Have the next linearization fill the matrices, and preconditioners set up with them, whatever is known."""
        self._known = None
        if self.kept_levels is not None:
            self.kept_levels.forget()

    def _linearize_once(self, snes, t, x, x_t, shift, *matrices) -> None:
        """Linearize, unless that would change nothing. Matrices of others, such as PETSc's finite differences, follow
        the state in their own way, and are always told."""
        known = (shift, *self._place(*matrices))
        if self._known == known and all(map(PETSc.Mat.__eq__, matrices, (self.jacobian, self.preconditioning))):
            return
        self._linearize(snes, t, x, x_t, shift, *matrices)
        self._known = (shift, *self._place(*matrices)) if self.operator.discretization.is_steady else None

    def _place(self, *matrices) -> tuple[int, ...]:
        """Rest of the cache key of matrices: versions of their data, and states of the Mats."""
        return self.operator.coefficients, self.operator.linearizations, *(mat.stateGet() for mat in matrices)

    def _require(self, *vectors) -> None:
        """Raise SolveError unless a solver works on vectors of this problem's unknowns."""
        remedy = "give what interpolate or create_vec of that problem returns"
        require_sizes("the problem that a solver was made for", self.jacobian.getSizes()[0], vectors, remedy)

    def _residual(self, t, x, x_t, f) -> None:
        self._require(x, x_t, f)
        with self.events["Residual"], self.operator.arrays.callback("residual"):
            with self.access.read_state(x, x_t) as (u, u_t), self.access.write(f) as out:
                self.operator.residual(u, out, t, u_t)
            PETSc.Log.logFlops(self.operator.flops)

    def _linearize(self, snes, t, x, x_t, shift, jacobian, preconditioner) -> None:
        self._known = None
        self._require(x, x_t)
        with self.events["Jacobian"], self.operator.arrays.callback("linearize"):
            with self.access.read_state(x, x_t) as (u, u_t):
                self.operator.linearize(u, t, u_t, shift)
            if self.rough is not None:
                self.rough.getPythonContext().follow()
            for matrix in self._with_entries:
                matrix.update(shift)
        for mat in self.matrices:
            if mat.getType() == PETSc.Mat.Type.PYTHON:
                mat.getPythonContext().factor = 1.0
        self._note_values(jacobian, preconditioner)
        for matrix in self._with_entries:
            matrix.note_filled()
        place = None if x_t is None else (_rounded(shift), t if self.operator.discretization.reads_time else None)
        kept = NOTHING if self.kept_levels is None else self.kept_levels.serve(snes, place)
        for coarse in (self.conforming, self.levels):
            if coarse is not None and kept == NOTHING:
                with self.events["Jacobian"]:
                    coarse.update(self._of_solver(x), t, self._of_solver(x_t), shift)
            elif coarse is not None and kept == LEVELS and coarse.bounds is not None:
                coarse.bounds.update(finest_only=True)
        if self.null_space is not None:
            self.null_space.follow(self)
        if self._linearized is not None:
            linearized, self._linearized = self._linearized, None
            linearized(self)

    @property
    def _with_entries(self) -> list:
        """The AssembledMatrix of preconditioners and that of products, each once: they may be one."""
        return [matrix for matrix in dict.fromkeys((self.assembled, self.stored)) if matrix is not None]

    def _note_values(self, jacobian: PETSc.Mat, preconditioner: PETSc.Mat) -> None:
        """Tell PETSc that matrices have other values."""
        jacobian.assemble()
        if preconditioner != jacobian:
            preconditioner.assemble()

    def _of_solver(self, x):
        """The part of a vector of the problem, or of None, that belongs to the linear solver's unknowns."""
        return x

    @property
    def solved(self) -> PETSc.Mat:
        """The matrix of the systems that iterations solve."""
        return self.jacobian

    @property
    def preconditioning(self) -> PETSc.Mat:
        """The matrix that preconditioners take."""
        return self.assembled.mat if self.assembled is not None else self.rough or self.jacobian

    @property
    def smoothed(self) -> PETSc.Mat:
        """The matrix of the finest level."""
        return self.preconditioning

    @property
    def matrices(self) -> list[PETSc.Mat]:
        """The shell, and what is assembled beside it."""
        others = [thing.mat for thing in (self.assembled, self.conforming) if thing is not None]
        return [self.jacobian, *others, *([self.rough] if self.rough else [])]


def _rounded(value: float) -> float:
    """A number with SHIFT_BITS binary digits."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(mantissa, SHIFT_BITS)), exponent - SHIFT_BITS)


def advice(ksp: PETSc.KSP) -> str:
    """Options for a linear solver that stopped, in words."""
    prefix, stopped = ksp.getOptionsPrefix() or "", ksp.getConvergedReason()
    if stopped in INDEFINITE:
        return _DEFINITE.format(prefix)
    if stopped not in SLOW or ksp.getType() == "preonly":
        return _COURSE.format(prefix)
    return (_COURSE + _DIRECT).format(prefix, "lu" if ksp.comm.size == 1 else "redundant")
