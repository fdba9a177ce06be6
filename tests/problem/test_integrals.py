"""Integrals of pointwise functions: polynomials, an oracle in numpy by another rule, regions, ranks, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import sympy
from petsc4py import PETSc
from run_integrals import BACKENDS, TEXT, state
from sample_meshes import DIM, box_mesh
from sample_quadratic import exact, quadratic

from petsc_hdg.errors import MeshError, PhysicsError
from petsc_hdg.mesh import Mesh
from petsc_hdg.options import Options
from petsc_hdg.physics import Auxiliary, CFile, Dirichlet, Physics, Symbols
from petsc_hdg.physics.objective import MOST, Objective
from petsc_hdg.problem import Problem
from petsc_hdg.problem.results.derived_fields import cell_fields
from petsc_hdg.reference import ReferenceElement, cell_quadrature, tabulate

SCRIPT = Path(__file__).with_name("run_integrals.py")
POLYNOMIALS = """
    obj[0] = 1; obj[1] = u[0]*u[0]*t; obj[2] = 0;
    for (PetscInt d = 0; d < dim; ++d) obj[2] += u_x[d]*u_x[d];
    for (PetscInt d = 0; d < dim; ++d) obj[3 + d] = x[d]*u[0]*u[0];
"""


def of_box(dim: int, t: float) -> np.ndarray:
    """The integrals POLYNOMIALS of the quadratic solution over the unit box, by a Gauss rule on all of it."""
    points, weights = np.polynomial.legendre.leggauss(6)
    x = np.stack(np.meshgrid(*[(1 + points) / 2] * dim, indexing="ij"), axis=-1)
    weight = np.prod(np.meshgrid(*[weights / 2] * dim, indexing="ij"), axis=0)
    u = exact(x)
    slopes = (2 * x[..., 0] + x[..., 1]) ** 2 + (x[..., 0] - 1) ** 2 + (dim - 2)
    return np.array([(weight * f).sum() for f in (1, u * u * t, slopes, *(x[..., d] * u * u for d in range(dim)))])


@pytest.mark.full
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("cell", ["triangle", "hexahedron"])
def test_polynomials_on_moved_meshes(cell, backend):
    polytopes = {"poly_agglomerates": 3} if backend == "poly_gpu" else {}
    options = Options(backend=backend, degree=2, check_kernels=False, **polytopes)
    problem = Problem(box_mesh(cell, comm=PETSc.COMM_SELF), quadratic(), options)
    found = problem.integral(POLYNOMIALS, problem.interpolate(exact), t=3.0)
    assert found.shape == (3 + DIM[cell],)
    np.testing.assert_allclose(found, of_box(DIM[cell], 3.0), rtol=1e-12)


# Data of all kinds, against numpy --------------------------------------------------------------------------------

OF_DATA = "obj[0] = k*u[1]*a[0]*x[0] + a[2]*u[0]; obj[1] = u_x[1]*a_x[aOff_x[1] + 2] + k*u_x[2]*a[0];"


def two_components() -> Physics:
    return Physics(
        {"v": 2},
        f0="f0[0] = u[0] - 1; f0[1] = u[1] - a[0]*a[1];",
        f1="for (d = 0; d < 2*dim; ++d) f1[d] = k*u_x[d];",
        auxiliary={"near": 1, "wave": Auxiliary(2, "nodal")},
        constants={"k": 2.0},
        boundary=[Dirichlet("boundary", "g[0] = x[0]*x[1]; g[1] = 1 - x[1];")],
        name="two",
    )


def wave(x: np.ndarray) -> np.ndarray:
    """Values [..., 2] at places [..., dim], quadratic."""
    return np.stack([1 + x[..., 0], x[..., 0] * x[..., 1] - x[..., 1] ** 2], axis=-1)


def with_halves(mesh: Mesh) -> tuple[Mesh, np.ndarray]:
    """The same cells with the regions "west" and "east", and which are in the first [cell]."""
    cells, points = mesh.geometry.cell_nodes[: mesh.num_cells], mesh.geometry.nodes
    west = points[cells].mean(axis=1)[:, 0] < 0.5
    regions = {"west": np.flatnonzero(west), "east": np.flatnonzero(~west)}
    new = Mesh.from_cells(cells, points, cell=mesh.cell, comm=PETSc.COMM_SELF, regions=regions)
    middles = new.geometry.nodes[new.geometry.cell_nodes[: new.num_cells]].mean(axis=1)
    return new, middles[:, 0] < 0.5


def by_numpy(problem, u, near: np.ndarray, k: float) -> np.ndarray:
    """Integrals [component, cell] of OF_DATA by a rule of higher degree, on straight cells."""
    mesh = problem.mesh
    rule = cell_quadrature(mesh.cell, 11)
    geometry = tabulate(ReferenceElement(mesh.cell, 1), rule.points)
    nodes = mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells]]
    x = np.einsum("qn,cnd->cqd", geometry.values, nodes)
    jacobian = np.einsum("qnr,cnd->cqdr", geometry.gradients, nodes)
    weight = rule.weights * np.abs(np.linalg.det(jacobian))
    fields = {field.name: field for field in cell_fields(problem, u)}
    v = fields["v"].at(rule.points)
    if "grad_v" in fields:
        slopes = fields["grad_v"].at(rule.points).reshape(*v.shape, 2)
    else:
        gradients = tabulate(fields["v"].element, rule.points).gradients
        slopes = np.einsum("qnr,cnk,cqrd->cqkd", gradients, fields["v"].values, np.linalg.inv(jacobian))
    a = near[:, None]
    first = k * v[..., 1] * a * x[..., 0] + wave(x)[..., 1] * v[..., 0]
    second = slopes[..., 0, 1] * x[..., 1] + k * slopes[..., 1, 0] * a
    return np.stack([(weight * f).sum(axis=1) for f in (first, second)])


@pytest.mark.full
@pytest.mark.parametrize("backend", [*BACKENDS, "condensed"])
def test_regions_constants_and_auxiliary_fields(backend):
    mesh, west = with_halves(box_mesh("triangle", comm=PETSc.COMM_SELF))
    scheme = {"cg_condense": True} if backend == "condensed" else {"backend": backend}
    problem = Problem(mesh, two_components(), Options(**scheme, degree=2, check_kernels=False))
    with pytest.raises(PhysicsError, match="auxiliary field 'near' has no values yet"):
        problem.integral(OF_DATA, problem.create_vec())
    near = np.random.default_rng(5).uniform(1, 2, mesh.num_cells)
    problem.set_auxiliary("near", near), problem.set_auxiliary("wave", wave)
    assert 0 < west.sum() < len(west)
    u = problem.interpolate(lambda x: np.stack([np.sin(3 * x[..., 0]) + x[..., 1], np.cos(x[..., 0])], axis=-1))
    for k in (2.0, 0.7):
        problem.set_constants(k=k)
        cells = by_numpy(problem, u, near, k)
        for label, inside in ((None, slice(None)), ("west", west), ("east", ~west)):
            found = problem.integral(OF_DATA, u, label=label)
            np.testing.assert_allclose(found, cells[:, inside].sum(axis=1), rtol=1e-12)
    assert list(problem.integrands) == [(OF_DATA, False, None)]


def test_one_expression_is_a_float():
    problem = Problem(box_mesh("triangle", comm=PETSc.COMM_SELF), quadratic(), Options(degree=2, check_kernels=False))
    u = problem.interpolate(exact)
    found = problem.integral("x[0]*u[0]*u[0]", u)
    assert isinstance(found, float) and abs(found - of_box(2, 0.0)[3]) < 1e-13


# Ranks -----------------------------------------------------------------------------------------------------------


def test_ranks_agree(mpirun):
    found = json.loads(mpirun(3, SCRIPT).stdout.splitlines()[-1])
    assert set(found) == set(BACKENDS)
    for backend, numbers in found.items():
        assert numbers["again"] == numbers["once"], "the bits change"
        assert min(numbers["counts"]) > 0 and len(numbers["counts"]) == 3
        alone, u = state(backend, PETSc.COMM_SELF)
        np.testing.assert_allclose(numbers["once"], alone.integral(TEXT, u), rtol=1e-12, err_msg=backend)
        assert numbers["refused"] == (["PhysicsError"] * 3 + ["MeshError"] * 3) * 2


# What an integrand may be ----------------------------------------------------------------------------------------

WHOLE = """
static void energy(PetscInt dim, PetscInt Nf, PetscInt NfAux, const PetscInt uOff[], const PetscInt uOff_x[],
  const PetscScalar u[], const PetscScalar u_t[], const PetscScalar u_x[], const PetscInt aOff[],
  const PetscInt aOff_x[], const PetscScalar a[], const PetscScalar a_t[], const PetscScalar a_x[],
  PetscReal t, const PetscReal x[],
  PetscInt numConstants, const PetscScalar constants[], PetscScalar obj[])
{
  PetscInt d;
  for (d = 0; d < dim; ++d) obj[0] += 0.5 * u_x[d] * u_x[d];
}
"""
S = Symbols(2, {"u": 1})
FORMS = {
    "expression": ("u[0] * x[1]", 1),
    "number": (1.0, 1),
    "statements": ("PetscReal s = u[0]; if (s > 2) { obj[1] = s; } obj[0] = s;", 2),
    "loop": ("for (d = 0; d <= dim; ++d) obj[d] = u[0];", 3),
    "whole function": (WHOLE, 1),
    "sympy": (S.value("u") ** 2 * sympy.sin(S.x[0]), 1),
    "several": ([S.value("u"), 2.0, S.x[1]], 3),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name):
    given, components = FORMS[name]
    objective = Objective(quadratic(), given, 2)
    assert objective.components == components and "pw_objective" in objective.text
    assert not objective.reads_auxiliary


def test_a_function_of_a_file(tmp_path):
    path = tmp_path / "energy.c"
    path.write_text("static double unused(double s) { return s; }\n" + WHOLE)
    assert Objective(quadratic(), CFile(path, "energy"), 3).components == 1


REFUSED = {
    "unknown name 'w'": "w + 1",
    "outside u, which has 1": "u[3]",
    "'u_t' cannot be used here: integrands and derived fields are of u, u_x": "u_t[0]",
    "line 2: unknown name 'y'": "obj[0] = 1;\nobj[1] = y;",
    "obj[1] is never assigned, but obj[2] is": "obj[0] = 1; obj[2] = 2;",
    "nothing is assigned to obj": "PetscReal s = 1;",
    f"index {MOST} is outside obj": f"obj[{MOST}] = 1;",
    "the text is empty": " ",
    "is a NoneType; give C text": None,
    "is a dict": {"u": "u[0]"},
    "the physics has no auxiliary fields": "a[0]",
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals(message):
    with pytest.raises(PhysicsError) as caught:
        Objective(quadratic(), REFUSED[message], 2)
    assert message in str(caught.value) and "physics 'quadratic', integrand" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_regions_are_named():
    problem = Problem(box_mesh("triangle", comm=PETSc.COMM_SELF), quadratic(), Options(degree=2, check_kernels=False))
    with pytest.raises(MeshError, match="no cell region called 'left' .'left' is a boundary, which over= takes."):
        problem.integral("x[0]*u[0]", problem.create_vec(), label="left")
