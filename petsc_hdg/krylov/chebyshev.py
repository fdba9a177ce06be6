"""Chebyshev's iteration on the device, step for step as PETSc's KSPCHEBYSHEV of the first kind (Saad 2003)."""

from __future__ import annotations

from ..errors import OptionError
from ..options import given_numbers
from .convergence import ConvergenceMonitor, Norm, Reason
from .eigenvalues import Arnoldi
from .level_operators import ShellProduct
from .preconditioned_operator import LEFT
from .smoothers import Smoother, steps_between
from .solver import DeviceSolver
from .vectors import Rows


class Chebyshev(DeviceSolver):
    """Chebyshev's iteration, which takes no inner products: -ksp_type python -ksp_python_type petsc_hdg.Chebyshev.

    Eigenvalues of B A between the bounds that -ksp_chebyshev_eigenvalues lower,upper gives, else estimated as PETSc
    does: by -ksp_chebyshev_esteig_steps (10) steps of GMRES from noise, and -ksp_chebyshev_esteig (0,0.1,0,1.1).
    """

    norms = {(Norm.PRECONDITIONED, LEFT): 3, (Norm.UNPRECONDITIONED, LEFT): 2, (Norm.NONE, LEFT): 1}
    given, transform, steps = (0.0, 0.0), (0.0, 0.1, 0.0, 1.1), 10

    def __init__(self):
        super().__init__()
        self.bounds: tuple[float, float] | None = None
        self._sums = None

    def setFromOptions(self, ksp) -> None:
        """Read the options. Raises OptionError."""
        prefix = ksp.getOptionsPrefix() or ""
        self.given = given_numbers(prefix, "ksp_chebyshev_eigenvalues", self.given, least=0)
        self.transform = given_numbers(prefix, "ksp_chebyshev_esteig", self.transform, least=0)
        (self.steps,) = given_numbers(prefix, "ksp_chebyshev_esteig_steps", (self.steps,), least=0)
        if self.given != (0.0, 0.0) and not 0 < self.given[0] < self.given[1]:
            raise OptionError(
                f"-{prefix}ksp_chebyshev_eigenvalues is {self.given[0]:g},{self.given[1]:g}; it takes a lower and an "
                "upper bound above 0, the lower one first"
            )

    def reset(self, ksp) -> None:
        super().reset(ksp)
        self.bounds = self._sums = None

    def view(self, ksp, viewer) -> None:
        super().view(ksp, viewer)
        if self.bounds:
            viewer.printfASCII(f"    eigenvalues between {self.bounds[0]:.6g} and {self.bounds[1]:.6g}\n")

    def prepare(self, ksp, arrays, count) -> None:
        before = self.preconditioner
        super().prepare(ksp, arrays, count)
        if self.bounds is None or self.preconditioner is not before:
            self.bounds = self._find_bounds(ksp)

    def sums(self):
        """Rows of sums, and the kernel of a step."""
        if self._sums is None:
            self._sums = Rows(self.vectors, 2), self.vectors.kernel("chebyshev_step")
        return self._sums

    def _find_bounds(self, ksp) -> tuple[float, float]:
        if self.given != (0.0, 0.0):
            return self.given
        mat = ksp.getOperators()[0]
        smoother = Smoother(ShellProduct(mat, self.vectors), self.preconditioner, self.vectors, ())
        first, steps = mat.getOwnershipRange()[0], max(1, int(self.steps))
        smallest, largest = Arnoldi(smoother, steps).extreme(first)
        a, b, c, d = self.transform
        return a * smallest + b * largest, c * smallest + d * largest

    def iterate(self, monitor: ConvergenceMonitor, b, x, guessed: bool) -> None:
        run = _Run(self, monitor, b)
        before, now = x, self.vectors.buffer("now")
        self._current = lambda: now if monitor.iteration else x
        if guessed:
            self.operation.matrix.mult(x, run.product)
        coefficients = steps_between(*self.bounds)
        _, mix, scale = next(coefficients)
        run.step(0.0, mix if guessed else 0.0, scale, run.product if guessed else None, x, now)
        if run.stops(0, now if monitor.max_it > 1 else None):
            return None
        if monitor.max_it == 0:
            return monitor.stop(Reason.DIVERGED_MAX_IT)
        monitor.begin(1)
        for k in range(1, monitor.max_it):
            monitor.begin(k + 1)
            keep, mix, scale = next(coefficients)
            monitor.flops += 7
            run.multiply(now)
            run.step(0.0 if k == 1 and not guessed else keep, mix, scale, run.product, now, before)
            if run.stops(k, before if k + 1 < monitor.max_it else None):
                break
            before, now = now, before
        if not monitor.stopped:
            run.multiply(now)
            run.step(0.0, 0.0, 1.0, run.product, None, before)
            if not run.stops(monitor.max_it, None):
                run.end()
        if now is not x:
            self.vectors.copy(now, x)
        return None


class _Run:
    """Launches of one solve."""

    def __init__(self, solver: Chebyshev, monitor: ConvergenceMonitor, b):
        self.vectors, self.operation, self.monitor, self.b = solver.vectors, solver.operation, monitor, b
        self.product = self.vectors.buffer("product")
        self.sums, self.kernel = solver.sums()
        self.has_norm = monitor.norm_type != Norm.NONE
        self._multiplied = None  # what has been multiplied by A ahead

    def multiply(self, x) -> None:
        """product = A x, unless that is under way already. Collective."""
        if self._multiplied is not x:
            self.operation.matrix.mult(x, self.product)
        self._multiplied = None

    def step(self, keep: float, mix: float, scale: float, product, x, out) -> None:
        """out = keep out + mix x + scale B (b - product), and the residual's sums. Collective."""
        vectors, preconditioner = self.vectors, self.operation.preconditioner
        if preconditioner.is_diagonal:
            self._launch(keep, mix, scale, self.b, product, preconditioner.diagonal, x, out, 0)
            return
        r, z = vectors.buffer("r"), vectors.buffer("z")
        vectors.copy(self.b if product is None else product, r)
        if product is not None:
            vectors.run("subtract", self.b, r)
        preconditioner.apply(r, z)
        vectors.run("sums", z, r, 0, self.sums.buffer)
        self._launch(keep, mix, scale, z, None, None, x, out, 1)

    def _launch(self, *arguments) -> None:
        self.kernel(self.vectors.items, self.vectors.count, *arguments, self.sums.buffer)

    def stops(self, iteration: int, following) -> bool:
        """True if the residual of the last step ends the solve; `following` is what comes next. Collective."""
        if not self.has_norm:
            return False
        self.sums.read(0, 1)
        if following is not None and self.operation.on_device:
            self.operation.matrix.mult(following, self.product)
            self._multiplied = following
        rr, _, zz, _ = self.vectors.over_ranks(self.sums.wait()[0])
        return self.monitor.check(iteration, self.monitor.norm(rr, rr, zz))

    def end(self) -> None:
        """All steps are done."""
        self.monitor.stop(Reason.DIVERGED_MAX_IT if self.has_norm else Reason.CONVERGED_ITS)
