"""Smoothed aggregation on the device of one rank: aggregates of nodes, prolongators, matrices of levels."""

from __future__ import annotations

import numpy as np

from ..operators.block_rows import SOURCE, BlockKernels, BlockRows, Product, Transpose, starts_of

STALE = 0.02  # part of couplings that have become strong or weak, above which aggregates are made anew
MOST_KEPT = 0.4  # part of a directed matrix' entries that is left without weak ones
MOST_ROUNDS = 200  # of the maximal independent set; some ten are enough


class Aggregates:
    """Aggregates of the nodes of a matrix, at its values of now.

    part: coupling over the strongest one of its row or column up to which it is weak, too. The matrix is directed if
    few couplings stay strong, as in stretched cells; else the rule is dropped. 0 has no such rule, and is needed where
    nodes have several numbers or near-null vectors. The prolongator of a directed matrix is smoothed without weak
    couplings: rows would grow from level to level. If the matrix is symmetric, too, nodes without strong couplings,
    such as short facets between long ones, belong to no aggregate and are interpolated along their large couplings.

    numbers  buffer [node]: aggregate, -1 of nodes that belong to none;  count: of aggregates
    inverse  buffer [node, size]: one over the diagonal, as of the last `measure`
    """

    def __init__(self, matrix: BlockRows, threshold: float, part: float = 0.0, is_symmetric: bool = True):
        self._matrix, self._threshold, arrays = matrix, threshold, matrix.arrays
        self._nodes, size = matrix.num_rows, matrix.shape[0]
        self._kernels = BlockKernels(arrays, (SOURCE, "aggregate.cl"), SIZE=size, MODES=1)
        self._scale, self.inverse = arrays.empty(self._nodes), arrays.empty(self._nodes * size)
        self._largest, self._counts = arrays.empty(self._nodes, np.float32), arrays.empty(self._nodes, np.int32)
        self._weight, self._now = (arrays.empty(matrix.count, np.float32) for _ in range(2))
        self._state, self._near, self._far = (arrays.empty(self._nodes, np.uint64) for _ in range(3))
        self._flag = arrays.zeros(1, np.int32)
        self._part, self._is_symmetric = part, is_symmetric
        self.measure()
        if part and starts_of(arrays, self._counts, self._nodes)[-1] + self._nodes > MOST_KEPT * matrix.count:
            self._part = 0.0
            self.measure()
        self._weight, self._now = self._now, self._weight
        given = arrays.empty(self._nodes, np.int32)
        arrays.fill(given, 255)
        self.count = self._begin(given, 0)
        self._run("reopen", *matrix.pattern, self._weight, given, self._state)
        self.count = self._begin(given, self.count)
        self.numbers = arrays.empty(self._nodes, np.int32)
        self._run("join", *matrix.pattern, self._weight, given, self.numbers)

    @property
    def is_directed(self) -> bool:
        """True if few couplings are strong beside the strongest ones of their rows."""
        return self._part > 0

    @property
    def interpolates(self) -> bool:
        """True if nodes without strong couplings are interpolated."""
        return self.is_directed and self._is_symmetric

    def measure(self) -> None:
        """Diagonal and strengths of the present values."""
        matrix = self._matrix
        self._run("diagonal", *matrix.all, self._scale, self.inverse)
        found = self._now, self._largest, self._state
        self._run("strength", *matrix.all, self._scale, self.inverse, float(self._threshold), *found)
        if self.is_directed:
            given = self._largest, np.float32(self._part), int(self.interpolates), self._now, self._state, self._counts
            self._run("weaken", *matrix.pattern, *given)

    def serve(self) -> bool:
        """True if the strong couplings, as of the last `measure`, are still those that the aggregates were made of."""
        count = self._matrix.count
        self._matrix.arrays.fill(self._flag)
        self._kernels.run("aggregate_changes", count, count, self._weight, self._now, self._flag)
        return self._flagged() <= STALE * count

    def filtered(self) -> BlockRows | None:
        """Make the matrix that smooths the prolongator, without values; None if it is the matrix itself."""
        if not self.is_directed:
            return None
        arrays = self._matrix.arrays
        self._kept = arrays.empty(self._matrix.count, np.int8)
        self._run("keep", *self._matrix.all, self._weight, self.numbers, self._kept, self._counts)
        kept = starts_of(arrays, self._counts, self._nodes)
        return BlockRows(arrays, (1, 1), self._matrix.num_columns, kept)

    def filter(self, found: BlockRows) -> None:
        """Compute the values of a matrix that `filtered` made."""
        self._run("filter", *self._matrix.all, self._kept, self.numbers, *found.all)

    def _find_roots(self) -> None:
        pattern, arrays = self._matrix.pattern, self._matrix.arrays
        for _ in range(MOST_ROUNDS):
            self._run("largest", *pattern, self._weight, self._state, self._near)
            self._run("largest", *pattern, self._weight, self._near, self._far)
            arrays.fill(self._flag)
            self._run("decide", self._far, self._state, self._flag)
            if not self._flagged():
                return

    def _begin(self, numbers, first: int) -> int:
        """Aggregates, counted from `first`, around roots that are chosen now among open nodes; how many there are."""
        self._find_roots()
        arrays, is_root = self._matrix.arrays, self._matrix.arrays.empty(self._nodes, np.int32)
        self._run("roots", self._state, is_root)
        roots = first + starts_of(arrays, is_root, self._nodes)
        before = arrays.to_device(roots, "matrices")
        self._run("begin", *self._matrix.pattern, self._weight, self._state, before, numbers)
        return int(roots[-1])

    def _run(self, name: str, *arguments) -> None:
        self._kernels.run(f"aggregate_{name}", self._nodes, self._nodes, *arguments)

    def _flagged(self) -> int:
        return int(self._matrix.arrays.to_host(self._flag, 1, np.int32, "matrices")[0])


class Coarsening:
    """The next coarser level of a matrix: `prolongator`, `restriction`, `matrix`, and its near-null vectors `modes`.

    modes: buffer [node, size, num_modes] of near-null vectors of the matrix.   is_symmetric: True if the restriction is
    the transposed prolongator; else it is that of the transposed matrix (Sala and Tuminaro 2008).
    """

    def __init__(self, matrix: BlockRows, aggregates: Aggregates, modes, num_modes: int, is_symmetric: bool = True):
        self._aggregates, self.is_symmetric, arrays = aggregates, is_symmetric, matrix.arrays
        size = matrix.shape[0]
        numbers = arrays.to_host(aggregates.numbers, matrix.num_rows, np.int32, "matrices")
        starts = np.concatenate([[0], np.cumsum(numbers >= 0)])
        columns = arrays.to_device(numbers[numbers >= 0], "matrices")
        self._tentative = BlockRows(arrays, (size, num_modes), aggregates.count, starts, columns)
        members = Transpose(self._tentative)
        self._kernels = BlockKernels(arrays, (SOURCE, "aggregate.cl"), SIZE=size, MODES=num_modes)
        self.modes = arrays.empty(aggregates.count * num_modes**2)
        given = *members.result.pattern, members.source, modes, self._tentative.values, self.modes
        self._kernels.run("aggregate_tentative", aggregates.count, aggregates.count, *given)
        self._filtered = aggregates.filtered()
        if self._filtered is not None:
            aggregates.filter(self._filtered)  # the pattern
        by = matrix if self._filtered is None else self._filtered
        self._adjoint = None if is_symmetric else Transpose(by)
        smoothed_by = [by] if is_symmetric else [by, self._adjoint.result]
        self._smoothed = [Product(each, self._tentative) for each in smoothed_by]
        self._transpose = Transpose(self._smoothed[-1].result)
        self.prolongator, self.restriction = self._smoothed[0].result, self._transpose.result
        self._applied = Product(matrix, self.prolongator)
        self._galerkin = Product(self.restriction, self._applied.result)
        self.matrix = self._galerkin.result
        self._below = BlockKernels(arrays, (SOURCE, "aggregate.cl"), SIZE=num_modes, MODES=num_modes)

    def update(self, omega: float) -> None:
        """P = T - ω D⁻¹ A T, R = Tᵀ - ω Tᵀ A D⁻¹, with the filtered A, and R A P, of the present values."""
        t, coarse = self._tentative, self.matrix
        if self._filtered is not None:
            self._aggregates.filter(self._filtered)
        if self._adjoint is not None:
            self._adjoint.update()
        for product in self._smoothed:
            product.update()
            p = product.result
            alone = 1.0 if self._aggregates.interpolates else float(omega)
            given = *p.pattern, *t.all, self._aggregates.inverse, float(omega), alone, p.values
            self._kernels.run("aggregate_smooth", p.count, p.count, p.num_rows, *given)
        for each in (self._transpose, self._applied, self._galerkin):
            each.update()
        self._below.run("aggregate_mend", coarse.num_rows, coarse.num_rows, *coarse.all)
