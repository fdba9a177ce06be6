"""A condensed scheme on a whole mesh in numpy and scipy: cell by cell with the oracle, no device."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
from condensed_functions import functions_of
from scipy.sparse.linalg import spsolve

from petsc_hdg.discretizations.condensed.oracle import CondensedOracle
from petsc_hdg.discretizations.dofmap import element_nodes
from petsc_hdg.reference import ReferenceElement, cell_quadrature, facet_quadrature


class NumpyTrace:
    """Trace system of a discretization whose mesh lies on one rank. Cells with the same edges may share a matrix.

    aux [row, cell] auxiliary rows.   uniform: the matrix depends on the Jacobian alone (constant coefficients).
    """

    def __init__(self, disc, aux=None, t: float = 0.0, uniform: bool = False):
        self.disc, self.oracle, self.t = disc, CondensedOracle(disc), t
        self.numbers = disc.dofmap.compact[disc.dofmap.cell_dofs]
        self.aux = np.zeros((disc.auxiliary.num_rows, disc.mesh.num_cells)) if aux is None else aux
        self.num_free = disc.dofmap.num_owned
        self.uniform, self._matrices = uniform, {}

    def essential(self) -> np.ndarray:
        """Trace [compact] that is zero but for the projection of Dirichlet data."""
        disc = self.disc
        out = np.zeros(disc.dofmap.num_owned + disc.dofmap.num_tail)
        projection, components = disc.projection(), disc.components
        rules = facet_quadrature(disc.mesh.cell, disc.projection_degree)[0]
        on_point, interpret = disc.constrained_components[1], disc.physics.interpreter(disc.dim)
        facets = disc.mesh.topology.entity[disc.dim - 1] + disc.mesh.topology.stratum[disc.dim - 1][0]
        for local, rule in enumerate(rules):
            points = facets[: disc.mesh.num_cells, local]
            cells = np.flatnonzero((on_point[points] >= 0).any(axis=1))
            x = element_nodes(disc.mesh, rule.points, cells)
            for row, cell in enumerate(cells):
                dofs = self._facet_dofs(cell, local)
                for c, condition in enumerate(on_point[points[cell]]):
                    if condition >= 0:
                        g = [interpret.pw_dirichlet(condition, None, self.t, point)[c] for point in x[row]]
                        out[dofs[c::components]] = projection @ g
        return out

    def _facet_dofs(self, cell: int, facet: int) -> np.ndarray:
        count = self.disc.spaces[0].element.num_facet_basis * self.disc.components
        return self.numbers[cell, facet * count : (facet + 1) * count]

    def matrix(self, cell: int, u, trace) -> np.ndarray:
        """Element matrix [dof, dof] at a state."""
        if not self.uniform:
            return self.oracle.matrix(cell, u, trace, self.aux[:, cell], None, self.t)
        geometry = self.disc.mesh.geometry
        nodes = geometry.nodes[geometry.cell_nodes[cell]]
        key = tuple(np.round((nodes[1:] - nodes[0]).ravel(), 12))
        if key not in self._matrices:
            self._matrices[key] = self.oracle.matrix(cell, u, trace, self.aux[:, cell], None, self.t)
        return self._matrices[key]

    def solve(self, max_it: int = 1, tolerance: float = 1e-12):
        """u [cell, dof] and the trace [compact] by Newton's iteration on both at once; one step if linear."""
        disc, n = self.disc, self.disc.num_eliminated
        trace, u = self.essential(), np.zeros((disc.mesh.num_cells, n))
        for _ in range(max_it):
            parts = [self._condensed(cell, u[cell], trace[self.numbers[cell]]) for cell in range(len(u))]
            step = np.zeros_like(trace)
            step[: self.num_free] = spsolve(*self._assembled(parts))
            for cell, (_, _, eliminated, start) in enumerate(parts):
                u[cell] += start + eliminated @ step[self.numbers[cell]]
            trace = trace + step
            if np.abs(step).max() < tolerance * np.abs(trace).max():
                break
        return u, trace

    def _condensed(self, cell: int, u, trace):
        """K, condensed residual, U and the step of u that the residual alone asks for."""
        n = self.disc.num_eliminated
        e = self.matrix(cell, u, trace)
        r = self.oracle.residual(cell, u, trace, self.aux[:, cell], None, self.t)
        solved = -np.linalg.solve(e[:n, :n], np.column_stack([e[:n, n:], r[:n]]))
        reduced = np.column_stack([e[n:, n:], r[n:]]) + e[n:, :n] @ solved
        return reduced[:, :-1], reduced[:, -1], solved[:, :-1], solved[:, -1]

    def _assembled(self, parts):
        """Matrix and right-hand side of the free trace."""
        count, m = self.disc.dofmap.num_owned + self.disc.dofmap.num_tail, self.numbers.shape[1]
        rows, columns = np.repeat(self.numbers, m, axis=1).ravel(), np.tile(self.numbers, (1, m)).ravel()
        values = np.concatenate([k.ravel() for k, *_ in parts])
        right = np.bincount(self.numbers.ravel(), np.concatenate([r for _, r, *_ in parts]), minlength=count)
        free = self.num_free
        matrix = sparse.coo_matrix((values, (rows, columns)), shape=(count, count)).tocsr()[:free, :free]
        return matrix.tocsc(), -right[:free]

    def solve_and_errors(self, degree: int, exact) -> dict[str, float]:
        """`errors` of the solution of a linear problem."""
        return self.errors(*self.solve(), degree, exact)

    def errors(self, u: np.ndarray, trace: np.ndarray, degree: int, exact) -> dict[str, float]:
        """L2 norms of u - exact and q - ∇exact by a rule of a degree, largest difference of u at its points.

        exact: function of x [..., dim] that returns u [...] and its gradient [..., dim]; one component.
        """
        disc, functions = self.disc, functions_of(self.disc)
        rule, nodes = cell_quadrature(disc.mesh.cell, degree), disc.mesh.geometry.nodes
        nodes = nodes[disc.mesh.geometry.cell_nodes[: disc.mesh.num_cells]]
        table = ReferenceElement(disc.mesh.cell, disc.mesh.geometry.degree).tabulate(rule.points)
        jacobians = np.einsum("rqn,cnd->cqdr", table[1:], nodes)
        weights = rule.weights * np.abs(np.linalg.det(jacobians))
        coefficients = np.concatenate([u, trace[self.numbers]], axis=1)
        q = np.einsum("qrj,cj->cqr", functions.gradients(rule.points), coefficients)
        q = np.linalg.solve(np.swapaxes(jacobians, 2, 3), q[..., None])[..., 0]
        right = exact(np.einsum("qn,cnd->cqd", table[0], nodes))
        du = u @ functions.values(disc.cell_element, rule.points).T - right[0]
        squares = (weights * du**2).sum(), (weights * ((q - right[1]) ** 2).sum(axis=-1)).sum()
        return {"u": float(np.sqrt(squares[0])), "q": float(np.sqrt(squares[1])), "max": float(np.abs(du).max())}
