"""Fields of different degrees by sipg_gpu: Stokes flow, matrices, penalties, ranks, results, nonlinear physics."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mixed_meshes import plane, solid
from petsc4py import PETSc
from petsc_options import petsc_options
from run_mixed import state
from run_saddle_splits import rubber
from run_sipg_degrees import FLOW, flow, norms
from sample_meshes import DIM, SHAPES, bent, box_mesh
from sample_physics import everything, give_everything
from test_mixed_meshes import SOLIDS
from test_mixed_meshes import mesh_of as several_shapes

import petsc_hdg as fe
from petsc_hdg.discretizations.oracle import State
from petsc_hdg.discretizations.sipg.oracle import PenaltyOracle
from petsc_hdg.options import Options

PRODUCT = {"triangle": "fused", "tetrahedron": "fused", "quadrilateral": "split", "hexahedron": "split"}


def mesh_of(cell: str, faces: int, curved: bool = False) -> fe.Mesh:
    """A distorted mesh of a box."""
    mesh = box_mesh(cell, (faces,) * DIM[cell])
    return bent(mesh) if curved else mesh


def errors_of(problem: fe.Problem, u: PETSc.Vec) -> list[float]:
    """L2 errors of the velocity, and of the pressure up to a constant."""
    velocity, pressure = (problem.errors(u, field=name)["L2"] for name in ("velocity", "pressure"))
    apart = problem.integral(f"pressure - sin({FLOW[problem.mesh.dim][1]})", u)
    return [velocity, np.sqrt(pressure**2 - apart**2 / problem.integral("1.0", u))]


TENSOR = ("quadrilateral", "hexahedron")
ORDERS = [(cell, degree, curved) for cell in SHAPES for degree in (2, 3) for curved in (False, True)]


@pytest.mark.full("3-", "hedron")
@pytest.mark.parametrize("cell, degree, curved", ORDERS, ids=lambda value: f"{value}")
def test_orders_of_a_flow(cell, degree, curved):
    """Orders p + 1 of the velocity and p of the pressure, of degree p - 1, and errors like those of cg_gpu."""
    errors, faces = [], (4, 8) if DIM[cell] == 2 else (2, 4) if degree == 2 else (2, 3)
    for n in faces:
        mesh, physics = mesh_of(cell, n, curved), flow(DIM[cell])
        problem = fe.Problem(mesh, physics, backend="sipg_gpu", degree=degree, check_kernels=n == faces[0])
        u = problem.solve()
        assert problem.operator.product == PRODUCT[cell] and mesh.geometry.is_affine != (curved or cell in TENSOR)
        errors.append(errors_of(problem, u))
    velocity, pressure = np.log(np.divide(*errors)) / np.log(faces[1] / faces[0])
    assert velocity > degree + 0.6 and pressure > degree - 0.3, (velocity, pressure)
    continuous = fe.Problem(mesh, physics, degree=degree, check_kernels=False)
    bounds = errors_of(continuous, continuous.solve())
    assert errors[1][0] < 1.3 * bounds[0] and errors[1][1] < 6 * bounds[1], (errors, bounds)


@pytest.mark.full("all")
@pytest.mark.parametrize("name", ["plane", "all"])
def test_flows_on_cells_of_several_shapes(name):
    mesh = several_shapes(plane(4) if name == "plane" else solid(2, SOLIDS[name], across=(1, 1)))
    problem = fe.Problem(mesh, flow(mesh.dim), backend="sipg_gpu", degree=2)
    errors = errors_of(problem, problem.solve())
    continuous = fe.Problem(mesh, flow(mesh.dim), degree=2, check_kernels=False)
    bounds = errors_of(continuous, continuous.solve())
    assert errors[0] < 1.5 * bounds[0] and errors[1] < 6 * bounds[1], (errors, bounds)


@pytest.mark.parametrize("cell", SHAPES)
def test_matrices_are_those_of_products_and_of_numpy(cell):
    """Of every input, by the kernels that products take by default."""
    problem = fe.Problem(box_mesh(cell), everything(), Options(backend="sipg_gpu", degree=2, pmat="aij"))
    give_everything(problem)
    u, rate, du = (state(problem, shift) for shift in (0.0, 1.0, 2.0))
    calls, disc, (f, y, z) = problem.callbacks, problem.discretization, (problem.create_vec() for _ in range(3))
    calls.ijacobian(None, 0.3, u, rate, 1.5, calls.jacobian, calls.assembled.mat)
    calls.ifunction(None, 0.3, u, rate, f)
    for product in ("mult", "multTranspose"):
        for mat, out in ((calls.jacobian, z), (calls.assembled.mat, y)):
            getattr(mat, product)(du, out)
        assert (y - z).norm() < 1e-12 * y.norm()
    calls.jacobian.mult(du, y)
    calls.jacobian.getDiagonal(z)
    assert (z - calls.assembled.mat.getDiagonal()).norm() < 1e-12 * z.norm()
    values, rates, along = (vector.getArray()[disc.extended_dofs] for vector in (u, rate, du))
    operator, oracle, cells = problem.operator, PenaltyOracle(disc), [0, problem.mesh.num_cells - 1]
    given = State(values, operator.aux_rows, operator.constants, operator.penalties(), 0.3, 1.5, rates, along)
    for found, where in ((y, given), (f, replace(given, du=None))):
        expected = np.array([oracle.rows(cell, where) for cell in cells])
        got = found.getArray()[disc.dofmap.cell_dofs[cells]]
        np.testing.assert_allclose(got, expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("cells", [pytest.param(SHAPES[:2], marks=pytest.mark.quick), SHAPES[2:]])
def test_ranks_agree(mpirun, cells):
    found = json.loads(mpirun(3, Path(__file__).with_name("run_sipg_degrees.py"), *cells).stdout.splitlines()[-1])
    for cell in cells:
        assert found[cell] == pytest.approx(norms(cell, PETSc.COMM_SELF), rel=1e-10, abs=1e-12)


def test_results_of_a_flow(tmp_path):
    """Forces on the sides balance that of the body; files have both fields."""
    problem = fe.Problem(mesh_of("quadrilateral", 4), flow(2), backend="sipg_gpu", degree=2)
    with petsc_options(ksp_rtol="1e-13"):
        u = problem.solve()
    sides = sum(problem.flux(side, u) for side in ("left", "right", "bottom", "top"))
    body = problem.integral("-(5*sin(x[0])*cos(2*x[1]) + 1.5*cos(1.5*x[0] + x[1] - 1.25))", u)
    assert sides[0] == pytest.approx(body, rel=1e-7) and abs(sides[2]) < 1e-3
    at = problem.at(u, [[0.3, 0.4]])
    assert at["velocity"][0] == pytest.approx([np.sin(0.3) * np.cos(0.8), -0.5 * np.cos(0.3) * np.sin(0.8)], abs=1e-3)
    assert at["pressure"][0] == pytest.approx(np.sin(0.45 + 0.4 - 1.25), abs=0.02)
    data = problem.to_numpy(u).point_data
    assert data["velocity"].shape[1] == 2 and data["pressure"].shape[1] == 1
    problem.write(tmp_path / "flow.vtu", u)
    problem.plot(tmp_path / "flow.png", u, field="pressure")
    assert b"pressure" in (tmp_path / "flow.vtu").read_bytes() and (tmp_path / "flow.png").stat().st_size > 1000
    assert abs(problem.integral("pressure", u)) < 1e-12


@pytest.mark.parametrize("backend", ["sipg_gpu", "cg_gpu"])
def test_a_pressure_of_no_lower_degree_is_told(backend):
    """Of a body that is nearly incompressible, not of a soft one."""
    mesh = mesh_of("triangle", 3)
    for lame_lambda, lower, is_told in ((5e3, 0, True), (5e3, 1, False), (1.0, 0, False)):
        physics = rubber(lame_lambda, "boundary")
        physics = physics if lower else physics.with_one_degree()
        problem = fe.Problem(mesh, physics, backend=backend, degree=2, check_kernels=False)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            problem.solve()
        assert (
            any("'pressure' may be wrong by its size; give it degree_offset=-1" in str(w.message) for w in found)
            == is_told
        )


def reaction(first: int, second: int) -> fe.Physics:
    """Two fields that diffuse by the values and the gradients of each other, with a known solution."""
    exact = {"u": "u[0] = sin(x[0] + x[1]);", "w": "u[0] = cos(x[0]);"}
    u, w, u_xx = "sin(x[0] + x[1])", "cos(x[0])", "-2*sin(x[0] + x[1])"
    slopes = f"-2*{w}*sin(x[0])*cos(x[0] + x[1])"  # of w² along that of u
    return fe.Physics(
        {"u": fe.Field(1, degree_offset=first), "w": fe.Field(1, degree_offset=second)},
        f0={
            "u": f"f0[0] = u[0]*u[1] + (1 + {w}*{w})*({u_xx}) + {slopes} - {u}*{w};",
            "w": f"f0[0] = u[1]*u[1]*u[1] - u[0] - {w} + 0.3*({u_xx}) - {w}*{w}*{w} + {u};",
        },
        f1={
            "u": "for (d = 0; d < dim; ++d) f1[d] = (1 + u[1]*u[1])*u_x[d];",
            "w": "for (d = 0; d < dim; ++d) f1[d] = u_x[dim + d] + 0.3*u_x[d];",
        },
        boundary=[fe.Dirichlet("boundary", "exact", field=name) for name in exact],
        exact=exact,
    )


@pytest.mark.parametrize("backend", ["sipg_gpu", "cg_gpu"])
@pytest.mark.parametrize("cell, degree, offsets", [("triangle", 1, (0, 2)), ("quadrilateral", 3, (-2, 0))])
def test_nonlinear_fields_of_degrees_1_and_3(cell, degree, offsets, backend):
    """Levels of first degree serve both fields; the field of degree 1 limits the order of the other."""
    errors = []
    for n in (4, 8):
        problem = fe.Problem(mesh_of(cell, n), reaction(*offsets), backend=backend, degree=degree)
        u = problem.solve()
        errors.append([problem.errors(u, field=name)["L2"] for name in "uw"])
    assert (np.log2(np.divide(*errors)) > 1.8).all() and max(errors[1]) < 4e-3, errors
    if backend == "sipg_gpu":
        assert problem.pmat == "conforming" and problem.linear_iterations <= 30


@pytest.mark.parametrize("cell", ["triangle", "quadrilateral"])
def test_penalties_follow_the_degrees_of_gradients(cell):
    """Of what an equation diffuses. A fifteenth of the penalty is not enough."""
    physics = fe.Physics(
        {"u": 1, "w": fe.Field(1, degree_offset=2), "heat": 1},
        f1={
            "u": "for (d = 0; d < dim; ++d) f1[d] = u_x[d] + 0.7*u_x[dim + d];",
            "w": "for (d = 0; d < dim; ++d) f1[d] = u_x[dim + d] + 0.7*u_x[d];",
            "heat": "for (d = 0; d < dim; ++d) f1[d] = u_x[2*dim + d];",
        },
        boundary=[fe.Dirichlet("boundary", 0.0, field=name) for name in ("u", "w", "heat")],
    )
    least = []
    for scale in (1.0, 1 / 15):
        options = Options(backend="sipg_gpu", degree=1, pmat="aij", sipg_penalty_scale=scale, check_kernels=False)
        problem = fe.Problem(mesh_of(cell, 3), physics, options)
        assert problem.discretization.penalty_degrees.tolist() == [3, 3, 1]
        calls, zero = problem.callbacks, problem.create_vec()
        calls.linearize(None, zero, calls.jacobian, calls.assembled.mat)
        dense = calls.assembled.mat.convert("dense").getDenseArray()
        np.testing.assert_allclose(dense, dense.T, atol=1e-11 * np.abs(dense).max())
        least.append(np.linalg.eigvalsh(dense).min())
    assert least[0] > 0 > least[1]


def test_saddle_points_have_no_levels_of_first_degree():
    """Also where the user names a Krylov method."""
    with petsc_options(ksp_type="gmres"):
        problem = fe.Problem(mesh_of("triangle", 3), flow(2), backend="sipg_gpu", degree=2, check_kernels=False)
        problem.callbacks  # noqa: B018
    assert problem.callbacks.conforming is None and problem.pmat == "aij"
