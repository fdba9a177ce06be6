"""Coarse levels: lower degrees on the same polytopes, then the first on larger and larger agglomerates of them.

The spaces are nested, the forms are not: each level has its own penalties (Antonietti, Houston, Hu, Sarti and Verani
2017), as those of a finer one are too strong for larger cells.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
from petsc4py import PETSc

from ...discretizations import PolytopicDG
from ...discretizations.dofmap import element_nodes
from ...discretizations.poly.legendre import exponents, tabulate
from ...errors import collectively
from ...mesh.polytopal.agglomerate import coarsen
from ...mesh.polytopes import Polytopes
from ...petsc import csr
from ..assembled import AssembledMatrix
from .operator import PolytopicOperator

DEGREE = 1  # of coarse levels
DIRECT = 3  # highest degree with no other between it and that
FEW = 100  # polytopes over all ranks: no more levels
ZERO = 1e-14  # entries of changes of box smaller than this are round-off
REDUCTION = 0.7  # of the number of polytopes, at least, or there are no more levels: ranks keep one each


class AgglomerateLevels:
    """Coarse levels below a discontinuous scheme, the finest first: same physics, constants, fields and state.

    Making one is collective. Below higher degrees the first ones have the same polytopes.

    fine        operator of the scheme, a PolytopicOperator or a SIPGOperator
    operators   [level] PolytopicOperator
    matrices    [level] AssembledMatrix of the Jacobian, integrated on the level itself
    injections  [level] AIJ matrix that writes functions of a level in the next finer space
    bounds      what gives smoothers their bounds by its `update` after each one of the levels, or None
    """

    def __init__(self, fine, access, comm, vec_type: str):
        self.fine, self.access = fine, access
        finest = fine.discretization
        discretizations = [finest, *_coarser(finest)]
        self.operators = [PolytopicOperator(disc, fine.arrays) for disc in discretizations[1:]]
        with collectively(finest.mesh.comm):
            for operator in self.operators:
                operator.assembly.compile()
                operator.fine.penalty_kernels  # noqa: B018
        self.matrices = [_matrix(operator, comm, vec_type) for operator in self.operators]
        pairs = zip(discretizations[:-1], discretizations[1:], strict=True)
        self.injections = [injection(*pair, comm) for pair in pairs]
        for mat in self.injections:
            mat.setVecType(vec_type)
        self._version: int | None = None  # of the finest level's data, as the others have them
        self.bounds = None

    @property
    def counts(self) -> list[int]:
        """Polytopes of each level over all ranks. Collective."""
        comm = self.fine.discretization.mesh.comm
        return comm.allreduce(np.array([o.discretization.polytopes.count for o in self.operators])).tolist()

    def update(self, u, t: float = 0.0, u_t=None, shift: float = 0.0) -> None:
        """Fill the matrices at a state of the finest level (PETSc vectors). Collective."""
        self._update_data()
        with self.access.read_state(u, u_t) as (x, x_t):
            states = self._on_cells(x)
            rates = [None] * len(states) if u_t is None else self._on_cells(x_t)
        for operator, matrix, state, rate in zip(self.operators, self.matrices, states, rates, strict=True):
            if operator.follows_solution:
                operator.restart()
            operator.fine.linearize(state, t, rate, shift)
            matrix.update()
        if self.bounds is not None:
            self.bounds.update()

    def _update_data(self) -> None:
        """Constants and auxiliary fields as the finest level has them now. Collective."""
        if self._version == self.fine.version:
            return
        self._version = self.fine.version
        for operator in self.operators:
            operator.set_constants(self.fine.constants)
            for name, values in self.fine.auxiliary_onto(operator.discretization):
                operator.set_auxiliary(name, *values)

    # States ----------------------------------------------------------------------------------------------

    def _on_cells(self, u) -> list:
        """Buffers [level] of a state's nodal values on the base cells, by the element that each level has there; zeros
        for linear physics.
        """
        if self.fine.discretization.physics.is_linear:
            return [operator.fine._zero for operator in self.operators]
        is_polytopic = self.fine.discretization.is_polytopic
        fine, nodal = (self.fine.fine, self.fine.expand(u)) if is_polytopic else (self.fine, u)
        given, found = fine.arrays.to_host(nodal, max(1, fine.dofmap.num_owned), name="states"), {}
        for coarse in (operator.fine for operator in self.operators):
            wanted = coarse.discretization.element
            if wanted.degree not in found:
                out = np.zeros(max(1, coarse.dofmap.num_owned))
                table = fine.discretization.element.tabulate(wanted.nodes, 0)[0]  # [coarse node, node]
                for here, there in zip(unknowns(fine.discretization), unknowns(coarse.discretization), strict=True):
                    out[there] = given[here] @ table.T
                found[wanted.degree] = fine.arrays.to_device(out, "states")
        return [found[operator.fine.discretization.element.degree] for operator in self.operators]


def _coarser(finest) -> list[PolytopicDG]:
    """Discretizations of the coarse levels. Collective."""
    mesh, comm = finest.mesh, finest.mesh.comm
    is_polytopic = finest.is_polytopic
    polytopes = finest.polytopes if is_polytopic else Polytopes.of_cells(mesh)
    found = []
    for degree in degrees_below(finest.largest if is_polytopic else finest.element.degree):
        found.append(_discretization(found[-1] if found else finest, polytopes, degree))
    total = comm.allreduce(polytopes.count)
    while total > FEW or not found:
        polytopes = coarsen(_with(mesh, polytopes), max(1, total >> mesh.dim))
        before, total = total, comm.allreduce(polytopes.count)
        if found and total > REDUCTION * before:
            break
        found.append(_discretization(found[-1] if found else finest, polytopes))
    return found


def degrees_below(degree: int) -> list[int]:
    """Degrees of the levels on the polytopes of the finest one: 4 has 2 and 1 below it, 6 has 3 and 1."""
    found = []
    while degree > DEGREE:
        degree = degree // 2 if degree > DIRECT else DEGREE
        found.append(degree)
    return found


def _with(mesh, polytopes: Polytopes):
    """The mesh with other polytopes; everything else is shared."""
    other = copy.copy(mesh)
    other.polytopes = polytopes
    return other


def _discretization(finer, polytopes: Polytopes, degree: int = DEGREE) -> PolytopicDG:
    degrees = polytopes.degrees
    low = polytopes if degrees is None else replace(polytopes, degrees=np.minimum(degrees, degree))
    options = replace(
        finer.options,
        backend="poly_gpu",
        kernel="auto",
        degree=min(degree, finer.options.degree),
        quadrature_degree=-1,
        sipg_kernel="split",
        poly_space="total",
    )
    return PolytopicDG(_with(finer.mesh, low), finer.physics, options, finer.limits, finer)


def _matrix(operator: PolytopicOperator, comm, vec_type: str) -> AssembledMatrix:
    owned = operator.dofmap.num_owned
    total = operator.discretization.mesh.comm.allreduce(owned)
    return AssembledMatrix(operator, (owned, total), comm, vec_type)


def injection(fine, coarse, comm) -> PETSc.Mat:
    """AIJ matrix [fine unknown, coarse unknown] that writes functions of a coarse PolytopicDG in the fine space.

    Collective.

    fine: a PolytopicDG whose polytopes lie each in one of `coarse`, with no lower degrees; or an InteriorPenalty of a
    degree that holds the functions. The matrix is then exact.
    """
    blocks = list((_box_blocks if fine.is_polytopic else _nodal_blocks)(fine, coarse))
    start, columns, values = _compressed(fine.dofmap.num_owned, blocks)
    first = int(coarse.dofmap.global_numbers[0]) if coarse.dofmap.num_owned else 0
    sizes = tuple((d.dofmap.num_owned, coarse.mesh.comm.allreduce(d.dofmap.num_owned)) for d in (fine, coarse))
    return csr.aij(sizes, 1, start, first + columns, comm, values)


def change_of_box(fine: np.ndarray, coarse: np.ndarray, degree: int) -> np.ndarray:
    """Matrix [item, axis, fine degree, coarse degree] of Legendre polynomials of one box in those of another.

    fine, coarse [item, 2, dim]: lower and upper corners. Column j holds the coefficients of φ_j(η), η the coordinate of
    the coarse box, in the φ_i(ξ) of the fine one; Gauss points integrate their products exactly.
    """
    xi, weight = np.polynomial.legendre.leggauss(degree + 1)
    line = exponents(1, degree)
    width = coarse[:, 1] - coarse[:, 0]
    scale = (fine[:, 1] - fine[:, 0]) / width
    shift = (fine.sum(axis=1) - coarse.sum(axis=1)) / width
    eta = scale[..., None] * xi + shift[..., None]
    here, there = tabulate(line, xi[:, None])[0], tabulate(line, eta[..., None])[0]
    found = np.einsum("q,qi,kdqj->kdij", weight / 2, here, there, optimize=True)
    return np.where(np.abs(found) < ZERO, 0.0, found)


# Blocks: rows [item, row], first column among the owned coarse unknowns [item], values [item, row, column] ------------


def _compressed(count: int, blocks: list) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """start [count + 1] of rows, and column and value [entry] of blocks without what is zero in all items; each row is
    in one of them."""
    entries, kept = np.zeros(count, np.int64), [values.any(axis=0) for *_, values in blocks]
    for (rows, *_), pattern in zip(blocks, kept, strict=True):
        entries[rows] = pattern.sum(axis=1)
    start = np.concatenate([[0], np.cumsum(entries)])
    columns, found = np.zeros(start[-1], np.int64), np.zeros(start[-1])
    for (rows, first, values), pattern in zip(blocks, kept, strict=True):
        row, column = np.nonzero(pattern)
        place = start[rows[:, row]] + (np.cumsum(pattern, axis=1) - 1)[row, column]
        columns[place] = first[:, None] + column
        found[place] = values[:, row, column]
    return start, columns, found


def _box_blocks(fine: PolytopicDG, coarse: PolytopicDG):
    """Blocks of a polytope's functions, one a component: products of changes of box along the axes."""
    above = fine.polytopes.parents(coarse.polytopes)
    boxes = [np.stack([d.numbering.lower, d.numbering.upper], axis=1) for d in (fine, coarse)]
    own = np.arange(fine.polytopes.count)
    lines = change_of_box(boxes[0][own], boxes[1][above], max(fine.largest, coarse.largest))
    sizes = (fine.numbering.sizes[own], coarse.numbering.sizes[above])
    for rows, cols in sorted(set(zip(*(s.tolist() for s in sizes), strict=True))):
        which = np.flatnonzero((sizes[0] == rows) & (sizes[1] == cols))
        block = _products(lines[which], fine.exponents[:rows], coarse.exponents[:cols])
        for c in range(fine.physics.num_components):
            first = fine.numbering.first[which] + c * rows
            yield first[:, None] + np.arange(rows), coarse.numbering.first[above[which]] + c * cols, block


def _products(lines: np.ndarray, fine: np.ndarray, coarse: np.ndarray) -> np.ndarray:
    """Blocks [item, fine function, coarse function] of changes of box [item, axis, degree, degree]."""
    block = np.ones((len(lines), len(fine), len(coarse)))
    for axis in range(fine.shape[1]):
        block *= lines[:, axis][:, fine[:, axis][:, None], coarse[:, axis]]
    return block


def _nodal_blocks(fine, coarse: PolytopicDG):
    """Blocks of a cell's nodes: the values of the coarse functions there."""
    of_cell, sizes = coarse.polytopes.of_cell, coarse.numbering.sizes
    x = coarse.box_coordinates(of_cell, element_nodes(fine.mesh, fine.element.nodes)[: len(of_cell)])
    table = tabulate(coarse.exponents, x)[0]  # [cell, node, function]
    for c, rows in enumerate(unknowns(fine)):
        for size in np.unique(sizes[of_cell]):
            which = np.flatnonzero(sizes[of_cell] == size)
            yield rows[which], coarse.numbering.first[of_cell[which]] + c * size, table[which, :, :size]


def unknowns(disc) -> list[np.ndarray]:
    """Place [cell, node] in a vector of nodal values of each component, nodes in basix' order."""
    return [
        disc.dofmap.cell_dofs[:, s.first_dof + c : s.first_dof + s.num_dofs : s.components]
        for s in disc.spaces
        for c in range(s.components)
    ]
