"""The Jacobian as a PETSc AIJ matrix, filled from the device's element matrices: row by row where the device
sums them, else through the COO interface, which does; whether the entries are finite."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from .. import stages
from ..errors import SolveError
from ..petsc import c_library, csr
from ..petsc.lifetimes import Alive
from ..value_checks import plural
from .block_rows import MatrixRows


class AssembledMatrix:
    """A matrix and the order in which element matrices are handed to it. Collective."""

    mat = Alive("The matrix of a problem")
    is_coarse = False  # whether it is a coarse level's, which GPUs sum up whole on each of several ranks

    def __init__(self, operator, sizes, comm, vec_type: str):
        self.operator, disc = operator, operator.discretization
        self._row_sums = MatrixRows(operator) if MatrixRows.suit(operator, self.is_coarse) else None
        rows = self._pattern()
        self._ahead, self._size = None, None if rows is None else len(rows[1])
        self._filled: int | None = None  # state of the matrix
        self.linearization = -1  # number of the operator's linearization that was filled in
        self.mat = self._by_coo(sizes, comm) if rows is None else csr.aij((sizes, sizes), disc.block_size, *rows, comm)
        self.mat.setVecType(vec_type)
        self.mat.setAttr("petsc_hdg_arrays", operator.arrays)  # for solvers on the device, which see the Mat alone
        self.mat.setAttr("petsc_hdg_rows", None if self._is_part else self._row_sums)

    @property
    def _is_part(self) -> bool:
        """True if the device sums this rank's elements, and PETSc those of several ranks."""
        return self._row_sums is not None and self._row_sums.is_part

    def _pattern(self) -> tuple | None:
        """Starts and PETSc columns of this rank's rows if `_write` gives values row by row, else None."""
        if self._row_sums is None:
            return self.operator.discretization.matrix_rows()
        return None if self._is_part else (self._row_sums.starts, self._row_sums.columns)

    def _write(self, values) -> None:
        """Write the values [entry] of the rows of `_pattern`."""
        if self._row_sums is None:
            self.operator.assembly.write(values)
        else:
            self._row_sums.update(*self._elements())
            self._row_sums.write(values)

    def _elements(self) -> tuple:
        """Buffers of element matrices of cells, and of facets, None if there are none."""
        return self.operator.matrix_buffers()

    def _by_coo(self, sizes, comm) -> PETSc.Mat:
        """A matrix with the entries of the COO interface."""
        mat, disc = PETSc.Mat().create(comm), self.operator.discretization
        mat.setSizes((sizes, sizes))
        mat.setType("aij")
        mat.setBlockSize(disc.block_size)
        c_library.set_preallocation_coo(mat, *(self._row_sums or disc).matrix_numbers())
        mat.assemble()  # for what reads the pattern before the first values, such as colouring
        csr.keep_block_size(mat)
        return mat

    def update(self, shift: float = 0.0) -> None:
        """Fill the matrix at the state, and with the shift, the operator was last linearized at. Collective.

        Raises SolveError, on all ranks, if its diagonal is not finite: preconditioners fail over that without a reason.
        """
        ahead, self._ahead = self._ahead, None
        self.linearization = self.operator.linearizations
        if ahead is not None and ahead == self._now(shift):
            return
        flops = self.operator.matrix_flops
        with stages.event("Matrix", flops), self.operator.arrays.callback("Jacobian matrix"):
            self._set_values()
            diagonal = self.mat.getDiagonal()
            require_finite(self.operator.discretization, diagonal, "the Jacobian")
            diagonal.destroy()
        self.note_filled()

    def note_filled(self) -> None:
        """Have `is_as_filled` compare with the present state of the matrix."""
        self._filled = self.mat.stateGet()
        if self._row_sums is not None:
            self._row_sums.filled = self._filled

    @property
    def is_as_filled(self) -> bool:
        """True if nobody has changed the matrix after it was filled."""
        return self._filled == self.mat.stateGet()

    def update_ahead(self, shift: float) -> None:
        """The same once more than solvers ask for it: of steady schemes their next call of `update` with this shift
        finds the matrix filled, unless data have changed. Collective."""
        self.update(shift)
        if self.operator.discretization.is_steady:
            self._ahead = self._now(shift)

    def _now(self, shift: float) -> tuple:
        """Dependences of the values of steady schemes, and the state of the matrix."""
        return self.operator.coefficients, shift, self.mat.stateGet()

    def values(self):
        """Element matrices, flat, or the device's sums of them, as `matrix_numbers` names their entries."""
        if not self._is_part:
            return self.operator.matrices()
        self._row_sums.update(*self._elements())
        return self._row_sums.values()

    def _set_values(self) -> None:
        """Sums of element matrices, or rows as they come from the device. Collective."""
        if self._size is None:
            c_library.set_values_coo(self.mat, self.values())
        else:
            with csr.written(self.mat, self._size) as values:
                self._write(values)


def fault(discretization, values: np.ndarray, what: str) -> str:
    """Fault of values [owned] of this rank's unknowns in words; "" if all are finite. Collective.

    what: a name of the values, such as "the residual".
    """
    wrong = np.flatnonzero(~np.isfinite(np.asarray(values)))
    mine = (len(wrong), _place(discretization, int(wrong[0]))) if len(wrong) else None
    found = discretization.mesh.comm.allgather(mine)
    ranks = [rank for rank, one in enumerate(found) if one is not None]
    if not ranks:
        return ""
    count, (_, place) = sum(one[0] for one in found if one is not None), found[ranks[0]]
    others = f", some also on {'ranks' if ranks[2:] else 'rank'} {', '.join(map(str, ranks[1:]))}" if ranks[1:] else ""
    return (
        f"{what} is not a finite number at {plural(count, 'unknown')}, the first on rank "
        f"{ranks[0]}{place}{others}; look at f0, f1, the conditions and the auxiliary fields there (a division by "
        "zero, the root of a negative number, a gas without pressure?)"
    )


def require_finite(discretization, vector, what: str) -> None:
    """Raise SolveError, on all ranks, if a PETSc Vec of unknowns is not finite. Collective."""
    values = vector.getArray(readonly=True)
    if discretization.mesh.comm.allreduce(int(not np.isfinite(values).all())):
        raise SolveError(fault(discretization, values, what))


def _place(discretization, number: int) -> str:
    """The place of an owned unknown: the centre of a cell that has it."""
    if discretization.is_polytopic:
        numbering = discretization.numbering
        polytope = int(np.searchsorted(numbering.first, number, side="right")) - 1
        centre = 0.5 * (numbering.lower[polytope] + numbering.upper[polytope])
    else:
        for part in discretization.parts:
            geometry = part.mesh.geometry
            cells = np.flatnonzero((part.dofmap.compact[part.dofmap.cell_dofs] == number).any(axis=1))
            if len(cells):
                centre = geometry.nodes[geometry.cell_nodes[cells[0]]].mean(axis=0)
                break
        else:
            return ""
    return f" in the cell around ({', '.join(f'{x:.4g}' for x in centre)})"
