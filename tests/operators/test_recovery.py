"""Recovery kernels against plain numpy: gradient, u*, errors and fluxes of a given state, straight and curved cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from condensed_functions import functions_of
from given_state import GivenState
from petsc4py import PETSc
from sample_meshes import SHAPES, box_mesh

from petsc_hdg.discretizations.condensed.cg import CondensedCG
from petsc_hdg.discretizations.condensed.hdg import HybridizedDG
from petsc_hdg.discretizations.condensed.oracle import CondensedOracle
from petsc_hdg.discretizations.dofmap import dof_nodes, element_nodes
from petsc_hdg.discretizations.integral_specs import error_rule
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.mesh import Mesh
from petsc_hdg.operators.condensed.check import given_stabilization
from petsc_hdg.operators.condensed.recovery import Recovery
from petsc_hdg.options import Options
from petsc_hdg.physics import Auxiliary, Dirichlet, Physics
from petsc_hdg.reference import ReferenceElement

MESHES = Path(__file__).parents[1] / "meshes"
CURVED = {"triangle": "disk_tri", "quadrilateral": "disk_quad", "tetrahedron": "ball_tet", "hexahedron": "ball_hex"}
CASES = [(cell, k, False) for cell in SHAPES for k in (0, 2)] + [("triangle", 5, False), ("quadrilateral", 4, False)]
CASES += [(cell, 2 if cell in ("triangle", "quadrilateral") else 1, True) for cell in SHAPES]
PARALLELEPIPEDS = [("quadrilateral", 3), ("hexahedron", 1)]
MOST_CELLS = 12
TOLERANCE = 2e-12


def coupled() -> Physics:
    """Two nonlinear components, auxiliary fields constant in the cell and nodal, a constant, an exact solution."""
    return Physics(
        {"v": 2},
        f0="f0[0] = u[0]*u[1] - beta*x[0]; f0[1] = a[0]*u[0] + u_x[dim + 1];",
        f1="""
            PetscReal k = 1 + u[0]*u[0];
            for (d = 0; d < dim; ++d) { f1[d] = k*a[0]*u_x[d] + u[1]*x[d]; f1[dim + d] = (a[1] + 1)*u_x[dim + d]; }
        """,
        auxiliary={"region": Auxiliary(1, "cell"), "heat": Auxiliary(1, "nodal")},
        constants={"beta": 0.7},
        boundary=[Dirichlet("boundary", "exact")],
        exact={"v": "u[0] = sin(x[0] + 0.5); u[1] = x[0]*x[1] + beta;"},
        name="coupled",
    )


def given(cell: str, degree: int, curved: bool, scheme=HybridizedDG, **limits) -> GivenState:
    mesh = Mesh.from_file(MESHES / f"{CURVED[cell]}.msh", comm=PETSc.COMM_SELF) if curved else box_mesh(cell)
    assert mesh.geometry.degree == 1 + curved and mesh.cell == cell
    return on_mesh(mesh, degree, scheme, **limits)


def on_mesh(mesh: Mesh, degree: int, scheme=HybridizedDG, **limits) -> GivenState:
    backend = "hdg_gpu" if scheme is HybridizedDG else "cg_gpu"
    return GivenState(scheme(mesh, coupled(), Options(degree=degree, backend=backend), DeviceLimits(**limits)))


class Numpy:
    """What is expected in some cells of a given state."""

    def __init__(self, state: GivenState, specs):
        self.state, self.disc, self.specs = state, state.discretization, specs
        self.oracle = CondensedOracle(self.disc, tau=given_stabilization(state))
        self.functions = functions_of(self.disc)
        self.cells = range(min(MOST_CELLS, self.disc.mesh.num_cells))

    def gradient(self, cell: int, points: np.ndarray) -> np.ndarray:
        """q [point, component, dim] in the physical frame."""
        geometry, z = self.disc.mesh.geometry, np.concatenate(self.state.of_cell(cell)[:2])
        corners = geometry.nodes[geometry.cell_nodes[cell]]
        jacobians = np.einsum("rqb,bd->qrd", self.disc.geometry_element.tabulate(points)[1:], corners)
        gradients = np.linalg.solve(jacobians, self.functions.gradients(points))
        return np.einsum("qdj,jc->qcd", gradients, z.reshape(-1, self.disc.components))

    def values(self, cell: int, points: np.ndarray) -> np.ndarray:
        """u [point, component]."""
        interior, trace, _ = self.state.of_cell(cell)
        table = self.functions.values(self.disc.cell_element, points)
        return table @ interior.reshape(-1, self.disc.components)

    def places(self, cell: int, rule):
        """x [point, dim], Jacobians [point, physical, reference], weights [point] with the cell's measure."""
        geometry = self.disc.mesh.geometry
        table = ReferenceElement(self.disc.mesh.cell, geometry.degree).tabulate(rule.points)
        nodes = geometry.nodes[geometry.cell_nodes[cell]]
        x, jacobian = table[0] @ nodes, np.einsum("rqb,bs->qsr", table[1:], nodes)
        return x, jacobian, rule.weights * np.abs(np.linalg.det(jacobian))

    def star(self, cell: int) -> np.ndarray:
        """u* [basis, component] by a Lagrange multiplier for the mean."""
        rule, element = self.specs.star_quadrature, self.specs.star_element
        _, jacobian, w = self.places(cell, rule)
        table = element.tabulate(rule.points)
        slopes = np.einsum("rqb,qrs->qsb", table[1:], np.linalg.inv(jacobian))
        n, mean = element.num_basis, w @ table[0]
        matrix = np.zeros((n + 1, n + 1))
        matrix[:n, :n] = np.einsum("q,qsi,qsj->ij", w, slopes, slopes)
        matrix[n, :n] = matrix[:n, n] = mean
        right = np.zeros((n + 1, self.disc.components))
        right[:n] = np.einsum("q,qsi,qcs->ic", w, slopes, self.gradient(cell, rule.points))
        right[n] = w @ self.values(cell, rule.points)
        return np.linalg.solve(matrix, right)[:n]

    def errors(self, cell: int) -> np.ndarray:
        """Squares [norm, component]."""
        rule = error_rule(self.disc)
        x, _, w = self.places(cell, rule)
        pointwise = self.disc.physics.interpreter(self.disc.dim).pw_exact
        exact = [pointwise(0.0, at, self.state.constants) for at in x]
        u, u_x = np.array([e[0] for e in exact]), np.array([e[1] for e in exact])
        star = self.specs.star_element.tabulate(rule.points, 0)[0] @ self.star(cell)
        found = self.values(cell, rule.points), self.gradient(cell, rule.points), star
        differences = (found[0] - u) ** 2, ((found[1] - u_x) ** 2).sum(axis=-1), (found[2] - u) ** 2
        return np.array([w @ d for d in differences])

    def fluxes(self, cell: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Residuals summed over each facet's functions [facet, component] and over all (∫ f0), and the largest."""
        interior, trace, aux = self.state.of_cell(cell)
        rows = self.oracle.residual(cell, interior, trace, aux, self.state.constants).reshape(-1, self.disc.components)
        by_facet = rows[self.disc.num_interior :].reshape(self.disc.num_facets_of_cell, -1, self.disc.components)
        return by_facet.sum(axis=1), rows.sum(axis=0), np.abs(rows).max()


def assert_close(found: np.ndarray, expected: np.ndarray, scale: float = 0.0) -> None:
    """Equal to TOLERANCE of the largest value, or of `scale` where values cancelled."""
    assert found.shape == expected.shape and np.abs(expected).max() > 1e-3
    assert np.abs(found - expected).max() < TOLERANCE * max(scale, np.abs(expected).max())


@pytest.mark.parametrize("cell, degree, curved", CASES)
def test_recovery_agrees_with_numpy(cell, degree, curved):
    state = given(cell, degree, curved)
    recovery = Recovery(state)
    assert recovery.norms == ("L2", "H1", "star")
    expected = Numpy(state, recovery.specs)
    u, gradient, star = recovery.fields(None)
    assert (u.name, gradient.name, star.name) == ("v", "grad_v", "v_star")
    assert star.element.degree == degree + 1 and gradient.element.degree in (degree, degree + 1)
    fluxes, source = recovery.fluxes(None)
    for c in expected.cells:
        assert np.array_equal(u.values[c].ravel(), state.interior[:, c])
        nodes = gradient.element.nodes
        assert_close(gradient.values[c], expected.gradient(c, nodes).reshape(len(nodes), -1))
        assert_close(star.values[c], expected.star(c))
        through, integral, largest = expected.fluxes(c)
        assert_close(fluxes[c], through, largest)
        assert_close(source[c], integral, largest)


@pytest.mark.parametrize("cell, degree", PARALLELEPIPEDS)
def test_u_star_of_sheared_boxes(cell, degree):
    """Affine images of the square and the cube: matrices of the reference cell, no quadrature."""
    mesh = box_mesh(cell, amplitude=0)
    mesh.geometry.nodes[:, 0] += 0.4 * mesh.geometry.nodes[:, 1]
    state = on_mesh(mesh, degree)
    recovery = Recovery(state)
    assert state.discretization.is_affine and "STIFFNESS" in recovery.specs._star_tables()
    expected, star = Numpy(state, recovery.specs), recovery.fields(None)[2]
    for c in expected.cells:
        assert_close(star.values[c], expected.star(c))


@pytest.mark.parametrize("cell", SHAPES)
def test_errors_agree_with_numpy(cell):
    state = given(cell, 1, False)
    recovery = Recovery(state)
    expected = Numpy(state, recovery.specs)
    whole = sum(expected.errors(c) for c in range(state.discretization.mesh.num_cells))
    assert_close(recovery.errors(None), whole)


@pytest.mark.parametrize("cell", SHAPES)
def test_jumps_agree_with_numpy(cell):
    state = given(cell, 1, False)
    recovery, disc = Recovery(state), state.discretization
    jump, weights, mean = recovery.specs.jump_tables()
    inside, squares = disc.num_interior, np.zeros((2, disc.components))
    assert np.abs(jump[:inside].sum(axis=0) - 1).max() < 1e-13 and np.abs(jump[inside:].sum(axis=0) + 1).max() < 1e-13
    for c in range(disc.mesh.num_cells):
        both = np.concatenate(state.of_cell(c)[:2]).reshape(-1, disc.components)
        trace, average = jump[inside:].T @ both[inside:], mean @ both[:inside]
        squares += weights @ np.array([(jump.T @ both) ** 2, trace**2 + average**2])
    assert recovery.jumps(None) == pytest.approx(np.sqrt(squares[0].sum() / squares[1].sum()), rel=1e-12)


def test_working_memory_of_u_star_may_be_global_and_in_tiles(monkeypatch):
    local, outside = Recovery(given("triangle", 2, False)), Recovery(given("triangle", 2, False, local_bytes=512))
    most = 5 * outside.specs.star_scratch * 8
    monkeypatch.setattr("petsc_hdg.operators.condensed.recovery.POOL_BYTES", {True: most, False: most})
    found = [r.fields(None)[2].values for r in (local, outside)]
    assert [r.kernel("star").spec.macros["SCRATCH"] for r in (local, outside)] == ["__local", "__global"]
    assert len(found[0]) > 10 and np.array_equal(*found)


def test_many_threads_share_a_cell():
    state = given("quadrilateral", 2, False)
    alone, many = Recovery(state), Recovery(state)
    many.specs.star_threads = 16
    found = [r.fields(None)[2].values for r in (alone, many)]
    assert [r.kernel("star").spec.local_size for r in (alone, many)] == [1, 16]
    assert_close(*found)


def test_a_linear_function_is_recovered():
    """u and û from a linear function: q is its gradient, u* the function itself."""
    state = given("quadrilateral", 1, False)
    disc = state.discretization
    oracle = Recovery(state)

    def function(x):
        return np.stack([1 + 2 * x[..., 0] - x[..., 1], 3 * x[..., 1] - 0.5], axis=-1)

    cells = disc.mesh.num_cells
    state.interior[:, :cells] = function(element_nodes(disc.mesh, disc.cell_element.nodes)).reshape(cells, -1).T
    numbers = disc.dofmap.compact[disc.dofmap.cell_dofs]
    state.values[numbers] = function(dof_nodes(disc.mesh, disc.spaces[0])).reshape(cells, -1)
    _, gradient, star = oracle.fields(None)
    assert np.abs(gradient.values - [2.0, -1.0, 0.0, 3.0]).max() < 1e-12
    assert np.abs(star.values - function(element_nodes(disc.mesh, star.element.nodes))).max() < 1e-12


def test_condensed_cg_has_its_own_nodes():
    """All Lagrange nodes in the element's order; nothing superconvergent."""
    state = given("quadrilateral", 3, False, scheme=CondensedCG)
    recovery, disc = Recovery(state), state.discretization
    (u,) = recovery.fields(None)
    assert recovery.norms == ("L2", "H1") and recovery.errors(None).shape == (2, 2)
    interior, trace, _ = state.of_cell(3)
    assert np.array_equal(u.values[3].ravel(), np.concatenate([trace, interior]))
    assert disc.cell_element.entity_dofs[-1][0] == list(range(disc.num_trace, disc.cell_element.num_basis))
