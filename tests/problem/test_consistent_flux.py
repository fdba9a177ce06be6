"""Fluxes of all schemes balance the sources; those of cg_gpu are shared between sides that meet."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import skfem
from petsc4py import PETSc
from run_consistent_flux import CASES, SIDES, balance, elastic, solved, unsteady
from sample_meshes import box_mesh
from skfem.helpers import dot, grad

import petsc_hdg as fe

SCRIPT = Path(__file__).with_name("run_consistent_flux.py")


@pytest.mark.full("elastic", "mixed", "variable", "quadrilateral", "tetrahedron", "hexahedron")
@pytest.mark.parametrize(
    "backend, name, cell",
    [("cg_gpu", name, "triangle") for name in CASES]
    + [("cg_gpu", "nonlinear", cell) for cell in ("quadrilateral", "tetrahedron", "hexahedron")]
    + [(backend, "nonlinear", "triangle") for backend in ("sipg_gpu", "hdg_gpu", "poly_gpu")]
    + [
        pytest.param(backend, "elastic", "triangle", marks=pytest.mark.full)
        for backend in ("sipg_gpu", "hdg_gpu", "poly_gpu")
    ],
)
def test_fluxes_balance_the_sources(backend, name, cell):
    """Sides with and without conditions, and "boundary", whose flux is the sum of the sides'."""
    gap, whole = balance(solved(name, cell, backend))
    assert max(gap, whole) < 1e-10


def test_ranks_agree(mpirun):
    found = json.loads(mpirun(3, SCRIPT).stdout.splitlines()[-1])
    for name in CASES:
        problem, u = solved(name, "triangle", "cg_gpu")
        assert found[name]["gap"] < 1e-10
        for side in SIDES[:4]:
            np.testing.assert_allclose(found[name]["fluxes"][side], problem.flux(side, u), atol=1e-9)
    problem, u = unsteady("triangle")
    alone = [problem.flux(side, u, problem.time)[0] for side in SIDES[:4]]
    np.testing.assert_allclose(found["unsteady"], alone, atol=1e-8)


def test_sides_share_corners_as_their_gradients_do():
    """Errors of the flux through each side have order k + 1, which is that of nodes where sides meet."""
    physics = fe.Physics(
        {"u": 1},
        f0="f0[0] = 2*0.5 - sin(x[0])*x[1];",
        f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        exact={"u": "u[0] = 0.5*x[0]*x[0] + 0.5*x[0]*x[1] + sin(x[0])*x[1];"},
        boundary=[fe.Dirichlet("boundary", "exact")],
    )
    points, weights = np.polynomial.legendre.leggauss(12)
    s, w = (points + 1) / 2, weights / 2
    along = {
        "left": lambda: -(0.5 * s + np.cos(0) * s),
        "right": lambda: 1 + 0.5 * s + np.cos(1.0) * s,
        "bottom": lambda: -(0.5 * s + np.sin(s)),
        "top": lambda: 0.5 * s + np.sin(s),
    }
    exact, errors = {side: float(w @ f()) for side, f in along.items()}, []
    for faces in (4, 8):
        mesh = box_mesh("quadrilateral", (faces, faces), amplitude=0.0)
        problem = fe.Problem(mesh, physics, degree=2)
        u = problem.solve()
        errors.append([abs(problem.flux(side, u)[0] - value) for side, value in exact.items()])
    assert np.max(errors[1]) < 2e-5 and (np.log2(np.max(errors[0]) / np.max(errors[1])) > 2.7), errors


def test_reactions_are_those_of_scikit_fem():
    """K u - f of Dirichlet nodes; the node where sides meet has ∫ φ f1·n of each, and half of what is left."""
    mesh = box_mesh("triangle", (5, 5))
    physics = fe.Physics(
        {"u": 1},
        f0="f0[0] = -x[0];",
        f1="for (d = 0; d < dim; ++d) f1[d] = (1 + x[1]*x[1])*u_x[d];",
        boundary=[fe.Dirichlet("left", 0.0), fe.Dirichlet("bottom", "g[0] = x[0];"), fe.Neumann("top", "g[0] = 0.3;")],
    )
    problem = fe.Problem(mesh, physics, degree=1, quadrature_degree=6)
    u = problem.solve()
    nodes = mesh.geometry.nodes
    other = skfem.MeshTri(nodes.T, mesh.geometry.cell_nodes.T)
    basis = skfem.Basis(other, skfem.ElementTriP1(), intorder=6)
    values = np.zeros(len(nodes))
    values[mesh.geometry.cell_nodes] = problem.cell_values(u)["u"][..., 0]
    kappa = lambda w: 1 + w.x[1] ** 2  # noqa: E731
    stiffness = skfem.BilinearForm(lambda u, v, w: kappa(w) * dot(grad(u), grad(v))).assemble(basis)
    load = skfem.LinearForm(lambda v, w: w.x[0] * v).assemble(basis)

    def on(where, form):
        facets = other.facets_satisfying(where, boundaries_only=True)
        over = skfem.FacetBasis(other, skfem.ElementTriP1(), facets=facets, intorder=6)
        return form.assemble(over, w=over.interpolate(values))

    top = on(lambda x: x[1] > 1 - 1e-9, skfem.LinearForm(lambda v, w: 0.3 * v))
    rows = stiffness @ values - load - top
    normal = skfem.LinearForm(lambda v, w: kappa(w) * dot(grad(w["w"]), w.n) * v)
    own = {"left": on(lambda x: x[0] < 1e-9, normal), "bottom": on(lambda x: x[1] < 1e-9, normal)}
    rest, corner = rows - own["left"] - own["bottom"], (np.abs(nodes) < 1e-9).all(axis=1)
    share = {
        "left": np.where(corner, 0.5, nodes[:, 0] < 1e-9),
        "bottom": np.where(corner, 0.5, nodes[:, 1] < 1e-9),
    }
    for side in own:
        expected = own[side].sum() + share[side] @ rest
        assert abs(problem.flux(side, u)[0] - expected) < 1e-9, side
    assert abs(problem.flux("top", u)[0] - 0.3) < 1e-12 and problem.flux("right", u)[0] == 0


def test_a_roller_has_the_reaction_of_its_components():
    """A block on a roller and a wall, pressed from above: its weight and the load rest on the bottom alone."""
    mesh = fe.Mesh.box((3, 3), comm=PETSc.COMM_SELF)
    problem = fe.Problem(mesh, elastic(dirichlet={"left": [0], "bottom": [1]}), degree=2)
    u = problem.solve()
    bottom, left, top = (problem.flux(side, u) for side in ("bottom", "left", "top"))
    assert abs(left[1]) < 1e-12 and abs(bottom[0]) < 1e-12
    assert abs(top[1] + 0.2) < 1e-12 and abs(bottom[1] + top[1] - 1.0) < 1e-10


@pytest.mark.parametrize("cell", ["triangle", "quadrilateral"])
def test_fluxes_in_time_are_those_of_other_schemes(cell):
    """Matrices and solvers of the run stay."""
    problem, u = unsteady(cell)
    other, v = unsteady(cell, "hdg_gpu")
    before = problem.operator.linearizations
    found = [problem.flux(side, u, problem.time)[0] for side in ("left", "right", "top")]
    assert problem.operator.linearizations == before
    assert found == pytest.approx([other.flux(side, v, other.time)[0] for side in ("left", "right", "top")], abs=2e-3)
    assert abs(found[0] - problem.integral("(1 + u[0]*u[0])*u_x[0]*n[0]", u, over="left")) > 0.02


def test_fluxes_in_time_balance_sources_and_rates():
    """∫ f0 with the rate that makes the residual vanish: that of the state is u_t = sin(t) of a function of x."""
    rate = "(1 + 0.5*x[0]*x[1])*cos(t)"
    sides = fe.Dirichlet("boundary", "(1 + 0.5*x[0]*x[1])*(2 + sin(t))")
    physics = fe.Physics({"u": 1}, f"u_t[0] - {rate}", "u_x[d]", boundary=sides)
    problem = fe.Problem(box_mesh("triangle", (4, 4), amplitude=0.1), physics, degree=2)
    u, t = problem.interpolate("(1 + 0.5*x[0]*x[1])*(2 + sin(0.3))"), 0.3
    slope = 0.25 * (2 + np.sin(t))  # ∫ ∂u/∂x over a side
    assert problem.flux("right", u, t)[0] == pytest.approx(slope, rel=1e-9)
    assert problem.flux("left", u, t)[0] == pytest.approx(-slope, rel=1e-9)
    assert problem.flux("boundary", u, t)[0] == pytest.approx(0.0, abs=1e-9)


def test_a_rate_that_is_not_found():
    physics = fe.Physics({"u": 1}, "u_t[0]*u_t[0] - 1", "u_x[d]", boundary=fe.Dirichlet("left", "x[1]"))
    problem = fe.Problem(fe.Mesh.box((2, 2), comm=PETSc.COMM_SELF), physics, degree=1)
    u = problem.interpolate("x[1] + x[0]")
    with pytest.warns(UserWarning, match="the flux is ∫ f1·n alone, since u_t at t = 0 is not found"):
        assert problem.flux("left", u)[0] == pytest.approx(-1.0)
