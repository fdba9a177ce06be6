"""Fast diagonalization of interior penalty for -Δu on n × n squares, as a preconditioner of PETSc for the tests.

There the matrix is A ⊗ M + M ⊗ A with A, M of one line of cells (Lynch, Rice and Thomas 1964), so products with our
kernels and this inverse solve any size in a few steps.
"""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc
from scipy.linalg import eigh

from petsc_hdg.discretizations.dofmap import element_nodes
from petsc_hdg.reference import ReferenceElement, gauss_lobatto


class FastDiagonal:
    """PETSc's PC context of a problem on n × n squares whose penalty is `penalty` on all facets."""

    def __init__(self, problem, n: int, penalty: float):
        self.values, self.vectors = eigh(*line_matrices(n, problem.discretization.element.degree, penalty))
        self.places = grid_places(problem, n)

    def apply(self, pc, x: PETSc.Vec, y: PETSc.Vec) -> None:
        """y = A⁻¹ x."""
        size = len(self.values)
        grid = np.zeros(size * size)
        grid[self.places] = x.getArray(readonly=True)
        modes = self.vectors.T @ grid.reshape(size, size) @ self.vectors
        modes /= self.values[:, None] + self.values
        y.setArray((self.vectors @ modes @ self.vectors.T).ravel()[self.places])


def line_matrices(n: int, degree: int, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """A and the diagonal M [row, row] of interior penalty on n equal intervals of (0, 1), Nitsche at both ends."""
    points, weights = gauss_lobatto(degree)
    slopes, size, h = derivatives(points), degree + 1, 1 / n
    matrix, ends = np.zeros((n * size, n * size)), np.eye(size)[[0, -1]]
    normal = slopes[[0, -1]] / h  # derivative at both ends [end, node]
    for c in range(n):
        own = slice(c * size, (c + 1) * size)
        matrix[own, own] += slopes.T @ np.diag(weights) @ slopes / h
        if c:
            both = slice((c - 1) * size, (c + 1) * size)
            jump, mean = np.concatenate([ends[1], -ends[0]]), 0.5 * np.concatenate([normal[1], normal[0]])
            matrix[both, both] += penalty * np.outer(jump, jump) - np.outer(jump, mean) - np.outer(mean, jump)
    for own, value, slope in ((slice(0, size), ends[0], -normal[0]), (slice(-size, None), ends[1], normal[1])):
        matrix[own, own] += penalty * np.outer(value, value) - np.outer(value, slope) - np.outer(slope, value)
    return matrix, np.diag(np.tile(weights * h, n))


def derivatives(points: np.ndarray) -> np.ndarray:
    """Derivatives [point, basis] of the Lagrange polynomials through points [point]."""
    element = ReferenceElement("quadrilateral", len(points) - 1)
    line = np.column_stack([points, np.zeros_like(points)])
    table = element.tabulate(line)
    on_line = [np.argmin(np.abs(element.nodes - place).sum(axis=1)) for place in line]
    return table[1][:, on_line]


def grid_places(problem, n: int) -> np.ndarray:
    """Place of each unknown in the grid [node along x, node along y], flat; nodes count cell by cell."""
    disc = problem.discretization
    x = element_nodes(problem.mesh, disc.element.nodes)
    cell = np.floor(x.mean(axis=1) * n).astype(int)[:, None]
    nodes = gauss_lobatto(disc.element.degree)[0]
    node = np.argmin(np.abs((x * n - cell)[..., None] - nodes), axis=3)
    place = (cell * len(nodes) + node) @ [n * len(nodes), 1]
    out = np.zeros(disc.dofmap.num_owned, dtype=int)
    out[disc.dofmap.cell_dofs] = place
    return out
