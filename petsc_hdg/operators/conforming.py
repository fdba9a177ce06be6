"""The continuous functions of first order among those of a scheme, or their traces: the coarse level of its
preconditioner; and those of the scheme's own degree, a level between. They have no jumps, so that each scheme is
continuous Galerkin on them (for the traces of hybridizable DG: Cockburn, Dubois, Gopalakrishnan and Tan 2014)."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from petsc4py import PETSc

from ..discretizations import ContinuousGalerkin
from ..errors import collectively
from ..threads import in_threads, taken
from . import create_operator
from .assembled import AssembledMatrix
from .cg.operator import CGOperator
from .matfree import JacobianContext

CHUNK = 1 << 15  # rows made at a time: temporaries stay in the cache


class ConformingSubspace:
    """Continuous functions, P1 or Q1 if no `degree` is given, the same of all fields, that satisfy essential
    conditions, and the Jacobian on them. Making one is collective.

    fine: operator of the scheme, or of `above`, a subspace of higher degree.
    access: VecAccess.
    interpolation: AIJ matrix, rows in the numbering of the scheme, columns in that of the subspace; of schemes that
    have nodes.
    matrix: AssembledMatrix of the Jacobian on the subspace, made when it is asked for, with upwinding unless
    `is_symmetric` is set, as it is of a higher degree; where solvers are on the device, `mat` of that is a shell.
    bounds: what gives smoothers their bounds by its `update` after the matrix has been filled, or None.
    solvers: what sets up solvers of the matrix by its `update` after that, or None.
    multiply_transposed: function of (mat, x, y) that sets y = matᵀ x.
    """

    def __init__(self, fine, access, comm, vec_type: str, degree: int = 1, above: ConformingSubspace | None = None):
        self.fine, self.access, self.above, self._degree = fine, access, above, degree
        disc = fine.discretization
        options = replace(
            disc.options, backend="cg_gpu", degree=degree, quadrature_degree=-1, kernel="auto", cg_condense=False
        )
        self.discretization = ContinuousGalerkin.on(disc.mesh, disc.physics.with_one_degree(), options, disc.limits)
        self.dofmap = self.discretization.dofmap
        self.is_symmetric = degree > 1
        self._is_assembled = degree == 1 or not fine.arrays.device.has_solvers
        sizes = tuple((d.num_owned, disc.mesh.comm.allreduce(d.num_owned)) for d in (disc.dofmap, self.dofmap))
        self._sizes, self._comm, self._vec_type = sizes, comm, vec_type
        self._version: int | None = None  # of the scheme's data, as the subspace has them
        self.bounds = None
        self.solvers = None
        self.multiply_transposed = PETSc.Mat.multTranspose

    @cached_property
    def operator(self) -> CGOperator:
        """The scheme of the subspace, compiled. Collective."""
        operator = create_operator(self.discretization, self.fine.arrays)
        with collectively(self.discretization.mesh.comm):
            operator.compile(matrices=True, products=not self._is_assembled)
        return operator

    @cached_property
    def matrix(self) -> _CoarseMatrix:
        """Its matrix. Collective."""
        return _CoarseMatrix(self, self._sizes[1], self._comm, self._vec_type)

    @cached_property
    def mat(self) -> PETSc.Mat:
        """The Jacobian on the subspace. Collective."""
        if self._is_assembled:
            return self.matrix.mat
        return JacobianContext(self.operator, self.access).as_mat(self._sizes[1], self._comm, self._vec_type)

    def update(self, u, t: float = 0.0, u_t=None, shift: float = 0.0) -> tuple:
        """Fill the matrix at the nodal averages of the state (PETSc vectors) that the scheme was linearized at, and set
        up what works with both. Returns state and rate of the subspace. Collective."""
        if self.above is not None:
            u, u_t = self.above.update(u, t, u_t, shift)
        state, rate = self.average(u), None if u_t is None else self.average(u_t)
        self.update_at(state, t, rate, shift)
        for each in (self.bounds, self.solvers):
            if each is not None:
                each.update()
        return state, rate

    def update_at(self, state, t: float = 0.0, rate=None, shift: float = 0.0) -> None:
        """Fill the matrix at a state of the subspace (PETSc vectors). Collective."""
        self.update_data()
        with self.access.read_state(state, rate) as (x, x_t):
            self.operator.linearize(x, t, x_t, shift)
        if not self._is_assembled:
            self.mat.assemble()  # it has other values
            return
        self.matrix.update()
        self.mat.setOption(PETSc.Mat.Option.SYMMETRIC, self.is_symmetric)  # GAMG then transposes no graphs

    def update_data(self) -> None:
        """Constants and auxiliary fields as the scheme has them now, nodal ones at the vertices. Collective."""
        if self._version == self.fine.version:
            return
        self._version = self.fine.version
        self.operator.set_constants(self.fine.constants[: len(self.discretization.physics.constants)])
        declared = {field.name for field in self.discretization.physics.auxiliary}
        for name, values in self.fine.auxiliary_onto(self.discretization):
            if name in declared:  # and no rate of cells that have a state
                self.operator.set_auxiliary(name, *values)

    # States ----------------------------------------------------------------------------------------------

    @cached_property
    def _sums(self) -> tuple[PETSc.Mat, PETSc.Vec, PETSc.Vec]:
        """The matrix that spreads vertex values to what is averaged; one over its weights at each vertex; work.

        Averaged are the values of the cells at the vertex; of a trace, which has none there, the nodes around, by the
        subspace's functions.
        """
        spread = self.interpolation
        spaces = self.fine.discretization.parts[0].spaces
        if self._degree == 1 and any(space.element.entity_dofs[0][0] for space in spaces):
            spread = self._mat(self._at_vertices)
        average, ones = spread.createVecs()
        ones.set(1.0)
        spread.multTranspose(ones, average)
        average.reciprocal()
        return spread, average, average.duplicate()

    def average(self, u: PETSc.Vec) -> PETSc.Vec:
        """Values at the vertices, averaged over the cells around; a vector of zeros where they do not matter."""
        state = self.mat.createVecLeft()
        state.set(0.0)
        if not self.fine.discretization.physics.is_linear:
            spread, weights, sums = self._sums
            self.multiply_transposed(spread, u, sums)
            state.pointwiseMult(sums, weights)
        return state

    # Interpolation ---------------------------------------------------------------------------------------

    @cached_property
    def interpolation(self) -> PETSc.Mat:
        parts = zip(self.fine.discretization.parts, self.discretization.parts, strict=True)
        csr = _merged([_rows_of(*part) for part in parts])
        self._at_vertices = _units(*csr)
        return self._mat(csr)

    def _mat(self, csr: tuple) -> PETSc.Mat:
        """AIJ matrix of this rank's rows."""
        mat = PETSc.Mat().createAIJWithArrays(self._sizes, csr, comm=self._comm)
        mat.setVecType(self._vec_type)  # operations on vectors of two types read what is not there
        return mat


def _units(starts: np.ndarray, columns: np.ndarray, values: np.ndarray) -> tuple:
    """CSR of the rows of a CSR that have one value, 1; others are empty."""
    rows = np.flatnonzero(np.diff(starts) == 1)
    rows = rows[np.abs(values[starts[rows]] - 1) < 1e-12]
    counts = np.zeros(len(starts), starts.dtype)
    counts[rows + 1] = 1
    return np.cumsum(counts, dtype=starts.dtype), columns[starts[rows]], values[starts[rows]]


def _rows_of(fine, coarse) -> tuple:
    """CSR of the values of subspace functions at the nodes of all fields, of rows that the cells of a part have. Cells
    that share a node of their facets agree there."""
    nodes = [space.element.nodes for space in fine.spaces]
    numbers = taken(coarse.dofmap.global_numbers, coarse.dofmap.cell_numbers)
    width, columns = max(map(len, nodes)), []
    parts = list(zip(_places(fine, nodes), _components(coarse.spaces), strict=True))
    tables = np.zeros((len(parts), width, coarse.spaces[0].element.num_basis))
    count = len(parts) * len(numbers) * width
    kind = np.promote_types(np.min_scalar_type(-count), np.int32)
    last = np.full(len(fine.dofmap.compact), -1, kind)
    for part, ((owners, here), low) in enumerate(parts):
        of_node = np.arange(len(here), dtype=kind)
        for begin in range(0, len(owners), CHUNK):
            cells = np.arange(begin, min(begin + CHUNK, len(owners)), dtype=kind) + part * len(numbers)
            last[owners[begin : begin + CHUNK]] = cells[:, None] * kind.type(width) + of_node
        tables[part, : len(here)] = _weights(coarse, here)
        columns.append(numbers[:, low])
    return _rows(last[: fine.dofmap.num_owned], np.array(columns), tables)


def _merged(parts: list[tuple]) -> tuple:
    """CSR of the rows of some CSRs, which agree where several have a row."""
    if len(parts) == 1:
        return parts[0]
    counts = np.array([np.diff(starts) for starts, *_ in parts])
    chosen, rows = (counts > 0).argmax(axis=0), np.arange(counts.shape[1])
    of_entries = [np.repeat(rows, count) for count in counts]
    kept = [chosen[row] == part for part, row in enumerate(of_entries)]
    order = np.argsort(np.concatenate([row[mine] for row, mine in zip(of_entries, kept, strict=True)]), kind="stable")
    found = (np.concatenate([part[k][mine] for part, mine in zip(parts, kept, strict=True)])[order] for k in (1, 2))
    return np.concatenate([[0], np.cumsum(counts[chosen, rows])]).astype(PETSc.IntType), *found


def _places(disc, nodes: list[np.ndarray]):
    """Of each component of a part of the scheme compact numbers [cell, node], and its field's nodes."""
    numbers = disc.dofmap.cell_numbers
    of_component = [here for space, here in zip(disc.spaces, nodes, strict=True) for _ in range(space.components)]
    for part, here in zip(_components(disc.spaces), of_component, strict=True):
        yield numbers[:, part], here


def _weights(disc, nodes: np.ndarray) -> np.ndarray:
    """Values [node, function] of a subspace's functions."""
    weights = disc.spaces[0].element.tabulate(nodes, 0)[0]
    weights[np.abs(weights) < 1e-14] = 0
    return weights


class _CoarseMatrix(AssembledMatrix):
    """The Jacobian on the subspace, its convection upwinded: without, large cells leave no stable inverse."""

    is_coarse = True

    def __init__(self, subspace: ConformingSubspace, sizes, comm, vec_type: str):
        self.subspace = subspace
        super().__init__(subspace.operator, (sizes[0], sizes[1]), comm, vec_type)

    def _elements(self) -> tuple:
        cells, facets = super()._elements()
        if not self.subspace.is_symmetric:
            arrays, disc = self.operator.arrays, self.operator.discretization
            given = arrays.to_host(cells, disc.num_dofs**2 * disc.stride, name="matrices")
            add_upwinding(disc, given)
            arrays.upload(cells, given, "matrices")
        return cells, facets

    def values(self) -> np.ndarray:
        values = super().values()
        if not (self._is_part or self.subspace.is_symmetric):
            add_upwinding(self.operator.discretization, values)
        return values


def _components(spaces) -> list[slice]:
    """Degrees of freedom of a cell that belong to each component of each field."""
    return [slice(s.first_dof + c, s.first_dof + s.num_dofs, s.components) for s in spaces for c in range(s.components)]


def _rows(places: np.ndarray, columns: np.ndarray, tables: np.ndarray):
    """CSR of rows: starts, columns ascending, values without zeros.

    places [row]: (part * cells + cell) * nodes + node, -1: an empty row, which has the values tables[part, node] in
    columns[part, cell], both [vertex], without negative columns.
    """
    _, cells, vertices = columns.shape
    nodes, columns = tables.shape[1], columns.reshape(-1, vertices)
    order = np.empty(columns.shape, np.int8)

    def sort(begin: int) -> None:
        part = slice(begin, begin + CHUNK)
        order[part] = np.argsort(columns[part], axis=1, kind="stable")
        columns[part] = np.take_along_axis(columns[part], order[part], axis=1)

    def entries(begin: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        here = places[begin : begin + CHUNK]
        count, rows = np.zeros(len(here), np.int64), np.flatnonzero(here >= 0)
        of_cell, node = np.divmod(here[rows], nodes)
        node += of_cell // max(1, cells) * nodes
        values = tables.take(node[:, None] * vertices + order[of_cell], mode="wrap")
        found = columns[of_cell]
        kept = (found >= 0) & (values != 0)
        count[rows] = kept.sum(axis=1)
        return count, found[kept], values[kept]

    in_threads(sort, range(0, len(columns), CHUNK))
    parts = in_threads(entries, range(0, max(1, len(places)), CHUNK))
    counts, found, values = map(np.concatenate, zip(*parts, strict=True))
    return np.concatenate([[0], np.cumsum(counts)]).astype(PETSc.IntType), found, values


def add_upwinding(discretization, values: np.ndarray) -> None:
    """Add to cell matrices, in place, the least diffusion that leaves no positive coupling by convection.

    values: what `matrices` of a CGOperator gives, [dof, dof, stride] of cells first. With the symmetric part s and the
    antisymmetric part k of a cell's matrix, unknowns i ≠ j of one component get d = max(0, |k_ij| + min(s_ij, 0)):
    nothing where k = 0, and nothing between components. Row sums do not change.
    """
    for disc in discretization.parts:
        count, component = disc.num_dofs, disc.dof_components
        cells = values[: count * count * disc.stride].reshape(count, count, disc.stride)[:, :, : disc.mesh.num_cells]
        values = values[count * disc.num_entries :]
        for i in range(count):
            for j in range(i):
                if component[i] == component[j]:
                    k, s = (cells[i, j] - cells[j, i]) / 2, (cells[i, j] + cells[j, i]) / 2
                    d = np.maximum(0, np.abs(k) + np.minimum(s, 0))
                    cells[i, j] -= d
                    cells[j, i] -= d
                    cells[i, i] += d
                    cells[j, j] += d
