"""Integrals over named boundaries: exact values, an oracle in numpy, curved sides, drag, ranks, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from run_integrals import BACKENDS, OVER, state
from run_integrals import SIDES as SIDES_OF_RANKS
from sample_meshes import DIM, bent, box_mesh
from sample_quadratic import SIDES, exact, quadratic
from test_integrals import two_components, wave

import petsc_hdg as fe
from petsc_hdg.discretizations.dofmap import element_nodes
from petsc_hdg.errors import MeshError, OptionError, PhysicsError
from petsc_hdg.options import Options
from petsc_hdg.physics.objective import Objective
from petsc_hdg.problem import Problem
from petsc_hdg.problem.results.derived_fields import cell_fields
from petsc_hdg.reference import ReferenceElement, facet_quadrature, on_facets, tabulate

SCRIPT = Path(__file__).with_name("run_integrals.py")
SCHEMES = {
    "cg_gpu": {},
    "condensed": {"backend": "cg_gpu", "cg_condense": True},
    "hdg_gpu": {},
    "sipg_gpu": {},
    "poly_gpu": {"poly_agglomerates": 3},
}
NUMBERS = """
    obj[0] = 1; obj[2] = u[0]*u[0]*t;
    for (PetscInt d = 0; d < dim; ++d) { obj[1] += x[d]*n[d]; obj[3] += u_x[d]*n[d]; obj[4 + d] = n[d]*u[0]; }
"""


FREE = fe.Physics({"u": 1}, f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];", name="free")


def problem_of(scheme: str, mesh, physics, **more) -> Problem:
    return Problem(mesh, physics, Options(**{"backend": scheme, **SCHEMES[scheme], "check_kernels": False, **more}))


# Exact values ----------------------------------------------------------------------------------------------------


def of_side(name: str, dim: int, t: float) -> np.ndarray:
    """NUMBERS of the quadratic solution over a side of the unit box, by a Gauss rule on all of it."""
    axis, end = SIDES.index(name) // 2, SIDES.index(name) % 2
    points, weights = np.polynomial.legendre.leggauss(6)
    inside = np.stack(np.meshgrid(*[(1 + points) / 2] * (dim - 1), indexing="ij"), axis=-1)
    weight = np.prod(np.meshgrid(*[weights / 2] * (dim - 1), indexing="ij"), axis=0)
    x, n = np.insert(inside, axis, end, axis=-1), np.eye(dim)[axis] * (2 * end - 1)
    slope = [2 * x[..., 0] + x[..., 1], x[..., 0] - 1, np.ones_like(x[..., 0])][axis] * (2 * end - 1)
    u = exact(x)
    return np.array([(weight * f).sum() for f in (1, x @ n, u * u * t, slope, *(u * part for part in n))])


@pytest.mark.full
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("cell", ["triangle", "hexahedron"])
def test_polynomials_on_sides(cell, scheme):
    dim = DIM[cell]
    problem = problem_of(scheme, box_mesh(cell, comm=PETSc.COMM_SELF), quadratic(), degree=2)
    u, sides = problem.interpolate(exact), SIDES[: 2 * dim]
    parts = {side: of_side(side, dim, 3.0) for side in sides}
    for side in sides:
        np.testing.assert_allclose(problem.integral(NUMBERS, u, 3.0, over=side), parts[side], rtol=1e-11, atol=1e-12)
    whole = problem.integral(NUMBERS, u, 3.0, over="boundary")
    np.testing.assert_allclose(whole, sum(parts.values()), rtol=1e-11, atol=1e-12)
    assert np.allclose(whole[:2], [2 * dim, dim], rtol=1e-13), "its length or area, and dim times the volume"
    found = problem.integral("u[0]*n[0]", u, over="right")
    assert isinstance(found, float) and np.isclose(found, parts["right"][4], rtol=1e-12)
    assert len(problem.integrands) == 2


@pytest.mark.full("poly_gpu", "sipg_gpu")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_flux_of_the_solution(scheme):
    """Of a solution that the spaces hold the gradient's flux is the scheme's own."""
    problem = problem_of(scheme, box_mesh("triangle", comm=PETSc.COMM_SELF), quadratic(neumann=True), degree=2)
    u = problem.solve()
    found = [problem.integral("u_x[0]*n[0] + u_x[1]*n[1]", u, over=side) for side in ("left", "top")]
    np.testing.assert_allclose(found, [-0.5, -0.5], atol=1e-8)
    if scheme != "condensed":
        assert np.allclose(problem.flux("left", u), found[0], atol=1e-8)


def test_drag_of_a_flow_between_plates():
    """u = (y(1 - y), 0), p = 2(1 - x): on the walls the traction (∇u - p I)·n is (-1, ±p)."""
    flow = fe.Physics(
        {"velocity": 2, "pressure": fe.Field(1, degree_offset=-1)},
        f1={"velocity": "for (d = 0; d < 2; ++d) for (e = 0; e < 2; ++e) f1[d*2 + e] = u_x[d*2 + e] - (d == e)*u[2];"},
        f0={"pressure": "f0[0] = u_x[0] + u_x[3];"},
        boundary=[fe.Dirichlet("boundary", "g[0] = x[1]*(1 - x[1]); g[1] = 0;", "velocity")],
    )
    problem = Problem(box_mesh("quadrilateral"), flow, Options(degree=2, check_kernels=False))
    parallel = {"velocity": lambda x: np.stack([x[..., 1] * (1 - x[..., 1]), 0 * x[..., 0]], axis=-1)}
    u = problem.interpolate(parallel | {"pressure": lambda x: 2 * (1 - x[..., 0])})
    traction = "for (d = 0; d < dim; ++d) for (e = 0; e < dim; ++e) obj[d] += (u_x[d*dim + e] - (d == e)*u[2])*n[e];"
    for wall, sign in (("bottom", -1), ("top", 1)):
        np.testing.assert_allclose(problem.integral(traction, u, over=wall), [-1, -sign], rtol=1e-11)


# Data of all kinds, against numpy --------------------------------------------------------------------------------

OF_DATA = """
    obj[0] = k*u[1]*a[0]*x[0]*n[1] + a[2]*u[0]*n[0];
    obj[1] = u_x[1]*a_x[aOff_x[1] + dim]*n[0] + k*u_x[dim]*a[0]*n[1] + a_x[aOff_x[1] + dim + 1]*t;
"""


def trace_at(problem, u, cells, facet: int, points: np.ndarray) -> np.ndarray:
    """The trace [cell, point, component] on a local facet of cells, at points of the reference cell."""
    with problem.reading(u) as owned:
        theirs, local, (field,) = problem.operator.trace_fields(owned, 0.0)
    rows = [np.flatnonzero((theirs == cell) & (local == facet))[0] for cell in cells]
    dim = problem.mesh.dim
    corner, *ends = on_facets(problem.mesh.cell, np.vstack([np.zeros(dim - 1), np.eye(dim - 1)]))[facet]
    basis = tabulate(field.element, (points - corner) @ np.linalg.pinv(np.array(ends) - corner)).values
    return np.einsum("qn,cnk->cqk", basis, field.values[rows])


def by_numpy(problem, u, label: str, near: np.ndarray, k: float, t: float) -> np.ndarray:
    """Integrals [component] of OF_DATA over a boundary by a rule of higher degree."""
    mesh, total = problem.mesh, np.zeros(2)
    rules, normals = facet_quadrature(mesh.cell, 17)
    fields = {field.name: field for field in cell_fields(problem, u)}
    values, nodal = fields["v"].values, problem.discretization.auxiliary.element
    waves = wave(element_nodes(mesh, nodal.nodes))
    mine, local = mesh.boundary_facets(label)
    for facet in range(len(rules)):
        cells, rule = mine[local == facet], rules[facet]
        geometry = tabulate(ReferenceElement(mesh.cell, mesh.geometry.degree), rule.points)
        nodes = mesh.geometry.nodes[mesh.geometry.cell_nodes[cells]]
        x = np.einsum("qn,cnd->cqd", geometry.values, nodes)
        jacobian = np.einsum("qnr,cnd->cqdr", geometry.gradients, nodes)
        inverse = np.linalg.inv(jacobian)
        normal = np.einsum("r,cqrd->cqd", normals[facet], inverse)
        length = np.linalg.norm(normal, axis=-1)
        weight, n = rule.weights * np.abs(np.linalg.det(jacobian)) * length, normal / length[..., None]
        basis = tabulate(fields["v"].element, rule.points)
        v = np.einsum("qn,cnk->cqk", basis.values, values[cells])
        slopes = np.einsum("qnr,cnk,cqrd->cqkd", basis.gradients, values[cells], inverse)
        if "grad_v" in fields:
            v = trace_at(problem, u, cells, facet, rule.points)
            slopes = fields["grad_v"].at(rule.points)[cells].reshape(*v.shape, mesh.dim)
        basis = tabulate(nodal, rule.points)
        a = np.einsum("qn,cnk->cqk", basis.values, waves[cells])
        a_x = np.einsum("qnr,cnk,cqrd->cqkd", basis.gradients, waves[cells], inverse)
        first = k * v[..., 1] * near[cells, None] * x[..., 0] * n[..., 1] + a[..., 1] * v[..., 0] * n[..., 0]
        second = slopes[..., 0, 1] * a_x[..., 1, 0] * n[..., 0] + k * slopes[..., 1, 0] * near[cells, None] * n[..., 1]
        total += [(weight * f).sum() for f in (first, second + a_x[..., 1, 1] * t)]
    return total


def random_state(problem) -> PETSc.Vec:
    u = problem.create_vec()
    u.setArray(np.random.default_rng(8).uniform(-1, 1, u.getLocalSize()))
    return u


@pytest.mark.parametrize("cell, scheme", [("triangle", s) for s in SCHEMES] + [("tetrahedron", "hdg_gpu")])
def test_data_on_straight_cells(cell, scheme):
    """Of a state at random, whose traces and gradients jump: it tells sides and orientations of facets apart."""
    problem = problem_of(scheme, box_mesh(cell, comm=PETSc.COMM_SELF), two_components(), degree=2)
    check_against_numpy(problem)


@pytest.mark.full
@pytest.mark.parametrize(
    "cell, scheme",
    [
        ("triangle", "cg_gpu"),
        ("triangle", "sipg_gpu"),
        ("quadrilateral", "cg_gpu"),
        ("hexahedron", "cg_gpu"),
        ("tetrahedron", "sipg_gpu"),
    ],
)
def test_data_on_curved_cells(cell, scheme):
    mesh = bent(box_mesh(cell, comm=PETSc.COMM_SELF))
    check_against_numpy(problem_of(scheme, mesh, two_components(), degree=2, quadrature_degree=10))


def check_against_numpy(problem) -> None:
    """Integrals of OF_DATA of a state at random, with two values of the constant."""
    near = np.random.default_rng(5).uniform(1, 2, problem.mesh.num_cells)
    problem.set_auxiliary("near", near), problem.set_auxiliary("wave", wave)
    u = random_state(problem)
    for k, side in ((2.0, "left"), (0.7, "top"), (0.7, "boundary")):
        problem.set_constants(k=k)
        expected = by_numpy(problem, u, side, near, k, 0.5)
        np.testing.assert_allclose(problem.integral(OF_DATA, u, 0.5, over=side), expected, rtol=1e-9, atol=1e-11)


# Curved sides ----------------------------------------------------------------------------------------------------


def ring(faces: int):
    """A quarter of a ring, 1 < r < 2, of second-order cells; "left" and "right" are its arcs."""
    mesh = bent(box_mesh("quadrilateral", (faces, faces), amplitude=0.0), amount=0.0)
    r, angle = 1 + mesh.geometry.nodes[:, 0], np.pi / 2 * mesh.geometry.nodes[:, 1]
    mesh.geometry.nodes = np.stack([r * np.cos(angle), r * np.sin(angle)], axis=1)
    return mesh


@pytest.mark.parametrize("scheme", ["cg_gpu", "sipg_gpu", "hdg_gpu"])
def test_arcs_converge_with_the_cells(scheme):
    """Length of the outer arc, ∮ x·n, ∫ x y over the outer arc, ∫ ∇(x y)·n over the inner one; smaller cells."""
    text = "obj[0] = 1; obj[1] = x[0]*n[0] + x[1]*n[1]; obj[2] = u[0]; obj[3] = u_x[0]*n[0] + u_x[1]*n[1];"
    expected, errors = np.array([np.pi, 3 * np.pi / 2, 4.0, -1.0]), []
    for faces in (3, 6):
        problem = problem_of(scheme, ring(faces), FREE, degree=3)
        u = problem.interpolate(lambda x: x[..., 0] * x[..., 1])
        outer, whole, inner = (problem.integral(text, u, over=label) for label in ("right", "boundary", "left"))
        errors.append(np.abs(np.array([outer[0], whole[1], outer[2], inner[3]]) - expected))
    assert (errors[1] < 4e-4).all() and (np.log2(errors[0] / errors[1]) > 2.7).all(), errors
    assert (np.log2(errors[0] / errors[1])[:2] > 3.8).all(), "fourth order, of the geometry alone"


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["cg_gpu", "hdg_gpu"])
def test_arcs_converge_with_the_degree(scheme):
    """∫ sin(2x) over the arc of three cells, as text and as a state of degree 1, 3 and 5."""
    mesh, errors = ring(3), []
    for degree in (1, 3, 5):
        problem = problem_of(scheme, mesh, FREE, degree=degree, quadrature_degree=12)
        u = problem.interpolate(lambda x: np.sin(2 * x[..., 0]))
        text, state_of_degree = problem.integral("obj[0] = sin(2*x[0]); obj[1] = u[0];", u, over="right")
        errors.append(abs(text - state_of_degree))
    points, weights = np.polynomial.legendre.leggauss(20)
    arc = np.sin(4 * np.cos(np.pi / 4 * (1 + points))) @ weights * np.pi / 2
    assert abs(text - arc) < 1e-3, (text, arc)
    assert errors[1] < 0.02 * errors[0] and errors[2] < 0.02 * errors[1] and errors[2] < 1e-5, errors


# Ranks -----------------------------------------------------------------------------------------------------------


def test_ranks_agree(mpirun):
    found = json.loads(mpirun(2, SCRIPT).stdout.splitlines()[-1])
    for backend in BACKENDS:
        alone, u = state(backend, PETSc.COMM_SELF)
        expected = [alone.integral(OVER, u, over=side) for side in SIDES_OF_RANKS]
        np.testing.assert_allclose(found[backend]["over"], expected, rtol=1e-12, atol=1e-13, err_msg=backend)
        assert found[backend]["refused"] == (["PhysicsError"] * 2 + ["MeshError"] * 2) * 2


# What an integrand may be ----------------------------------------------------------------------------------------

WHOLE = """
static void outflow(PetscInt dim, PetscInt Nf, PetscInt NfAux, const PetscInt uOff[], const PetscInt uOff_x[],
  const PetscScalar u[], const PetscScalar u_t[], const PetscScalar u_x[], const PetscInt aOff[],
  const PetscInt aOff_x[], const PetscScalar a[], const PetscScalar a_t[], const PetscScalar a_x[],
  PetscReal t, const PetscReal x[], const PetscReal n[],
  PetscInt numConstants, const PetscScalar constants[], PetscScalar obj[])
{
  PetscInt d;
  for (d = 0; d < dim; ++d) obj[0] += u_x[d] * n[d];
}
"""


def test_functions_of_petsc():
    problem = problem_of("cg_gpu", box_mesh("triangle"), quadratic(), degree=2)
    u = problem.interpolate(exact)
    assert np.isclose(problem.integral(WHOLE, u, over="right"), 2.5, rtol=1e-12)
    of_cells = WHOLE.replace(" const PetscReal n[],", "").replace("u_x[d] * n[d]", "x[d]")
    assert np.isclose(problem.integral(of_cells, u, over="top"), 1.5, rtol=1e-12)


def test_refusals():
    problem = problem_of("cg_gpu", box_mesh("triangle"), quadratic(), degree=2)
    u = problem.create_vec()
    with pytest.raises(
        PhysicsError, match="'n' cannot be used here: integrands .* are of u, .*over a boundary of n too"
    ):
        problem.integral("u[0]*n[0]", u)
    with pytest.raises(PhysicsError, match="'u_t' cannot be used here: integrands .* over a boundary are of u"):
        problem.integral("u_t[0]", u, over="left")
    with pytest.raises(PhysicsError, match="outside n, which has 2"):
        Objective(quadratic(), "n[2]", 2, over="left")
    with pytest.raises(MeshError, match="no boundary called 'lfet'; .*left"):
        problem.integral("u[0]", u, over="lfet")
    with pytest.raises(MeshError, match="A boundary is given by its name, not by 3"):
        problem.integral("u[0]", u, over=3)
    with pytest.raises(OptionError, match="over the cells of 'left' and over the boundary 'right' was asked for; give"):
        problem.integral("u[0]", u, label="left", over="right")


def test_facets_inside_the_mesh_are_refused():
    points = np.array([[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1.0]])
    mesh = fe.Mesh.from_cells(
        np.array([[0, 1, 3, 4], [1, 2, 4, 5]]), points, cell="quadrilateral", comm=PETSc.COMM_SELF,
        boundaries={"middle": np.array([[1, 4]]), "left": np.array([[0, 3]])},
    )  # fmt: skip
    problem = problem_of("cg_gpu", mesh, FREE)
    with pytest.raises(MeshError, match="'middle' holds facets inside the mesh; .*integrals are those of exterior"):
        problem.integral("1", problem.create_vec(), over="middle")
    assert np.isclose(problem.integral("1", problem.create_vec(), over="left"), 1.0)
