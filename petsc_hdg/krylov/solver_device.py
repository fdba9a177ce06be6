"""Where a solver works: the device of its operators, else that of its vectors, else the one that -fe_device names."""

from __future__ import annotations

from petsc4py import PETSc

from ..device import Arrays, Device
from ..device.context import is_viennacl
from ..operators import JacobianContext
from ..options import Options

_ARRAYS: dict[str, Arrays] = {}


def context_of(mat: PETSc.Mat) -> JacobianContext | None:
    """Our context of a matrix, None if it has another one or none."""
    if mat.getType() != PETSc.Mat.Type.PYTHON:
        return None
    context = mat.getPythonContext()
    return context if isinstance(context, JacobianContext) else None


def arrays_of(solver, vector: PETSc.Vec) -> Arrays:
    """Arrays on the device of a KSP or PC whose vectors are like `vector`. Collective."""
    for mat in solver.getOperators():
        context, arrays = context_of(mat), mat.getAttr("petsc_hdg_arrays")
        if context is not None or arrays is not None:
            return context.operator.arrays if context is not None else arrays
    if is_viennacl(vector):
        return Arrays(Device.from_vec(vector))
    return _selected(Options.from_petsc().device, solver.comm.tompi4py())


def _selected(choice: str, comm) -> Arrays:
    """Arrays on the device of this name, one for all solvers. Collective."""
    if choice not in _ARRAYS:
        _ARRAYS[choice] = Arrays(Device.select(choice, comm))
    return _ARRAYS[choice]
