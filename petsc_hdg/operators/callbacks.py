"""Residual and Jacobian as PETSc's callbacks for SNES and TS, each inside its own log event."""

from __future__ import annotations

from petsc4py import PETSc

from ..mesh import petsc_c


class Callbacks:
    """What SNES and TS call.

    One object serves `snes.setFunction`, `snes.setJacobian`, `ts.setIFunction` and `ts.setIJacobian`.

    jacobian: the shell Mat.   assembled: AssembledMatrix for the preconditioner, or None.
    conforming: ConformingSubspace for the preconditioner, or None.   levels: AgglomerateLevels for it, or None.
    rough: the shell Mat of a matrix of less precision for the preconditioner, or None.
    linearized: called with the callbacks after the first linearization.
    """

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
        self._linearized = linearized
        self.events = {name: PETSc.Log.Event(f"Fe{name}") for name in ("Residual", "Jacobian")}

    def residual(self, snes, x, f) -> None:
        """SNES function: f = F(x)"""
        self._residual(0.0, x, None, f)
        if self.operator.failure:
            petsc_c.set_function_domain_error(snes)

    def ifunction(self, ts, t, x, x_t, f) -> None:
        """TS implicit function: f = F(t, x, x_t)"""
        self._residual(t, x, x_t, f)

    def linearize(self, snes, x, jacobian, preconditioner) -> None:
        """SNES Jacobian at x: the shell keeps the state, the assembled matrix is filled."""
        self._linearize(0.0, x, None, 0.0, jacobian, preconditioner)

    def ijacobian(self, ts, t, x, x_t, shift, jacobian, preconditioner) -> None:
        """TS implicit Jacobian: dF/dx + shift dF/dx_t"""
        self._linearize(t, x, x_t, shift, jacobian, preconditioner)

    def _residual(self, t, x, x_t, f) -> None:
        with self.events["Residual"], self.operator.arrays.callback("residual"):
            with (
                self.access.read(x) as u,
                self.access.read(x if x_t is None else x_t) as u_t,
                self.access.write(f) as out,
            ):
                self.operator.residual(u, out, t, None if x_t is None else u_t)
            PETSc.Log.logFlops(self.operator.flops)

    def _linearize(self, t, x, x_t, shift, jacobian, preconditioner) -> None:
        with self.events["Jacobian"], self.operator.arrays.callback("linearize"):
            with self.access.read(x) as u, self.access.read(x if x_t is None else x_t) as u_t:
                self.operator.linearize(u, t, None if x_t is None else u_t, shift)
            if self.assembled is not None:
                self.assembled.update()
        for coarse in (self.conforming, self.levels):
            if coarse is not None:
                with self.events["Jacobian"]:
                    coarse.update(x, t, x_t, shift)
        jacobian.assemble()
        if preconditioner != jacobian:
            preconditioner.assemble()
        if self._linearized is not None:
            linearized, self._linearized = self._linearized, None
            linearized(self)

    @property
    def preconditioning(self) -> PETSc.Mat:
        """The matrix that preconditioners take."""
        return self.assembled.mat if self.assembled is not None else self.rough or self.jacobian

    @property
    def matrices(self) -> list[PETSc.Mat]:
        """The shell, and what is assembled beside it."""
        others = [thing.mat for thing in (self.assembled, self.conforming) if thing is not None]
        return [self.jacobian, *others, *([self.rough] if self.rough else [])]
