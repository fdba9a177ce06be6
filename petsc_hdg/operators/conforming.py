"""The continuous functions of first order among those of a discontinuous scheme: the coarse level of its
preconditioner. They have no jumps, so that the scheme is continuous Galerkin on them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from petsc4py import PETSc

from ..discretizations import ContinuousGalerkin
from ..errors import collectively
from ..reference import ReferenceElement
from .assembled import AssembledMatrix
from .cg import CGOperator
from .upwind import add_upwinding


class ConformingSubspace:
    """Continuous P1 or Q1 functions that satisfy essential conditions, and the Jacobian on them.

    Making one is collective.

    fine: operator of the discontinuous scheme.   access: VecAccess.
    interpolation: AIJ matrix, rows in the numbering of the discontinuous scheme, columns in that of the subspace.
    matrix: AssembledMatrix of the Jacobian on the subspace, with upwinding unless `is_symmetric` is set.
    """

    def __init__(self, fine, access, comm, vec_type: str):
        self.fine, self.access = fine, access
        disc = fine.discretization
        options = replace(disc.options, backend="cg_gpu", degree=1, quadrature_degree=-1, kernel="auto")
        self.discretization = ContinuousGalerkin(disc.mesh, disc.physics, options, disc.limits)
        self.dofmap = self.discretization.dofmap
        self.operator = CGOperator(self.discretization, fine.arrays)
        with collectively(disc.mesh.comm):
            self.operator.compile(matrices=True)
        self.is_symmetric = False
        sizes = tuple((d.num_owned, disc.mesh.comm.allreduce(d.num_owned)) for d in (disc.dofmap, self.dofmap))
        self._sizes, self._comm = sizes, comm
        self.matrix = _CoarseMatrix(self, sizes[1], comm, vec_type)
        self.interpolation = self._from_nodes(disc.element.nodes)
        self._aux = None

    @property
    def mat(self) -> PETSc.Mat:
        """The Jacobian on the subspace."""
        return self.matrix.mat

    def update(self, u, t: float = 0.0, u_t=None, shift: float = 0.0) -> None:
        """Fill the matrix at the vertex averages of a state of the discontinuous scheme (PETSc vectors). Collective."""
        self._update_data()
        state, rate = self._average(u), None if u_t is None else self._average(u_t)
        with self.access.read(state) as x, self.access.read(state if rate is None else rate) as x_t:
            self.operator.linearize(x, t, None if rate is None else x_t, shift)
        self.matrix.update()

    def _update_data(self) -> None:
        """Constants and auxiliary fields as the discontinuous scheme has them now, nodal ones at the vertices."""
        if not np.array_equal(self.operator.constants, self.fine.constants):
            self.operator.set_constants(self.fine.constants)
        rows = self.fine.aux_rows
        if self._aux is not None and np.array_equal(rows, self._aux):
            return
        self._aux = rows.copy()
        auxiliary, cells = self.fine.discretization.auxiliary, self.discretization.mesh.num_cells
        first = 0
        for field in auxiliary.fields:
            kept = [0] if field.space == "cell" else self._vertex_nodes
            starts = auxiliary.starts[first : first + field.components]
            values = np.stack([rows[start + np.array(kept), :cells].T for start in starts], axis=-1)
            self.operator.set_auxiliary(field.name, values)
            first += field.components

    # States ----------------------------------------------------------------------------------------------

    @cached_property
    def _vertex_nodes(self) -> list[int]:
        """Node of the discontinuous element at each vertex of the cell."""
        return [on[0] for on in self.fine.discretization.element.entity_dofs[0]]

    @cached_property
    def _sums(self) -> tuple[PETSc.Mat, PETSc.Vec, PETSc.Vec]:
        """The matrix that spreads vertex values to the cells around; one over their number at each vertex; work."""
        at_vertices = np.full_like(self.fine.discretization.element.nodes, np.nan)
        at_vertices[self._vertex_nodes] = ReferenceElement(self.discretization.mesh.cell, 1).nodes
        spread = self._from_nodes(at_vertices)
        average, ones = spread.createVecs()
        ones.set(1.0)
        spread.multTranspose(ones, average)
        average.reciprocal()
        return spread, average, average.duplicate()

    def _average(self, u: PETSc.Vec) -> PETSc.Vec:
        """Values at the vertices, averaged over the cells around; a vector of zeros where they do not matter."""
        state = self.mat.createVecLeft()
        if not self.fine.discretization.physics.is_linear:
            spread, weights, sums = self._sums
            spread.multTranspose(u, sums)
            state.pointwiseMult(sums, weights)
        return state

    # Interpolation ---------------------------------------------------------------------------------------

    def _from_nodes(self, nodes: np.ndarray) -> PETSc.Mat:
        """AIJ matrix of the values of subspace functions at nodes [node, dim] of each cell; rows with nan are empty."""
        disc, coarse = self.fine.discretization, self.discretization
        weights = np.nan_to_num(ReferenceElement(disc.mesh.cell, 1).tabulate(np.nan_to_num(nodes), 0)[0])
        weights[np.isnan(nodes).any(axis=1)] = 0
        weights[np.abs(weights) < 1e-14] = 0
        columns = np.full((disc.dofmap.num_owned, weights.shape[1]), -1, dtype=PETSc.IntType)
        values = np.zeros(columns.shape)
        numbers = self.dofmap.global_numbers[self.dofmap.compact[self.dofmap.cell_dofs]]
        for fine, low in zip(disc.spaces, coarse.spaces, strict=True):
            for c in range(fine.components):
                rows = disc.dofmap.cell_dofs[:, fine.first_dof + c : fine.first_dof + fine.num_dofs : fine.components]
                of_cell = numbers[:, low.first_dof + c : low.first_dof + low.num_dofs : low.components]
                columns[rows] = of_cell[:, None, :]
                values[rows] = weights
        return _compressed(columns, values, self._sizes, self._comm)


class _CoarseMatrix(AssembledMatrix):
    """The Jacobian on the subspace, its convection upwinded: without, large cells leave no stable inverse."""

    def __init__(self, subspace: ConformingSubspace, sizes, comm, vec_type: str):
        super().__init__(subspace.operator, (sizes[0], sizes[1]), comm, vec_type)
        self.subspace = subspace

    def values(self) -> np.ndarray:
        values = super().values()
        if not self.subspace.is_symmetric:
            add_upwinding(self.operator.discretization, values)
        return values


def _compressed(columns: np.ndarray, values: np.ndarray, sizes, comm) -> PETSc.Mat:
    """AIJ matrix of rows with columns [row, entry] and values, without zeros and negative columns. Collective."""
    kept = (columns >= 0) & (values != 0)
    start = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(PETSc.IntType)
    order = np.argsort(np.where(kept, columns, np.iinfo(columns.dtype).max), axis=1, kind="stable")
    kept, columns, values = (np.take_along_axis(a, order, axis=1) for a in (kept, columns, values))
    return PETSc.Mat().createAIJ(sizes, csr=(start, columns[kept], values[kept]), comm=comm)
