"""The space-time operator of a slab on a device: dG in time over the residual and Jacobian of any scheme in space; its
assembled matrix, from the matrices of the scheme in space.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .. import stages
from ..codegen import KernelSpec
from ..device import Kernel
from ..discretizations.slab_space import SlabSpace
from .check import judge, random_values, waiting

KERNELS = ("slab_values", "slab_sums")
TINY = 1e-14  # of a coefficient beside the largest: temporal functions that do not meet


class SlabOperator:
    """Residual and Jacobian of a slab (t0, t0 + length); buffers hold this rank's space-time unknowns.

    With temporal functions ψ_i, points t_τ and weights w_τ of time, F the residual in space, and [U] = U(t+) - U(t-) at
    the start t of a (local) step,

        R_i = Σ_τ w_τ ψ_i(t_τ) F(t_τ, U, U_t) + Σ_t ψ_i(t+) (F(t, U(t+), [U]) - F(t, U(t+), 0))

    (Dong, Georgoulis and Kappas 2021, eq. 9, for physics that is linear in u_t). U(t0-) is the state that `begin` gets.

    operator: of the scheme in space.   space: SlabSpace.
    """

    repeats = False  # products linearize the operator anew

    def __init__(self, operator, space: SlabSpace):
        self.operator, self.space, self.basis = operator, space, space.basis
        self.discretization, self.arrays, self.device = operator.discretization, operator.arrays, operator.device
        self.is_linear, self.is_steady = self.discretization.physics.is_linear, self.discretization.is_steady
        self.count = self.discretization.dofmap.num_owned
        to_device = self.arrays.to_device
        lists = (space.start[: self.count], space.kind, space.most, np.array(space.basis.steps))
        self._lists = [to_device(a, "slab") for a in lists]
        self._vectors = {name: self.arrays.zeros(max(1, self.count)) for name in ("u", "rate", "f", "before", "zero")}
        self._state = self.arrays.zeros(max(1, space.num_owned))
        self._at = None
        self.time = self.length = 0.0

    # Kernels ---------------------------------------------------------------------------------------------------------

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`slab_values` and `slab_sums`."""
        precision = self.arrays.precision
        return {n: Kernel(KernelSpec(n, ("slab.cl",), precision=precision), self.device) for n in KERNELS}

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel of its own."""
        return dict(self.kernels)

    def check(self) -> None:
        """Compare kernels with numpy at their first use on a device. Not collective. Raises DeviceError."""
        names, space, arrays = waiting(self, KERNELS), self.space, self.arrays
        if not names or not self.count:
            return
        self.begin(0.0, 1.0, self._vectors["f"])
        table = self.row(("value", 0))
        x, f = random_values(7, space.num_owned), random_values(8, self.count)
        slots = [(i, space.start[i], table[space.kind[i]][space.columns(space.shape[i])]) for i in range(self.count)]
        self.values("value", 0, arrays.to_device(x, "kernel check"), "u")
        found = arrays.to_host(self._vectors["u"], self.count, name="kernel check")
        expected = np.array([line @ x[at : at + len(line)] for _, at, line in slots])
        judge(self.kernels["slab_values"], found, expected, arrays.precision)
        out = arrays.zeros(space.num_owned)
        self._sum(0, arrays.to_device(f, "kernel check"), out)
        found = arrays.to_host(out, space.num_owned, name="kernel check")
        judge(self.kernels["slab_sums"], found, np.concatenate([line * f[i] for i, _, line in slots]), arrays.precision)

    @property
    def flops(self) -> int:
        """Flops of this rank's residual without the physics."""
        return self.operator.flops * (len(self.tables.times) + 2 * len(self.tables.starts))

    @property
    def diagonal_flops(self) -> int:
        """Flops of the diagonal."""
        return 2 * self.operator.diagonal_flops * (len(self.tables.times) + 2 * len(self.tables.starts))

    # Times -----------------------------------------------------------------------------------------------------------

    def begin(self, time: float, length: float, before) -> None:
        """Go to the slab (time, time + length), with the state `before` [spatial unknown] at its begin."""
        if length != self.length:
            self.tables = tables = self.basis.tables(length)
            parts = {"value": tables.value, "rate": tables.rate, "after": tables.after, "jump": tables.jump}
            parts["end"] = tables.end[None]
            self._rows = dict(zip(parts, np.cumsum([0, *map(len, parts.values())]), strict=False))
            self._table = self.arrays.to_device(np.concatenate(list(parts.values())), "slab")
        self.time, self.length, self._at = time, length, None
        self.arrays.copy(before, self._vectors["before"], self.count)

    @property
    def shift(self) -> float:
        """A rate that makes K and shift · M of like size."""
        return 1 / self.length

    def values(self, what: str, row: int, x, name: str, scale: float = 1.0, keep: float = 0.0):
        """The vector `name` = keep · itself + scale · (x at a row of the tables `what`); its buffer."""
        out = self._vectors[name]
        self._evaluate(self._rows[what] + row, self._table, x, out, scale, keep)
        return out

    def _evaluate(self, row: int, table, x, out, scale: float = 1.0, keep: float = 0.0) -> None:
        shape = (int(row), len(self.basis.steps), self.basis.size, self.basis.columns)
        kernel = self.kernels["slab_values"]
        kernel(self.count, self.count, *shape, *self._lists, table, x, float(scale), float(keep), out)

    def _sum(self, row: int, f, out, scale: float = 1.0, table=None) -> None:
        """out += scale · f times the functions of a row."""
        shape = (int(row), len(self.basis.steps), self.basis.size, self.basis.columns)
        kernel, table = self.kernels["slab_sums"], self._table if table is None else table
        kernel(self.count, self.count, *shape, *self._lists, table, f, float(scale), out)

    def at(self, time: float, x, out) -> None:
        """out [spatial unknown] = the space-time function x at a time of the slab, from the left but at its begin."""
        table = self.arrays.to_device(self.basis.at((time - self.time) / self.length, self.length)[None], "slab")
        self._evaluate(0, table, x, out)

    def at_end(self, x, out) -> None:
        """out [spatial unknown] = x at the end of the slab."""
        self._evaluate(self._rows["end"], self._table, x, out)

    def constant(self, out) -> None:
        """out = the function that keeps the state before the slab: a first guess."""
        self.arrays.fill(out)
        for point, weight in enumerate(self.tables.weights):  # its projection, as a sum over time
            self._sum(self._rows["value"] + point, self._vectors["before"], out, weight)

    # Residual --------------------------------------------------------------------------------------------------------

    def residual(self, x, out) -> None:
        """out = R(x). Collective."""
        self.arrays.fill(out)
        tables, f = self.tables, self._vectors["f"]
        for point, (time, weight) in enumerate(zip(tables.times, tables.weights, strict=True)):
            rate = self.values("rate", point, x, "rate")
            self._residual(self.time + time, self.values("value", point, x, "u"), rate)
            self._sum(self._rows["value"] + point, f, out, weight)
        for start, time in enumerate(tables.starts):
            u, jump = self.values("after", start, x, "u"), self._jump(start, x)
            for rate, sign in ((jump, 1.0), (self._vectors["zero"], -1.0)):
                self._residual(self.time + time, u, rate)
                self._sum(self._rows["after"] + start, f, out, sign)

    def _residual(self, time: float, u, rate) -> None:
        if self.is_linear and not self.is_steady:
            self.operator.restart()  # penalties are those of this time
        self.operator.residual(u, self._vectors["f"], float(time), rate)

    def _jump(self, start: int, x):
        """[U] at a start of local steps, where the state before the slab counts too."""
        if start == 0:
            self.arrays.copy(self._vectors["before"], self._vectors["rate"], self.count)
        return self.values("jump", start, x, "rate", keep=0.0 if start else -1.0)

    # Jacobian --------------------------------------------------------------------------------------------------------

    def linearize(self, x) -> None:
        """Keep the state at which `action` and the matrices differentiate. Not collective."""
        self.arrays.copy(x, self._state, self.space.num_owned)
        self._at = None

    def terms(self):
        """Parts of the Jacobian: (settle, weight, test, value, rate), the last three rows of the tables [kind, column].

        A part is weight · testᵀ (K value + M rate), K + shift M the operator's Jacobian after settle(shift); a row that
        is None is zero. `action` and the assembled matrix both sum over them. Collective, in each settle.
        """
        tables = self.tables
        for p, weight in enumerate(tables.weights):
            yield self._settler("value", p), weight, ("value", p), ("value", p), ("rate", p)
        for s in range(len(tables.starts)):
            if not self.is_linear:  # what multiplies u_t may depend on u
                yield self._settler("after", s), 1.0, ("after", s), ("after", s), None
                yield self._settler("still", s), -1.0, ("after", s), ("after", s), None
            yield self._settler("still", s), 1.0, ("after", s), None, ("jump", s)

    def _settler(self, where: str, row: int):
        """A function of the shift that linearizes the operator at a time of the slab, unless it stands there."""

        def settle(shift: float) -> None:
            key = (shift,) if self.is_steady else (where, row, shift)
            if self._at == key:
                return
            self._at, place = key, "value" if where == "value" else "after"
            times = self.tables.times if where == "value" else self.tables.starts
            u, rate = self.values(place, row, self._state, "u"), self._vectors["zero"]
            if where == "value":
                rate = self.values("rate", row, self._state, "rate")
            elif where == "after":
                rate = self._jump(row, self._state)
            self.operator.linearize(u, float(self.time + times[row]), rate, shift)

        return settle

    def action(self, dx, out) -> None:
        """out = J dx. Collective.

        K a + M b = (K + s M) (a + b/s)/2 + (K - s M) (a - b/s)/2: two products in space for a part of `terms`.
        """
        self.arrays.fill(out)
        f = self._vectors["f"]
        for weight, test, trials in self._products():
            for n, (factor, trial) in enumerate(trials):
                du = self.values(*trial, dx, "u", factor, float(n))
            self.operator.action(du, f)
            self._sum(self._rows[test[0]] + test[1], f, out, weight)

    def transposed(self, w, out) -> None:
        """out = Jᵀ w: as `action`, with the rows of test and trial functions swapped. Collective."""
        self.arrays.fill(out)
        f = self._vectors["f"]
        for weight, test, trials in self._products():
            self.operator.transposed(self.values(*test, w, "u"), f)
            for factor, trial in trials:
                self._sum(self._rows[trial[0]] + trial[1], f, out, weight * factor)

    def _products(self):
        """Parts of J: (weight, test, trials), each weight · testᵀ (K + s M) Σ factor · trial over `trials`, pairs of
        factor and row; K + s M is that of the operator, which is linearized. Collective, in each step."""
        for shift in (self.shift, -self.shift):
            for settle, weight, test, value, rate in self.terms():
                settle(shift)
                yield weight, test, [pair for pair in ((0.5, value), (0.5 / shift, rate)) if pair[1] is not None]

    def diagonal(self, out) -> None:
        """out = diagonal of J. Collective."""
        self.arrays.fill(out)
        f = self._vectors["f"]
        for weight, test, trials in self._products():
            self.operator.diagonal(f)
            row = sum(factor * self.row(trial) for factor, trial in trials)
            self._sum(0, f, out, weight, self.arrays.to_device(self.row(test) * row, "slab"))

    def row(self, which: tuple[str, int]) -> np.ndarray:
        """A row [kind, column] of the tables."""
        return getattr(self.tables, which[0])[which[1]]


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

    @cached_property
    def _kept(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Temporal functions (i, j) of each group that meet."""
        tables, found = self.slab.basis.tables(1.0), []
        for _, mine, theirs, row_shape, column_shape in self.groups:
            a, b = (shape // self.slab.basis.size for shape in (row_shape, column_shape))
            test = np.abs(tables.value[:, a][:, mine])
            trial = np.abs(tables.value[:, b][:, theirs]) + np.abs(tables.rate[:, b][:, theirs])
            size = test.T @ trial + np.abs(tables.after[:, a][:, mine]).T @ np.abs(tables.jump[:, b][:, theirs])
            found.append(np.nonzero(size > TINY * size.max()))
        return found

    def values(self) -> np.ndarray:
        """Values in the order of `numbers`, at the state of the slab's `linearize`. Collective."""
        out = [np.zeros((len(group[0]), len(kept[0]))) for group, kept in zip(self.groups, self._kept, strict=True)]
        if self.slab.is_steady:
            stiffness, mass = self._spatial(next(self.slab.terms())[0])
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
