"""Destinations of condensed matrices: blocks of a format, once or twice, and values to assemble; whether they are
symmetric, by values where they are assembled, else by random products."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from .automatic import create_format
from .border import border_of

SYMMETRIC = {"double": 1e-9, "single": 1e-4}  # |xᵀKy - yᵀKx| over |xᵀKx| below which K counts as symmetric


class TraceStores:
    """The trace matrix of a condensed operator, as it is stored. Making one is collective.

    format: the blocks of products, or None where the matrix is assembled alone.   rough: the preconditioner's, or None.
    border: rows that two ranks make up, completed by their owner, or None.
    values [column, cell, row]: of the assembled matrix, kept where `wants_values`; else None.
    """

    def __init__(self, operator):
        self.op, options = operator, operator.discretization.options
        kind = operator.format_kind
        self.format = None if kind == "aij" else create_format(kind, operator)
        rough = self.format and options.pmat != "aij" and options.pmat_precision == "single"
        rough = rough and operator.arrays.precision == "double"
        self.rough = create_format(kind, operator, True, self.format.layout) if rough else None
        self.formats = [each for each in (self.format, self.rough) if each is not None]
        self.border = border_of(operator) if self.format is not None and self.format.has_facets else None
        for each in self.formats:
            each.border = self.border
        self.values: np.ndarray | None = None
        self.wants_values = False

    def compile(self) -> None:
        """Compile what products need. Not collective."""
        [each.kernels for each in self.formats]
        if self.border is not None:
            self.border.kernels  # noqa: B018

    def compile_variants(self) -> None:
        """Compile what other meshes would take, too. Not collective."""
        for each in self.formats:
            each.compile_variants()

    @property
    def description(self) -> str:
        """Storage of the matrix in a few words. Collective."""
        self.share()
        return "; for the preconditioner ".join(each.description for each in self.formats)

    # Filling ---------------------------------------------------------------------------------------------

    def share(self) -> None:
        """Tell the formats of the shapes of cells. Collective."""
        for each in self.formats:
            each.share(self.op.shapes if each.can_share else None)

    def begin(self) -> None:
        """Empty the stores before the tiles of a condensation come. Collective."""
        if self.wants_values and self.values is None:
            disc = self.op.discretization
            shape = (disc.num_trace_dofs, disc.mesh.num_cells, disc.num_trace_dofs)
            self.values = np.empty(shape, dtype=self.op.arrays.real)
        self.share()
        for each in self.formats:
            each.clear()

    def take(self, schur, first: int, count: int, batch: int) -> None:
        """Put the matrices of a tile where they are wanted."""
        for each in self.formats:
            each.add_tile(schur, first, count, batch)
        if self.border is not None:
            self.border.take(schur, first, count, batch)
        if self.wants_values:
            size = self.op.discretization.num_trace_dofs
            tile = self.op.arrays.to_host(schur, (size, batch, size), name="matrices")
            self.values[:, first : first + count] = tile[:, :count]

    def take_shapes(self, classes) -> bool:
        """Take the matrices of the shapes of cells. Returns whether they are all that is wanted."""
        found = [each.add_shapes(classes.schur, classes.shapes) for each in self.formats]
        if self.border is not None:
            self.border.take_shapes(classes.schur, classes.shapes)
        return all(found) and not self.wants_values

    def retry(self) -> bool:
        """True if a format chose another one by what came, so that all tiles are to come again. Collective."""
        return any([each.retry() for each in self.formats])

    def exchange(self) -> None:
        """Complete the rows that two ranks make up, once all tiles have come. Collective."""
        if self.border is not None:
            self.border.exchange()


def is_symmetric(operator) -> bool:
    """True if the matrix of a condensed operator's last `linearize` is symmetric. Collective."""
    comm, least = operator.discretization.mesh.comm, SYMMETRIC[operator.arrays.precision]
    if operator.format is None:
        values = operator.stores.values
        skew = float(np.abs(values - values.transpose(2, 1, 0)).max(initial=0.0))
        largest = float(np.abs(values).max(initial=0.0))
        return comm.allreduce(skew, MPI.MAX) <= least * comm.allreduce(largest, MPI.MAX)
    random = np.random.default_rng(11 + comm.rank)
    x, y = (random.uniform(-1, 1, operator.dofmap.num_owned) for _ in range(2))
    forth, back, size = _form(operator, y, x), _form(operator, x, y), _form(operator, x, x)
    return abs(forth - back) <= least * abs(size)


def _form(operator, x: np.ndarray, y: np.ndarray) -> float:
    """xᵀ K y. Collective."""
    arrays = operator.arrays
    given = arrays.to_device(y if y.size else np.zeros(1), "symmetry")
    out = arrays.empty(max(1, len(x)))
    operator.action(given, out)
    return operator.discretization.mesh.comm.allreduce(float(x @ arrays.to_host(out, len(x), name="symmetry")))
