"""Chebyshev's iteration on the device, step for step as PETSc's KSPCHEBYSHEV of the first kind (Saad 2003); also a PC.

Solves of ours are preconditioners of solves of ours: nothing leaves the device.
"""

from __future__ import annotations

from petsc4py import PETSc

from ..errors import OptionError
from ..options import given_numbers
from ..petsc.lifetimes import Context
from .arnoldi import Arnoldi
from .matrices import ShellProduct
from .preconditioners import LEFT, MAKERS
from .smoothers import Smoother, steps_between
from .solver import ConvergenceMonitor, DeviceSolver, Norm, Reason
from .vectors import Rows, Vectors


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


class InnerSolve:
    """`apply(x, y)`: y solves A y = x as a KSP with a context of ours does, from zero. Making one is collective."""

    def __init__(self, ksp: PETSc.KSP, vectors: Vectors):
        self._ksp, self._context = ksp, ksp.getPythonContext()
        self._context.prepare(ksp, vectors.arrays, vectors.count)
        self.on_device = self._context.operation.on_device
        self.note = f"by {self._context.name}, {self._context.preconditioner.note}"

    def apply(self, x, y) -> None:
        """y = an approximation of A⁻¹ x. Collective."""
        self._context.vectors.arrays.fill(y)
        self._context.iterate(ConvergenceMonitor(self._ksp), x, y, False)


def inner_solve(pc: PETSc.PC, vectors: Vectors) -> InnerSolve | None:
    """For a PC of type ksp whose solver is ours, and for ChebyshevPC; None for others. Collective."""
    if pc.getType() == PETSc.PC.Type.KSP:
        ksp = pc.getKSP()
    elif pc.getType() == PETSc.PC.Type.PYTHON and isinstance(pc.getPythonContext(), ChebyshevPC):
        ksp = pc.getPythonContext().ksp
    else:
        return None
    is_ours = ksp.getType() == PETSc.KSP.Type.PYTHON and isinstance(ksp.getPythonContext(), DeviceSolver)
    return InnerSolve(ksp, vectors) if is_ours else None


MAKERS.append(inner_solve)


class ChebyshevPC(Context):
    """Steps of Chebyshev's iteration as a PC: -pc_type python -pc_python_type petsc_hdg.ChebyshevPC.

    Three steps with Jacobi's diagonal; -chebyshev_ksp_max_it, -chebyshev_ksp_chebyshev_esteig, -chebyshev_pc_type and
    so on say otherwise (`chebyshev_` stands behind the PC's own prefix). A linear operator, symmetric where A and the
    inner preconditioner are, so that conjugate gradients take it.
    """

    steps = 3

    def __init__(self):
        self.ksp: PETSc.KSP | None = None

    def destroy(self, pc) -> None:
        """The PC is going."""
        super().destroy(pc)
        if self.ksp is not None:
            self.ksp.destroy()
        self.ksp = None

    def setUp(self, pc) -> None:
        """Set up the inner solver. Collective."""
        if self.ksp is None:
            self.ksp = PETSc.KSP().create(pc.comm)
            self.ksp.setOptionsPrefix(f"{pc.getOptionsPrefix() or ''}chebyshev_")
            self.ksp.setOperators(*pc.getOperators())
            self.ksp.setType("python")
            self.ksp.setPythonContext(Chebyshev())
            self.ksp.setTolerances(max_it=self.steps)
            self.ksp.setNormType(PETSc.KSP.NormType.NONE)
            self.ksp.getPC().setType("jacobi")
            self.ksp.setFromOptions()
        self.ksp.setOperators(*pc.getOperators())
        self.ksp.setUp()

    def apply(self, pc, x, y) -> None:
        """y = steps towards A⁻¹ x. Collective."""
        self.ksp.solve(x, y)

    def view(self, pc, viewer) -> None:
        """Show the inner solver."""
        viewer.printfASCII("  Chebyshev's iteration as a preconditioner:\n")
        if self.ksp is not None:
            viewer.pushASCIITab()
            self.ksp.view(viewer)
            viewer.popASCIITab()
