"""Residuals, element matrices and the assembled matrix against scikit-fem, an independent code, on every shape.

Degrees of freedom are matched by their coordinates. In the cells both sides use our rule; on the boundary scikit-fem
uses its own, exact for the forms here.
"""

from __future__ import annotations

import numpy as np
import pytest
import skfem
from petsc4py import PETSc
from sample_meshes import SHAPES, box_mesh
from skfem.helpers import ddot, dot, grad, sym_grad, trace
from skfem_meshes import MESHES, relative, to_skfem

from petsc_hdg.options import Options
from petsc_hdg.physics import Neumann, Physics, Robin, library
from petsc_hdg.problem import Problem
from petsc_hdg.problem.input_data import nodal_values

TOLERANCE = 1e-12
QUADRATURE = 16
FORMS = ("poisson", "elasticity", "minimal surface")
CASES = [(f, c, d) for f in FORMS for c in SHAPES for d in (1, 2)]


def the_physics(form: str, dim: int):
    """Physics with natural conditions only, so that every degree of freedom is compared."""
    if form == "elasticity":
        source = "for (d = 0; d < dim; ++d) f0[d] = (d + 1)*x[0]*u[d];"
        robin = Robin("right", "for (d = 0; d < dim; ++d) f0[d] = x[1]*u[d];")
        return library.elasticity(dim, source, lame_lambda=1.3, mu=0.7, boundary=[robin])
    boundary = [Robin("right", "f0[0] = (1 + x[1])*u[0] - 2;"), Neumann("top", "g[0] = x[0];")]
    if form == "poisson":
        flux = "for (d = 0; d < dim; ++d) f1[d] = (1 + x[0]*x[1])*u_x[d];"
        return Physics({"u": 1}, "f0[0] = x[0] - 2*u[0];", flux, boundary=boundary, name="variable Poisson")
    return library.minimal_surface("f0[0] = u[0];", boundary=boundary)


def skfem_forms(form: str):
    """Residual in the cell, its derivative, residual on "right", its derivative, residual on "top" in scikit-fem."""
    if form == "elasticity":

        def stress(u):
            return 1.3 * np.einsum("ij,...->ij...", np.eye(len(u)), trace(grad(u))) + 2 * 0.7 * sym_grad(u)

        def inner(u, v, w):
            factor = w.x[0] * np.arange(1, len(u) + 1).reshape(-1, *[1] * w.x[0].ndim)
            return ddot(stress(u), sym_grad(v)) + dot(factor * u, v)

        return (
            lambda v, w: inner(w.u, v, w),
            inner,
            lambda v, w: w.x[1] * dot(w.u, v),
            lambda u, v, w: w.x[1] * dot(u, v),
            None,
        )
    right = (lambda v, w: ((1 + w.x[1]) * w.u - 2) * v, lambda u, v, w: (1 + w.x[1]) * u * v, lambda v, w: -w.x[0] * v)
    if form == "poisson":

        def flux(w):
            return 1 + w.x[0] * w.x[1]

        return (
            lambda v, w: flux(w) * dot(grad(w.u), grad(v)) + (w.x[0] - 2 * w.u) * v,
            lambda u, v, w: flux(w) * dot(grad(u), grad(v)) - 2 * u * v,
            *right,
        )

    def root(w):
        return np.sqrt(1 + dot(grad(w.u), grad(w.u)))

    def tangent(u, v, w):
        along = dot(grad(w.u), grad(u)) * dot(grad(w.u), grad(v)) / root(w) ** 3
        return dot(grad(u), grad(v)) / root(w) - along + u * v

    return lambda v, w: dot(grad(w.u), grad(v)) / root(w) + w.u * v, tangent, *right


class Reference:
    """scikit-fem's bases, with the places of our degrees of freedom among theirs."""

    def __init__(self, problem, degree: int):
        mesh, disc = problem.mesh, problem.discretization
        self.mesh = to_skfem(mesh)
        element = MESHES[mesh.cell][degree]()
        self.vector = disc.spaces[0].components > 1
        element = skfem.ElementVector(element) if self.vector else element
        settings = {"intorder": QUADRATURE if mesh.cell in ("triangle", "quadrilateral") else QUADRATURE - 4}
        self.basis = skfem.Basis(self.mesh, element, quadrature=(disc.quadrature.points.T, disc.quadrature.weights))
        sides = {"right": lambda x: np.isclose(x[0], 1), "top": lambda x: np.isclose(x[1], 1)}
        self.sides = {
            name: skfem.FacetBasis(
                self.mesh, element, facets=self.mesh.facets_satisfying(test, boundaries_only=True), **settings
            )
            for name, test in sides.items()
        }
        self.order = self._order(disc)

    def _order(self, disc) -> np.ndarray:
        """Place of each of our owned degrees of freedom in scikit-fem's vectors."""
        field = disc.physics.fields[0]
        axes = [lambda x, d=d: np.repeat(x[..., d, None], field.components, axis=-1) for d in range(disc.dim)]
        x = np.stack([nodal_values(disc, {field.name: axis}) for axis in axes], axis=1)
        component = nodal_values(disc, {field.name: np.arange(field.components)})
        theirs = self.basis.doflocs.T
        ours = np.column_stack([x, component])
        if self.vector:
            names = np.zeros(len(theirs))
            for dofs in (self.basis.nodal_dofs, self.basis.edge_dofs, self.basis.facet_dofs, self.basis.interior_dofs):
                for row, numbers in enumerate(np.atleast_2d(dofs) if dofs is not None and np.size(dofs) else []):
                    names[numbers] = row % disc.dim
            theirs = np.column_stack([theirs, names])
        else:
            theirs = np.column_stack([theirs, np.zeros(len(theirs))])
        assert len(theirs) == len(ours)
        distance = np.abs(ours[:, None] - theirs[None]).max(axis=2)
        order = distance.argmin(axis=1)
        assert distance.min(axis=1).max() < 1e-12 and len(set(order)) == len(order)
        return order

    def residual(self, forms, values: np.ndarray) -> np.ndarray:
        u = np.zeros(self.basis.N)
        u[self.order] = values
        out = skfem.LinearForm(forms[0]).assemble(self.basis, u=self.basis.interpolate(u))
        for form, name in ((forms[2], "right"), (forms[4], "top")):
            if form is not None:
                side = self.sides[name]
                out = out + skfem.LinearForm(form).assemble(side, u=side.interpolate(u))
        return out[self.order]

    def matrix(self, forms, values: np.ndarray) -> np.ndarray:
        u = np.zeros(self.basis.N)
        u[self.order] = values
        out = skfem.BilinearForm(forms[1]).assemble(self.basis, u=self.basis.interpolate(u))
        out = out + skfem.BilinearForm(forms[3]).assemble(self.sides["right"])
        return out.toarray()[np.ix_(self.order, self.order)]

    def element_matrices(self, forms, values: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """[cell, dof, dof] in our order of degrees of freedom, whose owned numbers are `numbers` [cell, dof]."""
        u = np.zeros(self.basis.N)
        u[self.order] = values
        out = np.zeros((len(numbers), numbers.shape[1], numbers.shape[1]))
        local = skfem.BilinearForm(forms[1]).elemental(self.basis, u=self.basis.interpolate(u))
        data = local.data.reshape(self.basis.Nbfun, self.basis.Nbfun, -1)
        for c in range(len(numbers)):
            theirs = {dof: row for row, dof in enumerate(self.basis.element_dofs[:, c])}
            rows = [theirs[dof] for dof in self.order[numbers[c]]]
            out[c] = data[:, :, c][
                np.ix_(rows, rows)
            ]  # the forms are symmetric: rows and columns need no telling apart
        return out


@pytest.mark.parametrize("form, cell, degree", CASES)
def test_agreement(form, cell, degree, record_property):
    mesh = box_mesh(cell, (3, 2, 2)[: 2 if cell in ("triangle", "quadrilateral") else 3], comm=PETSc.COMM_SELF)
    options = Options(
        degree=degree,
        quadrature_degree=6 if cell in ("tetrahedron", "hexahedron") else 10,
        pmat="aij",
        check_kernels=False,
    )
    problem = Problem(mesh, the_physics(form, mesh.dim), options)
    calls, forms, reference = problem.callbacks, skfem_forms(form), Reference(problem, degree)
    u, f = problem.create_vec(), problem.create_vec()
    u.setArray(np.random.default_rng(9).uniform(-1, 1, u.getLocalSize()))
    values = u.getArray().copy()
    calls.residual(None, u, f)
    calls.linearize(None, u, calls.jacobian, calls.assembled.mat)
    matrix = calls.assembled.mat.getValues(range(len(values)), range(len(values)))
    differences = {
        "residual": relative(f.getArray(), reference.residual(forms, values)),
        "matrix": relative(matrix, reference.matrix(forms, values)),
    }
    disc = problem.discretization
    numbers = disc.dofmap.compact[disc.dofmap.cell_dofs]
    count = disc.num_dofs
    ours = problem.operator.matrices()[: count * count * disc.stride].reshape(count, count, disc.stride)
    ours = ours[:, :, : mesh.num_cells].transpose(2, 0, 1)
    differences["element matrices"] = relative(ours, reference.element_matrices(forms, values, numbers))
    record_property("differences", differences)
    assert max(differences.values()) < TOLERANCE, differences
