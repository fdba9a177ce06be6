"""Plain numpy evaluation of a condensed scheme (HDG, or CG without its interior functions) on a few cells.

The oracle that every kernel is compared with: it uses the reference elements and the interpreter of the physics, not
the generated tables or text.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..errors import SolveError
from ..reference import ReferenceElement, cell_quadrature, facet_quadrature
from .condensed_tables import LagrangeFunctions, LiftedFunctions, MixedFunctions
from .trace_element import TraceElement


class CondensedOracle:
    """Element vectors and matrices of the cells of a condensed discretization, dof = function * component.

    interior [dof] u of one cell; trace [dof] û of its facets (CG: values of the functions that are not interior);
    aux [row]; constants [constant].
    """

    def __init__(self, discretization, mixed: bool = False):
        disc = self.discretization = discretization
        self.interpreter = disc.physics.interpreter(disc.dim)
        self.components = disc.physics.num_components
        self.functions = _functions(disc, mixed)
        self.num_eliminated = self.functions.num_interior * self.components

    @cached_property
    def tables(self):
        """Functions at the points of the rules."""
        return self.functions.tables(self.discretization.quadrature_degree)

    # Element vectors and matrices ------------------------------------------------------------------------

    def residual(self, cell: int, interior, trace, aux, constants, t=0.0) -> np.ndarray:
        """Element vector [interior dof, then trace dof]."""
        return self.vector(cell, np.concatenate([interior, trace]), aux, constants, t)

    def vector(self, cell: int, state, aux, constants, t=0.0) -> np.ndarray:
        """Element vector [dof] for a state [dof] of all functions."""
        z = np.asarray(state).reshape(-1, self.components)
        out = np.zeros(z.shape)
        for p in self._cell_points(cell, aux):
            f0, f1 = self.interpreter.pw_residual(*p.state(z), p.a, p.a_x, t, p.x, constants)
            out += p.weight * (np.outer(p.value, f0) + p.gradient.T @ f1.T)
        for p in self._jump_points(cell, aux):
            out += p.weight * np.outer(p.jump, self.tau(p, t, constants) * (p.jump @ z))
        for condition, p in self._natural_points(cell, aux):
            f0 = self.interpreter.pw_boundary(condition, *p.state(z), p.a, p.a_x, t, p.x, p.normal, constants)
            out += p.weight * np.outer(p.value, f0)
        return out.ravel()

    def matrix(self, cell: int, interior, trace, aux, constants, t=0.0) -> np.ndarray:
        """Derivative [dof, dof] of `residual`."""
        return self.derivative(cell, np.concatenate([interior, trace]), aux, constants, t)

    def derivative(self, cell: int, state, aux, constants, t=0.0) -> np.ndarray:
        """Derivative [dof, dof] of `vector`."""
        z = np.asarray(state).reshape(-1, self.components)
        out = np.zeros((*z.shape, *z.shape))
        for p in self._cell_points(cell, aux):
            g = self.interpreter.g_blocks(*p.state(z), p.a, p.a_x, t, 0.0, p.x, constants)
            out += p.weight * np.einsum("ai,ceab,bj->icje", p.basis, _joined(*g), p.basis, optimize=True)
        eye = np.eye(self.components)
        for p in self._jump_points(cell, aux):
            tau = self.tau(p, t, constants)
            out += p.weight * np.einsum("i,c,ce,j->icje", p.jump, tau, eye, p.jump, optimize=True)
        for condition, p in self._natural_points(cell, aux):
            slopes = self._boundary_slopes(condition, p, z, t, constants)
            out += p.weight * np.einsum("i,cae,aj->icje", p.value, slopes, p.basis, optimize=True)
        return out.reshape(z.size, z.size)

    def _boundary_slopes(self, condition: int, p, z, t, constants) -> np.ndarray:
        """Derivative [component, value or direction, trial component] of a natural condition."""
        count, dim = self.components, self.discretization.dim
        out = np.zeros((count, 1 + dim, count))
        for e in range(count):
            for a in range(1 + dim):
                du, du_x = np.zeros(count), np.zeros((count, dim))
                if a == 0:
                    du[e] = 1.0
                else:
                    du_x[e, a - 1] = 1.0
                state = (*p.state(z), du, None, du_x, p.a, p.a_x, t, 0.0, p.x, p.normal)
                out[:, a, e] = self.interpreter.pw_boundary_jacobian(condition, *state, constants)
        return out

    def tau(self, p, t, constants) -> np.ndarray:
        """Stabilization [component] at a point of a facet: the option, what the physics gives, or by diffusivity.

        The last is |∂f1_c·n along n| / L + |∂f1_c·n along 1| of component c at u = 0 and q = 0, L being the largest
        extent of the mesh; 1 where that is no positive number.
        """
        given = self.discretization.options.hdg_tau
        if is_number(given):
            return np.full(self.components, float(given))
        if getattr(self.discretization.physics, "stabilization", None) is not None:
            return self.interpreter.pw_stabilization(p.a, p.a_x, t, p.x, p.normal, constants)
        g2, g3 = self.interpreter.g_blocks(None, None, None, p.a, p.a_x, t, 0.0, p.x, constants)[2:]
        diffusion = np.abs(np.einsum("ccde,d,e->c", g3, p.normal, p.normal)) / self.discretization.length
        found = diffusion + np.abs(np.einsum("ccd,d->c", g2, p.normal))
        return np.where(np.isfinite(found) & (found > 0), found, 1.0)

    # Condensation ----------------------------------------------------------------------------------------

    def condense(self, cell: int, interior, trace, aux, constants, t=0.0):
        """K [M, M], U [N, M] and the condensed residual [M] at a state; N interior, M trace degrees of freedom.

        K = E_tt - E_ti E_ii⁻¹ E_it,  U = -E_ii⁻¹ E_it,  r = R_t - E_ti E_ii⁻¹ R_i (King et al. 2014, eq. 15).
        """
        n = self.num_eliminated
        matrix = self.matrix(cell, interior, trace, aux, constants, t)
        vector = self.residual(cell, interior, trace, aux, constants, t)
        eliminated = -np.linalg.solve(matrix[:n, :n], np.column_stack([matrix[:n, n:], vector[:n]]))
        reduced = np.column_stack([matrix[n:, n:], vector[n:]]) + matrix[n:, :n] @ eliminated
        return reduced[:, :-1], eliminated[:, :-1], reduced[:, -1]

    def solve_local(self, cell: int, trace, guess, aux, constants, t=0.0, max_it=25, rtol=1e-13) -> np.ndarray:
        """u [N] of the local problem R_i(u, û) = 0 by Newton's iteration. Raises SolveError if it does not converge."""
        n, u = self.num_eliminated, np.array(guess, dtype=float)
        first = None
        for _ in range(max_it + 1):
            vector = self.residual(cell, u, trace, aux, constants, t)
            norm = np.linalg.norm(vector[:n])
            first = norm if first is None else first
            if norm <= rtol * max(first, np.linalg.norm(vector), 1e-300):
                return u
            matrix = self.matrix(cell, u, trace, aux, constants, t)
            u = u - np.linalg.solve(matrix[:n, :n], vector[:n])
        raise SolveError(f"the local problem of cell {cell} was not solved in {max_it} Newton iterations")

    def gradient(self, cell: int, interior, trace, points: np.ndarray) -> np.ndarray:
        """Physical gradient q [point, component, dim] at points of the reference cell."""
        z = np.concatenate([interior, trace]).reshape(-1, self.components)
        jacobians = self._geometry(cell, points)[1]
        return np.einsum("qsr,qrj,jc->qcs", _inverse_transposed(jacobians), self.functions.gradients(points), z)

    # Points ----------------------------------------------------------------------------------------------

    def _geometry(self, cell: int, points: np.ndarray):
        """Coordinates [point, dim] and Jacobians [point, physical, reference] of a cell."""
        geometry = self.discretization.mesh.geometry
        table = ReferenceElement(self.discretization.mesh.cell, geometry.degree).tabulate(points)
        nodes = geometry.nodes[geometry.cell_nodes[cell]]
        return table[0] @ nodes, np.einsum("rqb,bs->qsr", table[1:], nodes)

    def _cell_points(self, cell: int, aux):
        rule = cell_quadrature(self.discretization.mesh.cell, self.discretization.quadrature_degree)
        places = self._places(cell, rule.points, aux)
        for q, (x, jacobian, a, a_x) in enumerate(places):
            weight = rule.weights[q] * abs(np.linalg.det(jacobian))
            yield _Point(x, weight, self.tables.value[q], self.tables.gradient[q], jacobian, a, a_x)

    def _facet_points(self, cell: int, facet: int, aux):
        rules, normals = facet_quadrature(self.discretization.mesh.cell, self.discretization.quadrature_degree)
        tables = self.tables
        for q, (x, jacobian, a, a_x) in enumerate(self._places(cell, rules[facet].points, aux)):
            normal = np.linalg.solve(jacobian.T, normals[facet])
            length = np.linalg.norm(normal)
            weight = rules[facet].weights[q] * abs(np.linalg.det(jacobian)) * length
            p = _Point(x, weight, tables.trace[facet, q], tables.trace_gradient[facet, q], jacobian, a, a_x)
            p.normal, p.jump = normal / length, None if tables.jump is None else tables.jump[facet, q]
            yield p

    def _jump_points(self, cell: int, aux):
        """Points of all facets, if the scheme has jumps."""
        for facet in range(0 if self.tables.jump is None else len(self.tables.jump)):
            yield from self._facet_points(cell, facet, aux)

    def _natural_points(self, cell: int, aux):
        """(condition, point) of the facets of the cell that have one."""
        for owner, facet, condition in self.discretization.natural_facets.T:
            if owner == cell:
                for p in self._facet_points(cell, facet, aux):
                    yield condition, p

    def _places(self, cell: int, points: np.ndarray, aux):
        """x [dim], Jacobian, auxiliary values [component] and gradients [component, dim] at each point."""
        auxiliary, (x, jacobians) = self.discretization.auxiliary, self._geometry(cell, points)
        table = auxiliary.element.tabulate(points) if auxiliary.num_components else None
        for q in range(len(points)):
            a, a_x = np.zeros(auxiliary.num_components), np.zeros((auxiliary.num_components, len(x[q])))
            for k in range(auxiliary.num_components):
                rows = aux[auxiliary.starts[k] : auxiliary.starts[k + 1]]
                if len(rows) == 1:
                    a[k] = rows[0]
                else:
                    a[k], a_x[k] = table[0, q] @ rows, np.linalg.solve(jacobians[q].T, table[1:, q] @ rows)
            yield x[q], jacobians[q], a, a_x


class _Point:
    """A point of a cell or facet: weight with its measure, functions, auxiliary values.

    value [function], gradient [dim, function] in the physical frame, basis [1 + dim, function] both.
    """

    normal = jump = None

    def __init__(self, x, weight, value, gradient, jacobian, a, a_x):
        self.x, self.weight, self.value, self.a, self.a_x = x, weight, value, a, a_x
        self.gradient = np.linalg.solve(jacobian.T, gradient)
        self.basis = np.vstack([value, self.gradient])

    def state(self, z: np.ndarray) -> tuple[np.ndarray, None, np.ndarray]:
        """u [component], no rate, gradient [component, dim] of coefficients [function, component]."""
        return self.value @ z, None, (self.gradient @ z).T


def is_number(text) -> bool:
    """Whether an option's value is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _functions(disc, mixed: bool):
    element, k = disc.spaces[0].element, disc.options.degree
    if not isinstance(element, TraceElement):
        return LagrangeFunctions(disc.mesh.cell, k)
    enriched = disc.mesh.cell in ("quadrilateral", "hexahedron") and disc.options.hdg_enrich
    return (MixedFunctions if mixed else LiftedFunctions)(disc.mesh.cell, k, k + 1 if enriched else k)


def _joined(g0, g1, g2, g3) -> np.ndarray:
    """PETSc's blocks as one [test component, trial component, 1 + dim, 1 + dim]."""
    top = np.concatenate([g0[:, :, None, None], g1[:, :, None, :]], axis=3)
    return np.concatenate([top, np.concatenate([g2[:, :, :, None], g3], axis=3)], axis=2)


def _inverse_transposed(jacobians: np.ndarray) -> np.ndarray:
    return np.swapaxes(np.linalg.inv(jacobians), 1, 2)
