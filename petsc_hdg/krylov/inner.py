"""Solves of ours as preconditioners of solves of ours: nothing leaves the device."""

from __future__ import annotations

from petsc4py import PETSc

from ..petsc.lifetimes import Context
from .chebyshev import Chebyshev
from .convergence import ConvergenceMonitor
from .preconditioners import MAKERS
from .solver import DeviceSolver
from .vectors import Vectors


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
