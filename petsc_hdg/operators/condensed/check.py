"""First use of a kernel of static condensation on a device: compare it with numpy on two cells.

What a kernel solved is compared as equations, E_ii U = -E_it, whose round-off does not grow with the condition of E_ii
where it eliminates; some kernels multiply by inverses.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...device import verdicts
from ...discretizations.condensed.oracle import CondensedOracle
from ...discretizations.symmetry import random_inputs
from ..check import MOST_LOST, SAMPLES, TOLERANCE, random_values, settle, vector_of, waiting

DIGITS = 10.0  # of round-off times the condition
TRIALS, SIZES, NEAR = 200, (0.1, 1.0, 10.0), 0.05  # of states in the domain of a physics; NEAR is how much they vary


def check_condensed(operator) -> None:
    """Check the kernels that the cells of an operator take now, where they have not been checked on this device yet.
    Not collective. Raises DeviceError naming the kernel and the difference.
    """
    checks = {"condense_solve": _check_solve, "condense_residual": _check_residual}
    checks |= {"hdg_stabilization": _check_stabilization}
    if not operator.local.classes:
        checks["condense"] = _check_condense
    names = waiting(operator, checks)
    sample = Sample(operator) if names else None
    for name in names:
        kernel = operator.all_kernels()[name]
        settle(kernel, operator.arrays.precision, lambda check=checks[name]: check(sample))
    if sample is not None:
        operator.restart()
    if operator.local.classes:
        _check_classes(operator, operator.local.classes)
    if operator.discretization.in_time:
        operator.states.check()


def check_products(products, transposed: bool) -> None:
    """Check the kernels of StateProducts likewise: y = E x, and E_ii v = r with -E_ti v."""
    operator, ending = products.op, "_transposed" * transposed
    names = waiting(operator, [f"{name}{ending}" for name, turned in products.kernels if turned == transposed])
    if not names:
        return
    tau = operator.stabilization and operator.stabilization.values()
    operator.fill_rates()
    s, precision = Sample(operator), operator.arrays.precision
    n, m, stride, cells = s.disc.num_eliminated, s.disc.num_trace_dofs, s.disc.stride, list(s.cells)
    trace = vector_of(operator, s.values)
    interior = operator.arrays.to_device(s.interior, "kernel check")
    state, at = (trace, interior, s.t), (s.first, s.count)
    inner, residual = s.empty(n, stride), s.empty(m, stride)
    matrices = [matrix.T if transposed else matrix for matrix, _ in s.systems]
    vectors = [s.state_of(cell) for cell in cells]

    def product():
        products.launch_product(transposed, at, state, state[:2], residual, inner)
        found = np.vstack([s.to_host(buffer, rows, stride)[:, cells] for buffer, rows in ((inner, n), (residual, m))])
        expected = np.array([matrix @ v for matrix, v in zip(matrices, vectors, strict=True)])
        return found.T, expected, max((np.abs(A) @ np.abs(v)).max() for A, v in zip(matrices, vectors, strict=True))

    def given(kept: bool = False):
        if kept:
            s.condense(interior)
        products.launch_given(transposed, at, state, interior, residual, inner, kept)
        solved, rest = s.to_host(inner, n, stride)[:, cells].T, s.to_host(residual, m, stride)[:, cells].T
        got = [np.concatenate([A[:n, :n] @ v, y]) for A, v, y in zip(matrices, solved, rest, strict=True)]
        expected = [np.concatenate([r[:n], -A[n:, :n] @ v]) for A, r, v in zip(matrices, vectors, solved, strict=True)]
        scale = max((np.abs(A[:, :n]) @ np.abs(v)).max() for A, v in zip(matrices, solved, strict=True))
        return np.array(got), np.array(expected), scale

    checks = {"condense_product": product, "condense_given": given, "condense_kept": lambda: given(kept=True)}
    for name in names:
        settle(operator.all_kernels()[name], precision, checks[name.removesuffix("_transposed")])
    if tau is not None:
        operator.stabilization.give(tau)


def _check_classes(operator, classes) -> None:
    """Those of cells that share solvers: the element matrix of a shape, and residual and local solution of cells."""
    kernels = {name: classes.kernels[name] for name in ("condense_element", "condense_shared")}
    if not any(verdicts.needs_check(kernel) for kernel in kernels.values()):
        return
    s = Sample(operator)
    n, m, disc = s.disc.num_eliminated, s.disc.num_trace_dofs, s.disc
    blocks, precision = np.array([matrix for matrix, _ in s.systems]), operator.arrays.precision

    def element():
        return classes._matrices(s.t)[classes.shapes.shape[list(s.cells)]], blocks, None

    settle(kernels["condense_element"], precision, element)
    interior = operator.arrays.to_device(s.interior, "kernel check")
    residual, solution = s.empty(m, disc.stride), s.empty(n, disc.stride)

    def shared():
        classes.condense(vector_of(operator, s.values), interior, s.t, residual, solution)
        rest, solved = s.to_host(residual, m, disc.stride), s.to_host(solution, n, disc.stride)
        got, expected, scale = [], [], 0.0
        for cell, (matrix, vector) in zip(s.cells, s.systems, strict=True):
            step = solved[:, cell] - s.interior_of(cell)
            got.append(np.concatenate([np.zeros(n), rest[:, cell]]))
            expected.append(vector + matrix[:, :n] @ step)
            scale = max(scale, np.abs(vector).max(), (np.abs(matrix[:, :n]) @ np.abs(step)).max())
        return np.array(got), np.array(expected), scale

    settle(kernels["condense_shared"], precision, shared)


def given_stabilization(operator) -> np.ndarray | None:
    """Random tau [facet, stride, component] that an operator has from now on, or None where it follows no state."""
    if operator.stabilization is None:
        return None
    shape = operator.stabilization.shape
    tau = random_values(9, int(np.prod(shape))).reshape(shape)
    operator.stabilization.give(tau)
    return tau


class Sample:
    """Random interiors and traces of the last cells, on the device and on the host."""

    t = 0.25

    def __init__(self, operator):
        self.operator, self.disc = operator, operator.discretization
        self.count = min(SAMPLES, self.disc.mesh.num_cells)
        self.first = self.disc.mesh.num_cells - self.count
        dofmap, disc = self.disc.dofmap, self.disc
        self.values = random_values(7, dofmap.num_owned + dofmap.num_tail)
        self.numbers = dofmap.compact[dofmap.cell_dofs]
        self.interior = random_values(8, max(1, disc.num_eliminated) * disc.stride).reshape(-1, disc.stride)
        self.oracle = CondensedOracle(disc, tau=given_stabilization(operator))
        if not self._find_vectors():
            self._enter_domain()

    def _find_vectors(self) -> bool:
        """Find `vectors`, those of the cells' elements. Return True if they are finite."""
        with np.errstate(all="ignore"):
            self.vectors = [self.oracle.residual(*self.arguments(cell)) for cell in self.cells]
        return all(np.isfinite(vector).all() for vector in self.vectors)

    def _enter_domain(self) -> None:
        """Take nearly constant states with another size of each component, the first that the physics is finite at:
        NaN equals NaN, so that nothing is compared outside of its domain, as of a gas of negative pressure."""
        count, random = self.oracle.components, np.random.default_rng(1)
        component = np.zeros(len(self.values), np.int64)
        component[self.numbers] = np.arange(self.numbers.shape[1]) % count
        rows, given = np.arange(len(self.interior)) % count, (self.values, self.interior)
        values, interior = (1 + NEAR * each for each in given)
        for sizes in (np.ones(count), *(random.choice(SIZES, count) for _ in range(TRIALS))):
            if self._is_finite_at(sizes):
                self.values, self.interior = values * sizes[component], interior * sizes[rows][:, None]
                if self._find_vectors():
                    return
        self.values, self.interior = given
        self._find_vectors()

    def _is_finite_at(self, u: np.ndarray) -> bool:
        """Return True if f0 and f1 are finite at a state [component] without gradients and rates."""
        physics, dim = self.disc.physics, self.disc.dim
        (_, rate, slope), (a, a_x, _, _, x, _), _ = random_inputs(physics, dim, 0, positive=True)
        given = u, rate, 0 * slope, a, a_x, self.t, x, self.operator.constants
        with np.errstate(all="ignore"):
            found = physics.interpreter(dim).pw_residual(*given)
        return all(np.isfinite(each).all() for each in found)

    @property
    def cells(self) -> range:
        return range(self.first, self.first + self.count)

    def interior_of(self, cell: int) -> np.ndarray:
        return self.interior[: self.disc.num_eliminated, cell]

    def trace_of(self, cell: int) -> np.ndarray:
        return self.values[self.numbers[cell]]

    def state_of(self, cell: int) -> np.ndarray:
        return np.concatenate([self.interior_of(cell), self.trace_of(cell)])

    def data(self, cell: int) -> tuple:
        """Arguments of the oracle behind the state of a cell."""
        return self.operator.aux_rows[:, cell], self.operator.constants, self.t

    def arguments(self, cell: int) -> tuple:
        """Arguments of the oracle."""
        return cell, self.interior_of(cell), self.trace_of(cell), *self.data(cell)

    @cached_property
    def systems(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Element matrix and vector of each cell."""
        return [(self.oracle.matrix(*self.arguments(c)), v) for c, v in zip(self.cells, self.vectors, strict=True)]

    def empty(self, rows: int, columns: int = 1):
        return self.operator.arrays.zeros(max(1, rows * columns))

    def to_host(self, buffer, *shape: int) -> np.ndarray:
        return self.operator.arrays.to_host(buffer, shape, name="kernel check").astype(float)

    def launch(self, name: str, interior, **outputs) -> None:
        """Run a kernel on the cells of the sample."""
        local, trace = self.operator.local, vector_of(self.operator, self.values)
        local.launch(local.kernels[name], (self.first, self.count), trace, interior, self.t, **outputs)

    def condense(self, interior, **outputs) -> None:
        """Condense the cells of the sample; outputs: those that are read."""
        disc, local = self.disc, self.operator.local
        rows = {"residual": disc.num_trace_dofs, "solution": disc.num_eliminated, "status": 1}
        given = {name: self.empty(count, disc.stride) for name, count in rows.items()}
        given |= {"schur": None, "recovery": None, "batch": self.count, "scratch": local.scratch_for("condense")}
        self.launch("condense", interior, **given | outputs)


def _check_condense(s: Sample):
    """E_ii [U, δ] + [E_it, R_i] = 0 and [K, r] = [E_tt, R_t] + E_ti [U, δ] for the kernel's U, δ, K and r."""
    n, m, stride = s.disc.num_eliminated, s.disc.num_trace_dofs, s.disc.stride
    interior = s.operator.arrays.to_device(s.interior, "kernel check")
    schur, recovery, status = s.empty(m * m, s.count), s.empty(n * m, s.count), s.empty(stride)
    residual, solution = s.empty(m, stride), s.empty(max(1, n), stride)
    outputs = {"recovery": recovery, "residual": residual, "solution": solution, "status": status}
    s.condense(interior, schur=schur, **outputs)
    schur, recovery = s.to_host(schur, m, s.count, m), s.to_host(recovery, m, s.count, n) if n else np.zeros((m, 2, 0))
    residual, solution = s.to_host(residual, m, stride), s.to_host(solution, max(1, n), stride)[:n]
    got, expected, scale = [], [], 0.0
    for k, (cell, (matrix, vector)) in enumerate(zip(s.cells, s.systems, strict=True)):
        eliminated = np.column_stack([recovery[:, k].T, solution[:, cell] - s.interior_of(cell)])
        given = np.column_stack([matrix[:, n:], vector])
        got.append(np.vstack([np.zeros((n, m + 1)), np.column_stack([schur[:, k].T, residual[:, cell]])]))
        expected.append(given + matrix[:, :n] @ eliminated)
        scale = max(scale, np.abs(given).max(), (np.abs(matrix[:, :n]) @ np.abs(eliminated)).max(initial=0.0))
    return np.array(got), np.array(expected), scale * max(_loss(s, matrix) for matrix, _ in s.systems)


def _loss(s: Sample, matrix: np.ndarray) -> float:
    """How many times the accepted difference round-off may be in kernels that multiply by an inverse of E_ii, whose
    residuals grow with its condition; at least 1, and 1 outside the domain of the physics, where the matrix is NaN."""
    n, precision = s.disc.num_eliminated, s.operator.arrays.precision
    condition = np.linalg.cond(matrix[:n, :n]) if n and np.isfinite(matrix[:n, :n]).all() else 1.0
    rounding = DIGITS * np.finfo(s.operator.arrays.real).eps * condition
    return float(np.clip(rounding, TOLERANCE[precision], MOST_LOST) / TOLERANCE[precision])


def _check_solve(s: Sample):
    """At the interior that the kernel gives, the trace's rows of the element vector are what it says, and the others 0
    (unless its iteration failed, as it may from a random state).
    """
    n, m, stride = s.disc.num_eliminated, s.disc.num_trace_dofs, s.disc.stride
    interior = s.operator.arrays.to_device(s.interior, "kernel check")
    residual, status = s.empty(m, stride), s.empty(stride)
    options, scratch = s.disc.options, s.operator.local.scratch_for("condense_solve")
    given = {"most_steps": options.hdg_local_max_it, "tolerance": options.hdg_local_rtol, "scratch": scratch}
    s.launch("condense_solve", interior, **given, residual=residual, status=status)
    interior, residual = s.to_host(interior, max(1, n), stride)[:n], s.to_host(residual, m, stride)
    status = s.to_host(status, stride)
    got, expected, scale = [], [], 0.0
    for cell in s.cells:
        given = cell, interior[:, cell], s.trace_of(cell), *s.data(cell)
        vector, matrix = s.oracle.residual(*given), s.oracle.matrix(*given)  # the random state may be out of the domain
        got.append(np.concatenate([np.zeros(n) if status[cell] >= 0 else vector[:n], residual[:, cell]]))
        expected.append(vector)
        state = np.concatenate([interior[:, cell], s.trace_of(cell)])
        scale = max(scale, (np.abs(matrix) @ np.abs(state)).max())
    return np.array(got), np.array(expected), scale


def _check_stabilization(s: Sample):
    """tau of each facet of the cells at their states."""
    interior = s.operator.arrays.to_device(s.interior, "kernel check")
    stabilization = s.operator.stabilization
    tau = s.operator.arrays.zeros(stabilization.size)
    stabilization.find(vector_of(s.operator, s.values), interior, s.t, tau)
    found = s.operator.arrays.to_host(tau, stabilization.shape)[:, list(s.cells)]
    states = [(c, s.state_of(c), *s.data(c)) for c in s.cells]
    return found, np.stack([s.oracle.following_tau(*state) for state in states], axis=1), None


def _check_residual(s: Sample):
    """The element vectors of the cells."""
    n, m, stride = s.disc.num_eliminated, s.disc.num_trace_dofs, s.disc.stride
    interior = s.operator.arrays.to_device(s.interior, "kernel check")
    residual, inner, status = s.empty(m, stride), s.empty(max(1, n), stride), s.empty(stride)
    scratch = s.operator.local.scratch_for("condense_residual")
    s.launch("condense_residual", interior, scratch=scratch, residual=residual, inner=inner, status=status)
    found = np.vstack([s.to_host(inner, max(1, n), stride)[:n], s.to_host(residual, m, stride)])
    scale = max((np.abs(m) @ np.abs(s.state_of(c))).max() for c, (m, _) in zip(s.cells, s.systems, strict=True))
    return found[:, list(s.cells)].T, np.array([vector for _, vector in s.systems]), scale
