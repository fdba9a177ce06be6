"""Chebyshev's iteration on the device, step for step as PETSc's KSPCHEBYSHEV of the first kind (Saad 2003); also a PC.

Solves of ours are preconditioners of solves of ours: nothing leaves the device.
"""

from __future__ import annotations

from petsc4py import PETSc

from ..database import given_numbers
from ..errors import OptionError
from ..petsc.lifetimes import Context
from .arnoldi import Arnoldi
from .matrices import ShellProduct
from .preconditioners import LEFT, MAKERS
from .smoothers import Smoother, steps_between
from .solver import ConvergenceMonitor, DeviceSolver, Norm, Reason
from .vectors import Vectors


class Chebyshev(DeviceSolver):
    """Chebyshev's iteration, which takes no inner products: -ksp_type python -ksp_python_type petsc_hdg.Chebyshev.

    Eigenvalues of B A between the bounds that -ksp_chebyshev_eigenvalues lower,upper gives, else estimated as PETSc
    does: by -ksp_chebyshev_esteig_steps (10) steps of GMRES from noise, and -ksp_chebyshev_esteig (0,0.1,0,1.1).
    """

    norms = ((Norm.PRECONDITIONED, LEFT), (Norm.UNPRECONDITIONED, LEFT))
    given, transform, steps = (0.0, 0.0), (0.0, 0.1, 0.0, 1.1), 10

    def __init__(self):
        super().__init__()
        self.bounds: tuple[float, float] | None = None
        self._smoother: Smoother | None = None

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
        self.bounds = self._smoother = None

    def view(self, ksp, viewer) -> None:
        super().view(ksp, viewer)
        if self.bounds:
            viewer.printfASCII(f"    eigenvalues between {self.bounds[0]:.6g} and {self.bounds[1]:.6g}\n")

    def prepare(self, ksp, arrays, count) -> None:
        before = self.matrix, self.preconditioner
        super().prepare(ksp, arrays, count)
        if self._smoother is None or before != (self.matrix, self.preconditioner):
            self._smoother = Smoother(ShellProduct(self.matrix), self.preconditioner, self.vectors, ())
        if self.bounds is None or self.preconditioner is not before[1]:
            self.bounds = self._find_bounds(ksp)

    def _find_bounds(self, ksp) -> tuple[float, float]:
        if self.given != (0.0, 0.0):
            return self.given
        first, steps = ksp.getOperators()[0].getOwnershipRange()[0], max(1, int(self.steps))
        smallest, largest = Arnoldi(self._smoother, steps).extreme(first)
        a, b, c, d = self.transform
        return a * smallest + b * largest, c * smallest + d * largest

    def iterate(self, monitor: ConvergenceMonitor, b, x, guessed: bool) -> None:
        vectors, has_norm, now, before = self.vectors, monitor.norm_type != Norm.NONE, x, self.vectors.buffer("now")
        r, z = vectors.buffer("r"), vectors.buffer("z")
        self._current = lambda: now
        for k, (keep, mix, scale) in enumerate(steps_between(*self.bounds)):
            is_known = guessed or k > 0
            if k:  # PETSc counts an iteration before it tests the one before
                monitor.begin(min(k + 1, monitor.max_it))
            if has_norm:
                self.operation.residual(b, now, is_known, r)
                self.preconditioner.apply(r, z)
                rr, _, zz, _ = vectors.sums(z, r)
                if monitor.check(k, monitor.norm(rr, rr, zz)):
                    break
            if k == monitor.max_it:
                monitor.stop(Reason.DIVERGED_MAX_IT if has_norm or k == 0 else Reason.CONVERGED_ITS)
                break
            if k == 0:
                monitor.begin(1)
            monitor.flops += 7
            if has_norm:
                vectors.run("combine", scale, z, keep, before)
                vectors.run("combine", mix, now, 1.0, before)
            elif is_known:
                self._smoother.step(b, now, before, keep, mix, scale)
            else:
                self._smoother.update(None, None, b, before, 0.0, 0.0, scale)
            before, now = now, before
        if now is not x:
            vectors.copy(now, x)


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
