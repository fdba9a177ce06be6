"""Polytopic DG through Problem: solutions that lie in the space are found to rounding, for any physics."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from petsc4py import PETSc
from petsc_options import petsc_options
from sympy import Matrix

import petsc_hdg as fe
from petsc_hdg.operators.poly.matrices import PolytopicMatrices
from petsc_hdg.options import Options
from petsc_hdg.physics import Symbols, manufactured
from petsc_hdg.problem import Problem
from petsc_hdg.problem.linear import preconditioners

BOXES = {
    "triangle": ((6, 5), True),
    "quadrilateral": ((6, 5), False),
    "tetrahedron": ((3, 3, 2), True),
    "hexahedron": ((3, 3, 2), False),
}


CONSTANT = fe.Physics(
    {"u": 1},
    "f0[0] = -1;",
    "for (d = 0; d < dim; ++d) f1[d] = k*u_x[d];",
    constants={"k": 1.0},
    boundary=[fe.Dirichlet("boundary", "g[0] = 0;")],
    name="constant diffusion",
)


def blobs(x: np.ndarray) -> np.ndarray:
    """A number [cell] for each centroid [cell, dim]: the nearest of a few random places."""
    places = np.random.default_rng(3).uniform(size=(7, x.shape[1]))
    return np.argmin(np.linalg.norm(x[:, None] - places, axis=2), axis=1)


def mesh_of(cell: str) -> fe.Mesh:
    """A distorted box in polytopes without convexity."""
    faces, simplex = BOXES[cell]
    mesh = fe.agglomerate(fe.Mesh.box(faces, simplex=simplex, comm=PETSc.COMM_SELF), groups=blobs)
    inner = (np.abs(mesh.geometry.nodes - 0.5) < 0.499).all(axis=1)
    shift = np.random.default_rng(1).uniform(-0.03, 0.03, mesh.geometry.nodes.shape)
    mesh.geometry.nodes += inner[:, None] * shift
    return mesh


def exact_of(x, degree: int):
    """A polynomial of total degree 1 or 2."""
    plane = 0.3 + x[0] - 0.7 * x[1] + 0.2 * x[-1]
    return plane if degree == 1 else plane + x[0] * x[1] - 0.4 * x[-1] ** 2


def convection_diffusion(dim: int) -> fe.Physics:
    """A full tensor, convection in f0, reaction; Dirichlet, Neumann and Robin conditions."""
    s = Symbols(dim, {"u": 1})
    exact, wind = exact_of(s.x, 2), Matrix([1.5, -0.5, 0.25][:dim])
    tensor = sympy.eye(dim) + 0.3 * sympy.ones(dim, dim)

    def flux(u, grad):
        return tensor * grad

    def reaction(u, grad):
        return wind.dot(grad) + 2 * u

    outward = (flux(exact, Matrix([exact.diff(x) for x in s.x]))).dot(s.n)
    return fe.Physics(
        {"u": 1},
        f0=reaction(s.value("u"), s.grad("u")) + manufactured(s.x, exact, flux, reaction),
        f1=flux(s.value("u"), s.grad("u")),
        boundary=[
            fe.Neumann("right", outward),
            fe.Robin("top", 3 * (s.value("u") - exact) - outward),
            *(fe.Dirichlet(side, "exact") for side in ("left", "bottom", *(("front", "back") if dim == 3 else ()))),
        ],
        exact=exact,
        name="convection-diffusion",
    )


def elasticity(dim: int) -> fe.Physics:
    """A displacement of `dim` components."""
    s = Symbols(dim, {"u": dim})
    exact = Matrix([exact_of(s.x, 2) * (1 + c) - c * s.x[c] for c in range(dim)])

    def stress(u, grad):
        return grad + grad.T + 0.7 * grad.trace() * sympy.eye(dim)

    return fe.Physics(
        {"u": dim},
        f0=manufactured(s.x, exact, stress),
        f1=stress(s.value("u"), s.grad("u")),
        boundary=[fe.Dirichlet("boundary", "exact")],
        exact=exact,
        name="elasticity",
    )


def nonlinear(dim: int) -> fe.Physics:
    """Diffusion 1 + u²."""
    s = Symbols(dim, {"u": 1})
    exact = exact_of(s.x, 1)

    def flux(u, grad):
        return (1 + u**2) * grad

    return fe.Physics(
        {"u": 1},
        f0=manufactured(s.x, exact, flux),
        f1=flux(s.value("u"), s.grad("u")),
        boundary=[fe.Dirichlet("boundary", "exact")],
        exact=exact,
        name="nonlinear diffusion",
    )


CASES = [
    ("triangle", convection_diffusion, 2, "total"),
    ("triangle", nonlinear, 2, "total"),
    ("triangle", elasticity, 2, "tensor"),
    ("quadrilateral", elasticity, 2, "total"),
    ("quadrilateral", nonlinear, 1, "tensor"),
    ("tetrahedron", convection_diffusion, 2, "total"),
    ("hexahedron", convection_diffusion, 3, "total"),
]


@pytest.mark.full("hexahedron", "elasticity")
@pytest.mark.parametrize("cell, physics, degree, space", CASES)
def test_solutions_in_the_space_are_found(cell, physics, degree, space):
    mesh = mesh_of(cell)
    with petsc_options(ksp_type="preonly", pc_type="lu", snes_rtol="1e-13", snes_atol="1e-12"):
        settings = {"quadrature_degree": 8} if physics is nonlinear else {}
        given = Options(backend="poly_gpu", degree=degree, poly_space=space, **settings)
        problem = Problem(mesh, physics(mesh.dim), given)
        u = problem.solve()
    assert problem.num_unknowns < problem.discretization.fine.dofmap.num_owned / 3
    errors = problem.errors(u)
    assert errors["L2"] < 1e-10 and errors["H1"] < 1e-9, errors


def test_projection_is_exact_in_the_space():
    """What `interpolate` gives has the errors of a function of the space: none."""
    mesh = mesh_of("tetrahedron")
    problem = Problem(mesh, elasticity(3), Options(backend="poly_gpu", degree=2, pmat="none", check_kernels=False))

    def values(x):
        plane = 0.3 + x[..., 0] - 0.7 * x[..., 1] + 0.2 * x[..., 2] + x[..., 0] * x[..., 1] - 0.4 * x[..., 2] ** 2
        return np.stack([plane * (1 + c) - c * x[..., c] for c in range(3)], axis=-1)

    errors = problem.errors(problem.interpolate(values))
    assert errors["L2"] < 1e-12 and errors["H1"] < 1e-10, errors


def test_fluxes_balance_the_source():
    mesh = mesh_of("triangle")
    with petsc_options(ksp_type="preonly", pc_type="lu"):
        physics = fe.Physics(
            {"u": 1},
            f0="f0[0] = -1;",
            f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
            boundary=[fe.Dirichlet("left", 0.0), fe.Dirichlet("top", 1.0)],
            name="source",
        )
        problem = Problem(mesh, physics, Options(backend="poly_gpu", degree=2, check_kernels=False))
        u = problem.solve()
    assert abs(problem.flux("left", u)[0] + problem.flux("top", u)[0] + 1) < 1e-11


def test_pure_neumann_problems_are_known_up_to_a_constant():
    s = Symbols(2, {"u": 1})
    exact = s.x[0] ** 2 - s.x[1] ** 2
    physics = fe.Physics(
        {"u": 1},
        f1=s.grad("u"),
        boundary=[fe.Neumann("boundary", 2 * s.x[0] * s.n[0] - 2 * s.x[1] * s.n[1])],
        exact=exact,
        name="Neumann",
    )
    with petsc_options(ksp_type="cg", pc_type="jacobi", ksp_rtol="1e-13"):
        given = Options(backend="poly_gpu", degree=2, check_kernels=False)
        problem = Problem(mesh_of("triangle"), physics, given)
        assert problem.errors(problem.solve())["H1"] < 1e-9


@pytest.mark.full
def test_symmetry_is_found_once_for_the_same_data(monkeypatch):
    asked = []
    monkeypatch.setattr(preconditioners, "asymmetry", lambda mat: asked.append(mat) or 0.0)
    problem = Problem(mesh_of("triangle"), CONSTANT, Options(backend="poly_gpu", degree=1))
    problem.solve()
    problem.solve()
    assert len(asked) == 1
    problem.set_constants(k=2.0)
    problem.solve()
    assert len(asked) == 2


def test_the_matrix_that_symmetry_was_asked_of_is_the_solvers(monkeypatch):
    """It is integrated once, and anew with other constants."""
    problem, filled = Problem(mesh_of("triangle"), CONSTANT, Options(backend="poly_gpu", degree=1)), []
    write = PolytopicMatrices.write
    monkeypatch.setattr(PolytopicMatrices, "write", lambda self, out: filled.append(self.operator) or write(self, out))
    norms = []
    for k in (1.0, 2.0, 4.0):
        problem.set_constants(k=k)
        filled.clear()
        norms.append(k * problem.solve().norm())
        assert filled.count(problem.operator) == 1
    np.testing.assert_allclose(norms, norms[0], rtol=1e-4)
    problem.solve()
    assert filled.count(problem.operator) == 1


def test_one_polytope_has_no_coarser_level():
    physics = fe.Physics(
        {"u": 1},
        f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[fe.Dirichlet("boundary", "exact")],
        exact={"u": "u[0] = x[0];"},
        name="one polytope",
    )
    mesh = fe.agglomerate(fe.Mesh.box((2, 2), simplex=False, comm=PETSc.COMM_SELF), 1)
    assert mesh.polytopes.count == 1
    problem = Problem(mesh, physics, Options(backend="poly_gpu", degree=1))
    u = problem.solve()
    assert problem.callbacks.levels is None
    assert problem.errors(u)["L2"] < 1e-8
