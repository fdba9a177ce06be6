"""King's problem by numpy alone: LDG-H for ∇²u - u = f on squares cut in two, τ = 1, u = sin 2πx sin 2πy.

Independent of petsc_hdg but for basix' polynomials. Load and norm are integrated by a rule that is given: an exact
one, or that of Nektar++, P + 2 Gauss-Lobatto times P + 1 Gauss-Radau points on the square that collapses to the
triangle. The printed errors of King et al. 2014, table 1, are those of the latter, collapsed at the right angle of one
triangle of each square and at another corner of the other.
"""

from __future__ import annotations

import basix
import numpy as np
from numpy.polynomial.legendre import Legendre, leggauss
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import splu
from scipy.special import roots_jacobi

WAVE, TAU, REACTION = 2 * np.pi, 1.0, 1.0
FACETS = ((1, 2), (0, 2), (0, 1))  # corners of the facet opposite to each corner
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


def exact(x: np.ndarray) -> np.ndarray:
    """The solution at places [..., 2]."""
    return np.sin(WAVE * x[..., 0]) * np.sin(WAVE * x[..., 1])


# Rules: points [q, 2] on the triangle of CORNERS, weights [q] ---------------------------------------------------------


def exact_rule(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points that are exact to a degree."""
    return basix.make_quadrature(basix.CellType.triangle, degree)


def collapsed_rule(order: int, corner: int) -> tuple[np.ndarray, np.ndarray]:
    """The points of Nektar++ for an order, the square's upper side collapsed to a corner of the triangle."""
    a, wa = _lobatto(order + 2)
    b, wb = _radau(order + 1)
    A, B = (x.ravel() for x in np.meshgrid(a, b, indexing="ij"))
    x, y = (1 + A) * (1 - B) / 4, (1 + B) / 2
    barycentric = np.roll(np.stack([1 - x - y, x, y], axis=1), corner - 2, axis=1)
    return barycentric[:, 1:], np.outer(wa, wb).ravel() / 8


def _lobatto(count: int):
    x = np.r_[-1, roots_jacobi(count - 2, 1, 1)[0], 1] if count > 2 else np.array([-1.0, 1.0])
    return x, 2 / (count * (count - 1) * Legendre.basis(count - 1)(x) ** 2)


def _radau(count: int):
    """Points with -1 among them, for the weight 1 - x."""
    x = np.r_[-1, roots_jacobi(count - 1, 1, 1)[0]] if count > 1 else np.array([-1.0])
    g, w = roots_jacobi(count + 1, 1, 0)
    basis = [Legendre.basis(k) for k in range(count)]
    return x, np.linalg.solve(np.array([f(x) for f in basis]), np.array([w @ f(g) for f in basis]))


# The method ----------------------------------------------------------------------------------------------------------


class Shape:
    """One of the two triangles of all squares: matrices of u, q = ∇u and the trace.

    cells [cell, 3] corners, the right angle first;  points [node, 2];  edges [cell, 3] numbers of facets
    """

    def __init__(self, order: int, cells, points, edges):
        self.element = basix.create_element(
            basix.ElementFamily.P, basix.CellType.triangle, order, basix.LagrangeVariant.legendre, discontinuous=True
        )
        self.corners = points[cells]
        self.jacobian = np.stack([self.corners[0, k] - self.corners[0, 0] for k in (1, 2)], axis=1)
        self.measure, m = abs(np.linalg.det(self.jacobian)), order + 1
        self.dofs = (edges[:, :, None] * m + np.arange(m)).reshape(len(cells), -1)
        q, w = exact_rule(2 * order + 2)
        values = self.element.tabulate(1, q)[..., 0]
        phi, slopes = values[0], np.einsum("rqb,rd->dqb", values[1:], np.linalg.inv(self.jacobian))
        mass = np.einsum("q,qa,qb->ab", w, phi, phi) * self.measure
        D = np.einsum("q,dqa,qb->dab", w, slopes, phi) * self.measure
        n = self.size = len(mass)
        E, normal = np.zeros((3, n, n)), np.zeros((3, n, 3 * m))  # with n_x, n_y and τ
        trace = np.zeros(3 * m)
        for facet, length, direction, basis, along, weights in self._facets(order, cells[0]):
            factor = np.array([*direction, TAU])[:, None, None]
            E += factor * np.einsum("q,qa,qb->ab", weights, basis, basis)
            columns = slice(facet * m, (facet + 1) * m)
            normal[:, :, columns] = factor * np.einsum("q,qa,qk->ak", weights, basis, along)
            trace[columns] = TAU * length
        zero = np.zeros((n, n))
        local = np.block([[mass, zero, D[0]], [zero, mass, D[1]], [D[0] - E[0], D[1] - E[1], REACTION * mass + E[2]]])
        self.inverse, self.lift = np.linalg.inv(local), normal.reshape(3 * n, -1)
        self.flux = np.concatenate([normal[0], normal[1], -normal[2]]).T  # q·n - τ u against the trace
        self.matrix = -(self.flux @ self.inverse @ self.lift + np.diag(trace))

    def _facets(self, order: int, cell):
        """Of each facet: place, length, outward normal, functions and trace functions at points, weights."""
        g, w = leggauss(order + 2)
        along = np.stack([Legendre.basis(k)(g) * np.sqrt(2 * k + 1) for k in range(order + 1)], axis=1)
        for facet, (a, b) in enumerate(FACETS):
            side = self.corners[0, b] - self.corners[0, a]
            length = np.hypot(*side)
            direction = np.array([side[1], -side[0]]) / length
            direction *= -np.sign(direction @ (self.corners[0, facet] - self.corners[0, a]))
            first, last = (a, b) if cell[a] < cell[b] else (b, a)
            places = CORNERS[first] + (g[:, None] + 1) / 2 * (CORNERS[last] - CORNERS[first])
            yield facet, length, direction, self.element.tabulate(0, places)[0, :, :, 0], along, w / 2 * length

    def at(self, rule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Functions [q, n] and places [cell, q, 2] at the points of a rule, and its weights."""
        points, weights = rule
        return self.element.tabulate(0, points)[0, :, :, 0], self.corners[:, :1] + points @ self.jacobian.T, weights

    def load(self, rule) -> np.ndarray:
        """Right-hand side [cell, 3 n]."""
        phi, x, w = self.at(rule)
        found = np.zeros((len(x), 3 * self.size))
        found[:, 2 * self.size :] = np.einsum("q,cq,qa->ca", w, (REACTION + 2 * WAVE**2) * exact(x), phi) * self.measure
        return found


def shapes(n: int, order: int) -> tuple[list[Shape], np.ndarray]:
    """Both triangles of n × n squares, and whether each facet is on the boundary."""
    i, j = (k.ravel() for k in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
    grid = np.stack(np.meshgrid(np.arange(n + 1) / n, np.arange(n + 1) / n, indexing="ij"), axis=-1).reshape(-1, 2)
    node = lambda a, b: a * (n + 1) + b  # noqa: E731
    lower = np.stack([node(i, j), node(i + 1, j), node(i, j + 1)], axis=1)
    upper = np.stack([node(i + 1, j + 1), node(i, j + 1), node(i + 1, j)], axis=1)
    pairs = np.sort(np.concatenate([c[:, np.array(FACETS)].reshape(-1, 2) for c in (lower, upper)]), axis=1)
    _, edges, count = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    edges = edges.reshape(2, -1, 3)
    return [Shape(order, c, grid, e) for c, e in zip((lower, upper), edges, strict=True)], count == 1


def solve(n: int, order: int, load) -> tuple[list[Shape], list[np.ndarray]]:
    """The two triangles, and u [cell, n] on each. load: a rule for each triangle."""
    found, boundary = shapes(n, order)
    rows, columns, values, sources = [], [], [], []
    right = np.zeros(len(boundary) * (order + 1))
    for shape, rule in zip(found, load, strict=True):
        size = shape.dofs.shape[1]
        rows.append(np.repeat(shape.dofs, size, axis=1).ravel())
        columns.append(np.tile(shape.dofs, (1, size)).ravel())
        values.append(np.tile(shape.matrix.ravel(), len(shape.dofs)))
        sources.append(shape.load(rule))
        np.add.at(right, shape.dofs, sources[-1] @ (shape.flux @ shape.inverse).T)
    index = np.concatenate(rows), np.concatenate(columns)
    matrix = coo_matrix((np.concatenate(values), index), (len(right), len(right))).tocsc()
    free = np.flatnonzero(~np.repeat(boundary, order + 1))
    trace = np.zeros(len(right))
    trace[free] = splu(matrix[free][:, free]).solve(right[free])
    states = [(f + trace[s.dofs] @ s.lift.T) @ s.inverse.T for s, f in zip(found, sources, strict=True)]
    return found, [state[:, 2 * s.size :] for s, state in zip(found, states, strict=True)]


def norms(found: list[Shape], u: list[np.ndarray], rules) -> tuple[float, float]:
    """L2 by a rule for each triangle, and the largest error at its points."""
    squares, largest = 0.0, 0.0
    for shape, values, rule in zip(found, u, rules, strict=True):
        phi, x, w = shape.at(rule)
        error = values @ phi.T - exact(x)
        squares += float((error**2 @ w).sum()) * shape.measure
        largest = max(largest, float(np.abs(error).max()))
    return squares**0.5, largest


def errors(n: int, order: int) -> dict[str, float]:
    """L2 of an exact load and norm, and L2 and largest error of Nektar's rule for load and norm."""
    fine = [exact_rule(2 * order + 8)] * 2
    nektar = [collapsed_rule(order, 0), collapsed_rule(order, 1)]
    l2, _ = norms(*solve(n, order, fine), fine)
    theirs, largest = norms(*solve(n, order, nektar), nektar)
    return {"L2": l2, "nektar_L2": theirs, "nektar_Linf": largest}


if __name__ == "__main__":
    for order in (1, 2, 3, 4):
        print(order, errors(40, order))
