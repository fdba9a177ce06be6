"""The functions of coarse polytopes among those of a finer discontinuous space, as PETSc matrices."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ...discretizations import PolytopicDG
from ...discretizations.dofmap import element_nodes
from ...discretizations.legendre import exponents, tabulate
from ...petsc import csr


def injection(fine, coarse, comm) -> PETSc.Mat:
    """AIJ matrix [fine unknown, coarse unknown] that writes functions of a coarse PolytopicDG in the fine space.

    Collective.

    fine: a PolytopicDG whose polytopes lie each in one of `coarse`, with no lower degrees; or an InteriorPenalty of a
    degree that holds the functions. The matrix is then exact.
    """
    start, columns, values = _blocks(fine, coarse)(fine, coarse)
    first = int(coarse.dofmap.global_numbers[0]) if coarse.dofmap.num_owned else 0
    sizes = tuple((d.dofmap.num_owned, coarse.mesh.comm.allreduce(d.dofmap.num_owned)) for d in (fine, coarse))
    return csr.aij(sizes, 1, start, first + columns, comm, values)


def _blocks(fine, coarse: PolytopicDG):
    if not fine.is_polytopic:
        return _nodal_blocks
    same = np.array_equal(fine.polytopes.of_cell, coarse.polytopes.of_cell)
    return _first_functions if same and fine.space == coarse.space else _box_blocks


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
    return np.einsum("q,qi,kdqj->kdij", weight / 2, here, there, optimize=True)


# Rows of compressed matrices: start [row + 1]; columns among the owned coarse unknowns and values [entry] -------------


def _box_blocks(fine: PolytopicDG, coarse: PolytopicDG):
    """Rows of a polytope's functions: one dense block a component, the product of changes of box along the axes."""
    components, above = fine.physics.num_components, fine.polytopes.parents(coarse.polytopes)
    boxes = [np.stack([d.numbering.lower, d.numbering.upper], axis=1) for d in (fine, coarse)]
    own = np.arange(fine.polytopes.count)
    lines = change_of_box(boxes[0][own], boxes[1][above], max(fine.largest, coarse.largest))
    sizes = (fine.numbering.sizes[own], coarse.numbering.sizes[above])
    entries = np.repeat(sizes[1], sizes[0] * components)
    start = np.concatenate([[0], np.cumsum(entries)])
    columns, values = np.zeros(start[-1], np.int64), np.zeros(start[-1])
    for rows, cols in sorted(set(zip(*(s.tolist() for s in sizes), strict=True))):
        which = np.flatnonzero((sizes[0] == rows) & (sizes[1] == cols))
        block = _products(lines[which], fine.exponents[:rows], coarse.exponents[:cols])
        for c in range(components):
            at = start[fine.numbering.first[which] + c * rows][:, None] + np.arange(rows * cols)
            column = coarse.numbering.first[above[which]] + c * cols
            columns[at] = np.tile(column[:, None] + np.arange(cols), rows)
            values[at] = block.reshape(len(which), -1)
    return start, columns, values


def _first_functions(fine: PolytopicDG, coarse: PolytopicDG):
    """Rows of functions on the same polytopes: the coarse ones are the first of the fine ones."""
    of_fine, of_coarse = (np.diff(d.numbering.first[: d.polytopes.count + 1]) for d in (fine, coarse))
    components = fine.physics.num_components
    blocks = [np.repeat(sizes // components, components) for sizes in (of_fine, of_coarse)]
    ends = [np.cumsum(sizes) for sizes in blocks]
    function = np.arange(fine.dofmap.num_owned) - np.repeat(ends[0] - blocks[0], blocks[0])
    kept = function < np.repeat(blocks[1], blocks[0])
    columns = (function + np.repeat(ends[1] - blocks[1], blocks[0]))[kept]
    return np.concatenate([[0], np.cumsum(kept)]), columns, np.ones(len(columns))


def _products(lines: np.ndarray, fine: np.ndarray, coarse: np.ndarray) -> np.ndarray:
    """Blocks [item, fine function, coarse function] of changes of box [item, axis, degree, degree]."""
    block = np.ones((len(lines), len(fine), len(coarse)))
    for axis in range(fine.shape[1]):
        block *= lines[:, axis][:, fine[:, axis][:, None], coarse[:, axis]]
    return block


def _nodal_blocks(fine, coarse: PolytopicDG):
    """Rows of nodes: the values of the coarse functions there."""
    of_cell, sizes = coarse.polytopes.of_cell, coarse.numbering.sizes
    x = coarse.box_coordinates(of_cell, element_nodes(fine.mesh, fine.element.nodes)[: len(of_cell)])
    table = tabulate(coarse.exponents, x)[0]  # [cell, node, function]
    numbers = unknowns(fine)
    entries = np.zeros(fine.dofmap.num_owned, np.int64)
    for rows in numbers:
        entries[rows] = sizes[of_cell][:, None]
    start = np.concatenate([[0], np.cumsum(entries)])
    columns, values = np.zeros(start[-1], np.int64), np.zeros(start[-1])
    for c, rows in enumerate(numbers):
        for size in np.unique(sizes[of_cell]):
            which = np.flatnonzero(sizes[of_cell] == size)
            at = start[rows[which]][..., None] + np.arange(size)
            column = coarse.numbering.first[of_cell[which]] + c * size
            columns[at] = column[:, None, None] + np.arange(size)
            values[at] = table[which, :, :size]
    return start, columns, values


def unknowns(disc) -> list[np.ndarray]:
    """Place [cell, node] in a vector of nodal values of each component, nodes in basix' order."""
    return [
        disc.dofmap.cell_dofs[:, s.first_dof + c : s.first_dof + s.num_dofs : s.components]
        for s in disc.spaces
        for c in range(s.components)
    ]
