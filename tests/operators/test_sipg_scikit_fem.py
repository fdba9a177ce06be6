"""The matrix-free product and the residual against matrices that scikit-fem assembles, by its own way over facets.

There the forms are written for a facet once, with jumps and means of both sides; here a cell goes around its facets.
Unknowns are matched by cell and place. Penalties are taken from ours and tested apart.
"""

from __future__ import annotations

import basix
import numpy as np
import pytest
import skfem
from petsc4py import PETSc
from sample_meshes import SHAPES, box_mesh
from sipg_laws import LAWS
from skfem.helpers import grad
from skfem_meshes import MESHES, relative, to_skfem

from petsc_hdg.discretizations.dofmap import element_nodes
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem
from petsc_hdg.reference import facet_cell, gauss_lobatto, tensor_points

TOLERANCE = 1e-12
FACES = {"triangle": (3, 2), "quadrilateral": (3, 2), "tetrahedron": (2, 1, 1), "hexahedron": (2, 2, 1)}
CASES = [("transport", c, 1, theta) for c, theta in zip(SHAPES, (1, -1, 0, 1), strict=True)]
CASES += [("transport", c, 2, theta) for c, theta in zip(SHAPES, (-1, 1, 1, 0), strict=True)]
CASES += [("elasticity", c, 2, 1) for c in SHAPES]


def test_every_shape_is_compared():
    assert {(f, c) for f, c, *_ in CASES} == {(f, c) for f in ("transport", "elasticity") for c in SHAPES}
    assert {theta for *_, theta in CASES} == {1, 0, -1}


def state(u):
    """Value [component, …] and gradient [component, dim, …] of a function of scikit-fem."""
    value, slope = np.array(u), np.array(grad(u))
    return (value, slope) if value.ndim == 3 else (value[None], slope[None])


def normal_part(flux, n):
    return np.einsum("cd...,d...->c...", flux, n)


class Reference:
    """scikit-fem's discontinuous bases, its matrix and right-hand side in the order of our unknowns."""

    def __init__(self, problem, law, degree: int, theta: int):
        disc, self.law, self.theta = problem.discretization, law, theta
        self.mesh = to_skfem(problem.mesh)
        element = skfem.ElementDG(MESHES[problem.mesh.cell][degree]())
        components = problem.physics.num_components
        self.element = skfem.ElementVector(element) if components > 1 else element
        rule, facet_rule = disc.quadrature, reference_facet_rule(disc)
        self.cells = skfem.Basis(self.mesh, self.element, quadrature=(rule.points.T, rule.weights))
        self.facet_rule = facet_rule
        self.inner = [
            skfem.InteriorFacetBasis(self.mesh, self.element, side=side, quadrature=facet_rule) for side in (0, 1)
        ]
        self.sigma = Penalties(problem, self.mesh)
        self.order = self._order(problem, components)

    def _order(self, problem, components: int) -> np.ndarray:
        """Place in scikit-fem's vectors of each of our owned unknowns."""
        disc, basis = problem.discretization, self.cells
        places = element_nodes(problem.mesh, disc.element.nodes)
        order = np.full(disc.dofmap.num_owned, -1)
        for cell, numbers in enumerate(disc.dofmap.cell_dofs):
            theirs = basis.element_dofs[:, cell]
            distance = np.abs(places[cell][:, None] - basis.doflocs[:, theirs].T[None]).max(axis=2)
            for c in range(components):
                of_component = distance[:, c::components]
                assert of_component.min(axis=1).max() < 1e-12
                order[numbers[c::components]] = theirs[c::components][of_component.argmin(axis=1)]
        assert len(set(order)) == len(order) == basis.N
        return order

    def side(self, name: str):
        axis, value = {"left": (0, 0), "right": (0, 1), "bottom": (1, 0), "top": (1, 1)}[name]
        facets = self.mesh.facets_satisfying(lambda x: np.isclose(x[axis], value), boundaries_only=True)
        return skfem.FacetBasis(self.mesh, self.element, facets=facets, quadrature=self.facet_rule)

    def matrix(self) -> np.ndarray:
        law = self.law

        def volume(u, v, w):
            (value, slope), (test, test_slope) = state(u), state(v)
            flux = law.diffusion(slope, w.x) + law.convection(value, w.x)
            return (flux * test_slope).sum(axis=(0, 1)) + (law.reaction(value, slope, w.x) * test).sum(axis=0)

        def facet(u, v, w):
            (value, slope), (test, test_slope) = state(u), state(v)
            jump, test_jump = (-1.0) ** w.idx[0] * value, (-1.0) ** w.idx[1] * test
            flux = normal_part(law.diffusion(slope, w.x) + law.convection(value, w.x), w.n)
            adjoint = normal_part(law.diffusion(test_slope, w.x), w.n)
            terms = -0.5 * flux * test_jump - 0.5 * self.theta * adjoint * jump + w.sigma * jump * test_jump
            return (terms - 0.5 * law.facet_reaction(jump, w.n, w.x) * test).sum(axis=0)

        out = skfem.BilinearForm(volume).assemble(self.cells)
        out = out + skfem.asm(skfem.BilinearForm(facet), self.inner, self.inner, sigma=self.sigma.on(self.inner[0]))
        for name in ("left", "bottom"):
            out = out + self._held(name)
        robin = skfem.BilinearForm(lambda u, v, w: (law.robin(state(u)[0], w.x) * state(v)[0]).sum(axis=0))
        out = out + robin.assemble(self.side("right"))
        return out.toarray()[np.ix_(self.order, self.order)]

    def _held(self, name: str):
        """Nitsche's terms of the unknown."""
        law, side = self.law, self.side(name)

        def form(u, v, w):
            (value, slope), (test, test_slope) = state(u), state(v)
            mask = held(law, name, len(value))
            flux = normal_part(law.diffusion(slope, w.x) + 0.5 * law.convection(value, w.x), w.n)
            return (self._nitsche(mask * value, test, test_slope, w) - mask * flux * test).sum(axis=0)

        return skfem.BilinearForm(form).assemble(side, sigma=self.sigma.on(side))

    def _nitsche(self, jump, test, test_slope, w):
        adjoint = normal_part(self.law.diffusion(test_slope, w.x), w.n)
        return (
            w.sigma * jump * test - self.theta * adjoint * jump - 0.5 * self.law.facet_reaction(jump, w.n, w.x) * test
        )

    def vector(self) -> np.ndarray:
        """The residual at zero."""
        law = self.law
        out = skfem.LinearForm(lambda v, w: (law.source(w.x) * state(v)[0]).sum(axis=0)).assemble(self.cells)
        for name, term in law.natural.items():
            out = out + skfem.LinearForm(lambda v, w, term=term: (term(w.x) * state(v)[0]).sum(axis=0)).assemble(
                self.side(name)
            )
        for name in law.held:
            side = self.side(name)

            def form(v, w, name=name):
                test, test_slope = state(v)
                mask, g = held(law, name, len(test)), law.data(w.x)
                flux = normal_part(0.5 * law.convection(g, w.x), w.n)
                return (self._nitsche(-mask * g, test, test_slope, w) - mask * flux * test).sum(axis=0)

            out = out + skfem.LinearForm(form).assemble(side, sigma=self.sigma.on(side))
        return out[self.order]


def held(law, name: str, components: int) -> np.ndarray:
    """1 for components with Dirichlet data on a side, else 0 [component, 1, 1]."""
    mask = np.zeros((components, 1, 1))
    mask[[c for c in law.held.get(name, ()) if c < components]] = 1
    return mask


class Penalties:
    """Our penalties on scikit-fem's facets, matched by their midpoints."""

    def __init__(self, problem, mesh):
        disc = problem.discretization
        sigma = problem.operator.penalties()
        rules = disc.facet_rules[0]
        middle = np.stack([element_nodes(problem.mesh, r.points.mean(axis=0)[None])[:, 0] for r in rules], axis=1)
        self.values = np.moveaxis(sigma, [0, 1, 2], [2, 1, 0]).reshape(-1, sigma.shape[0])
        self.middle, self.mesh = middle.reshape(-1, problem.mesh.dim), mesh

    def on(self, basis) -> np.ndarray:
        """σ [component, facet, point]; both sides of a facet agree."""
        middle = self.mesh.p[:, self.mesh.facets[:, basis.find]].mean(axis=1).T
        distance = np.abs(middle[:, None] - self.middle[None]).max(axis=2)
        found = []
        for row in distance:
            values = self.values[row < 1e-10]
            assert 1 <= len(values) <= 2 and np.ptp(values, axis=0).max() <= 1e-13 * np.abs(values).max()
            found.append(values[0])
        return np.repeat(np.array(found).T[:, :, None], basis.X.shape[-1], axis=2)


def reference_facet_rule(disc) -> tuple[np.ndarray, np.ndarray]:
    """Points [dim - 1, point] and weights of the rule of a facet, in its own frame."""
    rule = disc.facet_rules[0][0]
    if disc.collocated:
        return tensor_points(gauss_lobatto(disc.element.degree)[0], disc.dim - 1).T, rule.weights
    points, weights = basix.make_quadrature(basix.CellType[facet_cell(disc.mesh.cell)], disc.quadrature_degree)
    return points.T, weights


def made(form: str, cell: str, degree: int, **settings) -> Problem:
    mesh = box_mesh(cell, FACES[cell], comm=PETSc.COMM_SELF)
    options = Options(backend="sipg_gpu", degree=degree, check_kernels=False, **{"pmat": "none", **settings})
    return Problem(mesh, LAWS[form].physics(mesh.dim), options)


@pytest.mark.full("transport-hexahedron", "elasticity-hexahedron")
@pytest.mark.parametrize("form, cell, degree, theta", CASES)
def test_agreement(form, cell, degree, theta, record_property):
    problem = made(form, cell, degree, sipg_theta=theta)
    calls = problem.callbacks
    u, du, f, y = (problem.create_vec() for _ in range(4))
    random = np.random.default_rng(9)
    for vector in (u, du):
        vector.setArray(random.uniform(-1, 1, vector.getLocalSize()))
    calls.residual(None, u, f)
    calls.linearize(None, u, calls.jacobian, calls.jacobian)
    calls.jacobian.mult(du, y)
    reference = Reference(problem, LAWS[form], degree, theta)
    matrix = reference.matrix()
    differences = {
        "residual": relative(f.getArray(), matrix @ u.getArray() + reference.vector()),
        "product": relative(y.getArray(), matrix @ du.getArray()),
    }
    record_property("differences", differences)
    assert max(differences.values()) < TOLERANCE, differences
