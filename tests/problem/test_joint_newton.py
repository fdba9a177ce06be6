"""Newton's method on trace and cells together, where local problems of hdg_gpu fail on the way of the trace."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_meshes import box_mesh

import petsc_hdg as fe
from petsc_hdg.discretizations.condensed.oracle import CondensedOracle
from petsc_hdg.problem.newton import joint_newton


def coupled(**constants) -> fe.Physics:
    """Two fields: diffusivities 1 + k times the own square + m times the other's; their product and cubes."""
    flux = "for (d = 0; d < dim; ++d) f1[d] = (1 + k*u[{0}]*u[{0}] + m*u[{1}]*u[{1}])*u_x[{0}*dim + d];"
    return fe.Physics(
        {"u": 1, "v": 1},
        f0={
            "u": "f0[0] = c*u[0]*u[0]*u[0] + e*u[0]*u[1] - s;",
            "v": "f0[0] = c*u[1]*u[1]*u[1] - e*u[0]*u[1] - s*x[0];",
        },
        f1={"u": flux.format(0, 1), "v": flux.format(1, 0)},
        constants={"c": 1.0, "e": 1.0, "s": 10.0, "k": 1.0, "m": 0.0, **constants},
        boundary=[fe.Dirichlet("boundary", 0.0, field=field) for field in "uv"],
        exact={"u": "u[0] = 0;", "v": "u[0] = 0;"},  # so that errors are norms
        name="coupled",
    )


def problem(
    backend: str = "hdg_gpu", degree: int = 1, faces: int = 4, hdg_tile_cells: int = 0, **constants
) -> fe.Problem:
    mesh = box_mesh("quadrilateral", (faces, faces), amplitude=0.25, comm=PETSc.COMM_SELF)
    settings = {"hdg_tile_cells": hdg_tile_cells} if hdg_tile_cells else {}
    return fe.Problem(mesh, coupled(**constants), backend=backend, degree=degree, check_kernels=False, **settings)


CASES = [{"s": 1000.0}, {"s": 1000.0, "e": 10.0, "m": 1.0}, {"s": 100.0, "k": 100.0}]


def given(one: fe.Problem, case: dict) -> fe.Problem:
    one.set_constants(**{**coupled().constants, **case})
    return one


@pytest.fixture(scope="module")
def problems() -> dict[str, fe.Problem]:
    return {"hdg_gpu": problem(), "cg_gpu": problem("cg_gpu", 2)}


@pytest.mark.full
@pytest.mark.parametrize("case", CASES, ids=str)
def test_converges_from_zero_to_what_continuous_elements_find(case, problems):
    hdg, cg = (given(problems[name], case) for name in ("hdg_gpu", "cg_gpu"))
    assert hdg.errors(hdg.solve())["star"] == pytest.approx(cg.errors(cg.solve())["L2"], rel=0.03)
    assert hdg.newton_iterations <= 15 and hdg.snes.getConvergedReason() > 0


def test_solver_of_the_trace_alone_fails(problems):
    hdg = given(problems["hdg_gpu"], CASES[0])
    hdg.newton_iterations = hdg.linear_iterations = 0
    hdg.operator.patience = 2
    hdg.solve_from(hdg.create_vec())
    assert hdg.snes.getConvergedReason() < 0 and "Newton's method for the local problem" in hdg.operator.failure
    hdg.operator.patience = None
    hdg.operator._check("")


def test_says_so_where_it_does_not_converge():
    with (
        petsc_options(snes_max_it=2),
        pytest.raises(fe.SolveError, match="nonlinear solver stopped without a solution"),
    ):
        problem(**CASES[0]).solve()


COFACTOR = "PetscReal c[4] = {u_x[3], -u_x[2], -u_x[1], u_x[0]};"
PRESSED = fe.Physics(
    {"x": 2, "p": 1},
    f0={"p": "f0[0] = u_x[0]*u_x[3] - u_x[1]*u_x[2] - 1;"},
    f1={
        "x": f"{COFACTOR} PetscReal q = u[2] + 3*(u_x[0]*u_x[3] - u_x[1]*u_x[2] - 1);"
        "for (d = 0; d < 4; ++d) f1[d] = u_x[d] + q*c[d];"
    },
    constants={"load": 0.0},
    boundary=[
        fe.Dirichlet("left", "g[0] = x[0]; g[1] = x[1];", field="x"),
        fe.Robin(
            "right", f"{COFACTOR} for (d = 0; d < 2; ++d) f0[d] = load*(c[2*d]*n[0] + c[2*d + 1]*n[1]);", field="x"
        ),
    ],
    name="an incompressible solid, pressed on a side that turns",
)


def test_larger_stabilization_is_tried_where_newton_fails_and_the_lower_one_given_up_soon():
    """The place of a point is near that by continuous elements of degree 2 and 1 on 8² squares.

    Those on the mesh of the test are 0.045 away from it under the larger load.
    """
    mesh = fe.Mesh.box((2, 2), comm=PETSc.COMM_SELF)
    pressed = fe.Problem(mesh, PRESSED, backend="hdg_gpu", degree=2, check_kernels=False)
    for load, place in ((0.4, (0.917, 0.498)), (2.0, (0.646, 0.432))):
        pressed.set_constants(load=load)
        u = pressed.solve(pressed.interpolate({"x": lambda x: x}))
        np.testing.assert_allclose(pressed.at(u, [[1.0, 0.5]])["x"][0], place, atol=0.025)
        assert pressed.newton_iterations <= 60


def test_a_start_whose_residual_is_no_number_is_no_solution(monkeypatch):
    monkeypatch.setattr(joint_newton.JointNewton, "_norm", lambda self, u, interior: np.inf)
    monkeypatch.setattr(joint_newton.JointNewton, "_monitor", lambda self, step: None)  # of a SNES that has not begun
    one = problem(faces=2, **CASES[0])
    u = one.create_vec()
    with one.access.read(u) as x:
        one.operator.begin(x)
    interior = np.zeros((one.discretization.num_eliminated, one.mesh.num_cells))
    assert not joint_newton.JointNewton(one, u, interior).reach()


def whole_system(one: fe.Problem, trace: np.ndarray, interior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Matrix and residual of [interiors of the cells, free trace] by the oracle."""
    operator, dofmap = one.operator, one.discretization.dofmap
    oracle = CondensedOracle(one.discretization, tau=operator.stabilization.values())
    inside, cells = interior.shape
    numbers = dofmap.compact[dofmap.cell_dofs]
    values = np.zeros(dofmap.num_owned + dofmap.num_tail)
    values[: dofmap.num_owned] = trace
    size = inside * cells + len(values)
    matrix, vector = np.zeros((size, size)), np.zeros(size)
    for cell in range(cells):
        rows = np.concatenate([cell * inside + np.arange(inside), inside * cells + numbers[cell]])
        state = cell, interior[:, cell], values[numbers[cell]], operator.aux_rows[:, cell], operator.constants
        matrix[np.ix_(rows, rows)] += oracle.matrix(*state)
        vector[rows] += oracle.residual(*state)
    free = inside * cells + dofmap.num_owned
    return matrix[:free, :free], vector[:free]


def test_steps_are_those_of_the_whole_system():
    with petsc_options(ksp_rtol=1e-13):
        one = problem(faces=2, hdg_tile_cells=3, **CASES[1])
        one.newton_iterations = one.linear_iterations = 0
        random = np.random.default_rng(5)
        u, cells = one.create_vec(), one.mesh.num_cells
        u.setArray(random.uniform(-1, 1, u.local_size))
        interior = random.uniform(-1, 1, (one.discretization.num_eliminated, cells))
        newton = joint_newton.JointNewton(one, u, interior)  # which finds the stabilization of this state
        matrix, vector = whole_system(one, u.array.copy(), interior)
        step = np.linalg.solve(matrix, vector)
        assert newton.norm == pytest.approx(np.linalg.norm(vector), rel=1e-12)
        assert newton._solve_linear()
        np.testing.assert_allclose(newton.step.array, step[interior.size :], rtol=1e-8, atol=1e-9)
        newton.step.scale(-1.0)
        with one.access.read(newton.step) as minus_w:
            target = newton.joint.target(minus_w)
        np.testing.assert_allclose((interior - target).T.ravel(), step[: interior.size], rtol=1e-8, atol=1e-9)
