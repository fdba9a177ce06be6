"""Numbers that are not finite: on which ranks they are, how many, and where the first one is."""

from __future__ import annotations

import numpy as np

from ..errors import SolveError
from ..value_checks import plural


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
        "zero, the root of a negative number?)"
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
        dofmap, geometry = discretization.dofmap, discretization.mesh.geometry
        cells = np.flatnonzero((dofmap.compact[dofmap.cell_dofs] == number).any(axis=1))
        if not len(cells):
            return ""
        centre = geometry.nodes[geometry.cell_nodes[cells[0]]].mean(axis=0)
    return f" in the cell around ({', '.join(f'{x:.4g}' for x in centre)})"
