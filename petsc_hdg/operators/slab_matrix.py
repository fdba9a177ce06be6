"""The assembled matrix of a space-time slab, from the matrices of the scheme in space."""

from __future__ import annotations

import numpy as np

from .. import stages
from .slab import SlabOperator

TINY = 1e-14  # of a coefficient beside the largest: temporal functions that do not meet


class SlabMatrix:
    """Entries of the Jacobian of a SlabOperator: each spatial entry is a small block over temporal functions.

    A_(K i)(K' j) = Σ w [ψ_i ψ_j K + ψ_i ψ_j' M] + ψ_i(t+) [ψ_j] M over points and starts; K and M are what the
    operator's matrices with two shifts give. Blocks are grouped by the temporal functions of row and column.
    """

    def __init__(self, slab: SlabOperator):
        self.slab, space = slab, slab.space
        rows, columns = (np.asarray(numbers).ravel() for numbers in slab.discretization.matrix_numbers())
        row, row_shape = space.places(rows)
        column, column_shape = space.places(columns)
        shapes = int(slab.basis.size * len(slab.basis.steps))
        used = np.flatnonzero((row >= 0) & (column >= 0))
        key = (row_shape * shapes + column_shape)[used]
        order = np.argsort(key, kind="stable")
        self.groups = []
        for entries in np.split(used[order], np.flatnonzero(np.diff(key[order])) + 1):
            if len(entries):
                shape = int(row_shape[entries[0]]), int(column_shape[entries[0]])
                self.groups.append((entries, *(space.columns(s) for s in shape), *shape))
        self._row, self._column = row, column

    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """PETSc row and column of each value."""
        rows, columns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for (entries, *_), (i, j) in zip(self.groups, self._kept, strict=True):
            rows.append((self._row[entries][:, None] + i).ravel())
            columns.append((self._column[entries][:, None] + j).ravel())
        return np.concatenate(rows), np.concatenate(columns)

    @property
    def _kept(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Temporal functions (i, j) of each group that meet."""
        if not hasattr(self, "_pairs"):
            tables, found = self.slab.basis.tables(1.0), []
            for _, mine, theirs, row_shape, column_shape in self.groups:
                a, b = (shape // self.slab.basis.size for shape in (row_shape, column_shape))
                test = np.abs(tables.value[:, a][:, mine])
                trial = np.abs(tables.value[:, b][:, theirs]) + np.abs(tables.rate[:, b][:, theirs])
                size = test.T @ trial + np.abs(tables.after[:, a][:, mine]).T @ np.abs(tables.jump[:, b][:, theirs])
                found.append(np.nonzero(size > TINY * size.max()))
            self._pairs = found
        return self._pairs

    def values(self) -> np.ndarray:
        """Values in the order of `numbers`, at the state of the slab's `linearize`. Collective."""
        out = [np.zeros((len(group[0]), len(kept[0]))) for group, kept in zip(self.groups, self._kept, strict=True)]
        if self.slab.is_steady:
            first = next(self.slab.terms())
            stiffness, mass = self._spatial(first[0])
            self._add(out, stiffness, mass, [term[1:] for term in self.slab.terms()])
        else:
            for settle, *term in self.slab.terms():
                self._add(out, *self._spatial(settle), [term])
        return np.concatenate([np.zeros(0), *(block.ravel() for block in out)])

    def _spatial(self, settle) -> tuple[np.ndarray, np.ndarray]:
        """Values of K and M in space. Collective."""
        shift, operator = self.slab.shift, self.slab.operator
        with stages.event("Matrix", 2 * operator.matrix_flops):
            settle(shift)
            plus = operator.matrices().astype(float)
            settle(-shift)
            minus = operator.matrices()
        return (plus + minus) / 2, (plus - minus) / (2 * shift)

    def _add(self, out, stiffness, mass, terms) -> None:
        """Add K and M, each times what the terms sum up to, to the groups' blocks."""
        for block, group, (i, j) in zip(out, self.groups, self._kept, strict=True):
            of_value, of_rate = self._coefficients(group, terms)
            entries = group[0]
            if of_value.any():
                block += stiffness[entries][:, None] * of_value[i, j]
            if of_rate.any():
                block += mass[entries][:, None] * of_rate[i, j]

    def _coefficients(self, group, terms) -> tuple[np.ndarray, np.ndarray]:
        """Factors of K and M in a group's blocks [function, function]."""
        _, mine, theirs, row_shape, column_shape = group
        size = self.slab.basis.size
        found = np.zeros((2, len(mine), len(theirs)))
        for weight, test, *trials in terms:
            tested = weight * self.slab.row(test)[row_shape // size][mine]
            for total, trial in zip(found, trials, strict=True):
                if trial is not None:
                    total += np.outer(tested, self.slab.row(trial)[column_shape // size][theirs])
        return found[0], found[1]
