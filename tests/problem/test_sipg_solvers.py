"""The default solver of interior penalty: iterations that do not grow with the mesh, user's options, coercivity."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import direct_solver, petsc_options
from sample_meshes import SHAPES, box_mesh
from sample_physics import NONLINEAR, WIND, smooth_poisson
from subspace_gap import subspace_gap

from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Physics, Robin, library
from petsc_hdg.problem import Problem

SCRIPT = Path(__file__).with_name("run_sipg_solvers.py")
FLUX = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
JUMPS = Physics(
    {"u": 1},
    "f0[0] = -1;",
    "for (d = 0; d < dim; ++d) f1[d] = a[0]*u_x[d];",
    auxiliary={"kappa": 1},
    boundary=[Dirichlet("left", 0.0), Robin("right", "f0[0] = u[0] - 1;")],
    name="jumps",
)
# Most iterations at degrees 1 to 4 to a residual of 1e-10, on distorted meshes.
MOST = {
    "triangle": (12, 20, 25, 32),
    "quadrilateral": (10, 12, 14, 18),
    "tetrahedron": (20, 40, 50, 65),
    "hexahedron": (11, 12, 16, 22),
}


def problem_of(cell, faces, physics, degree: int, **options) -> Problem:
    mesh = box_mesh(cell, faces, comm=PETSc.COMM_SELF)
    options = {"sipg_kernel": "split", "check_kernels": False, **options}
    return Problem(mesh, physics, Options(backend="sipg_gpu", degree=degree, **options))


def iterations(problem) -> int:
    problem.solve()
    return problem.linear_iterations


def krylov(problem) -> str:
    return problem.snes.getKSP().getType()


def grids(cell: str, degree: int) -> list[tuple]:
    if cell in ("triangle", "quadrilateral"):
        return [(8, 8), (16, 16)]
    return [(2, 2, 2), (4, 4, 4)] if degree < 3 else [(2, 2, 2), (3, 3, 3)]


@pytest.mark.full
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("cell", SHAPES)
def test_iterations_do_not_grow(cell, degree):
    problems = [problem_of(cell, faces, smooth_poisson(), degree) for faces in grids(cell, degree)]
    found = [iterations(p) for p in problems]
    assert max(found) <= MOST[cell][degree - 1], found
    assert krylov(problems[0]) == "cg"


@pytest.mark.full
@pytest.mark.parametrize("cell, most", [("triangle", 46), ("quadrilateral", 18)])
def test_jumping_coefficients(cell, most):
    """A checkerboard of 1 and 1000, not resolved by the coarse mesh's aggregates."""
    for n in (8, 16):
        problem = problem_of(cell, (n, n), JUMPS, 2)
        problem.set_auxiliary("kappa", lambda x: 1.0 + 999.0 * (np.floor(4 * x).sum(axis=-1) % 2))
        assert iterations(problem) <= most and krylov(problem) == "cg"


@pytest.mark.full
@pytest.mark.parametrize("cell, most", [("triangle", 28), ("quadrilateral", 20)])
def test_elasticity_has_rigid_body_modes_on_the_coarse_level(cell, most):
    physics = library.elasticity(2, "f0[0] = 0; f0[1] = 1;", boundary=[Dirichlet("left", "g[0] = 0; g[1] = 0;")])
    for n in (8, 16):
        problem = problem_of(cell, (n, n), physics, 2)
        assert iterations(problem) <= most and krylov(problem) == "cg"
    assert problem.callbacks.conforming.mat.getNearNullSpace().handle


@pytest.mark.full
@pytest.mark.parametrize("cell", ["triangle", "quadrilateral"])
def test_convection(cell):
    """From diffusion to cells with Péclet numbers of thousands, in one problem whose constant changes."""
    problem = problem_of(cell, (12, 12), WIND, 2)
    for wind, most, method in (
        (0, 20, "cg"),
        (30, 22, "fgmres"),
        (1e3, 30, "fgmres"),
        (1e5, 30, "fgmres"),
        (0, 20, "cg"),
    ):
        problem.set_constants(wind=wind)
        assert iterations(problem) <= most, wind
        assert krylov(problem) == method


@pytest.mark.full
@pytest.mark.parametrize("cell", ["triangle", "quadrilateral"])
def test_newton(cell):
    for n in (6, 12):
        problem = problem_of(cell, (n, n), NONLINEAR, 2)
        assert iterations(problem) <= 12 * problem.newton_iterations <= 60 and krylov(problem) == "fgmres"


@pytest.mark.full
@pytest.mark.parametrize("cell, most", [("triangle", 60), ("quadrilateral", 34)])
def test_newton_far_from_the_solution(cell, most):
    """Penalties grow with the state before they leave a matrix indefinite, which takes hundreds of iterations."""
    boundary = [Dirichlet("left", "g[0] = h;")]
    physics = Physics({"u": 1}, "f0[0] = -1;", NONLINEAR.f1, boundary=boundary, constants={"h": 2.0}, name="far")
    problem = problem_of(cell, (6, 6), physics, 2)
    assert iterations(problem) <= most and problem.newton_iterations <= 4, "from the linear extension of the data"
    problem.solve(problem.create_vec())
    assert problem.linear_iterations <= most and krylov(problem) == "fgmres"
    assert problem.newton_iterations >= 4


@pytest.mark.full
def test_a_solution_up_to_a_constant():
    physics = Physics({"u": 1}, "f0[0] = x[0] - 0.5;", FLUX, name="free")
    for n in (8, 16):
        assert iterations(problem_of("triangle", (n, n), physics, 2)) <= 20


@pytest.mark.full
def test_time_stepping_with_the_users_own_ts():
    physics = Physics({"u": 1}, "f0[0] = u_t[0];", FLUX, boundary=[Dirichlet("boundary", 0.0)], name="decay")
    problem = problem_of("triangle", (8, 8), physics, 2)
    ts = PETSc.TS().create(PETSc.COMM_SELF)
    ts.setDM(problem.dm)
    problem.attach(ts)
    ts.setType("beuler")
    ts.setTimeStep(0.01)
    ts.setMaxSteps(3)
    u = problem.interpolate(lambda x: np.sin(np.pi * x[..., 0]) * np.sin(np.pi * x[..., 1]))
    before = u.norm()
    ts.setMaxTime(0.03)
    ts.setFromOptions()
    ts.solve(u)
    assert ts.getSNES().getKSP().getPC().getType() == "mg"
    assert u.norm() / before == pytest.approx((1 + 0.02 * np.pi**2) ** -3, rel=0.02)
    assert ts.getSNESIterations() >= 3 and ts.getKSPIterations() <= 20 * ts.getSNESIterations()


# The coarse level ----------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("cell", SHAPES)
def test_the_coarse_matrix_is_the_scheme_on_the_subspace(cell):
    """Pᵀ A P = A_0 on straight cells (parallelograms: collocation integrates there), with Robin and Dirichlet data."""
    faces = {"triangle": (4, 3), "quadrilateral": (4, 3), "tetrahedron": (2, 2, 1), "hexahedron": (2, 2, 2)}[cell]
    mesh = box_mesh(cell, faces, amplitude=0.0 if cell in ("quadrilateral", "hexahedron") else 0.15)
    problem = Problem(mesh, JUMPS, Options(backend="sipg_gpu", degree=2, sipg_kernel="split", check_kernels=False))
    problem.set_auxiliary("kappa", lambda x: 1.0 + x[..., 0])
    assert subspace_gap(problem, range(3)) < 1e-12


def test_states_are_averaged_at_vertices():
    problem = problem_of("quadrilateral", (4, 3), NONLINEAR, 3)
    conforming = problem.callbacks.conforming
    u = problem.interpolate(lambda x: 1 + x[..., 0] * (2 - x[..., 1]))
    averages = conforming.average(u).getArray()
    x = np.zeros((conforming.dofmap.num_owned, 2))
    numbers = conforming.dofmap.compact[conforming.dofmap.cell_dofs]
    places = problem.mesh.geometry.nodes[problem.mesh.geometry.cell_nodes]
    free = numbers < conforming.dofmap.num_owned
    x[numbers[free]] = places[free]
    np.testing.assert_allclose(averages, 1 + x[:, 0] * (2 - x[:, 1]), atol=1e-13)


# Options -------------------------------------------------------------------------------------------------


def test_options_of_the_user_win():
    with petsc_options(
        ksp_type="gmres",
        mg_levels_ksp_max_it="5",
        mg_levels_pc_type="none",
        mg_coarse_pc_type="lu",
        pc_mg_type="additive",
    ):
        problem = problem_of("triangle", (6, 6), smooth_poisson(), 2)
        problem.solve()
    pc = problem.snes.getKSP().getPC()
    assert krylov(problem) == "gmres" and pc.getType() == "mg"
    smoother, coarse = pc.getMGSmoother(1), pc.getMGCoarseSolve()
    assert smoother.getTolerances()[3] == 5 and smoother.getPC().getType() == "none"
    assert coarse.getPC().getType() == "lu"


BLOCKS = {"mg_levels_pc_type": "python", "mg_levels_pc_python_type": "petsc_hdg.CellBlockJacobi"}


@pytest.mark.parametrize(
    "options, pmat, pc",
    [
        ({}, "conforming", "mg"),
        ({"pc_type": "mg"}, "conforming", "mg"),
        ({"pc_type": "gamg"}, "aij", "gamg"),
        ({"fe_pmat": "aij"}, "aij", "gamg"),
        ({"fe_pmat": "none"}, "none", "jacobi"),
        ({"pc_type": "jacobi"}, "none", "jacobi"),
        ({"ksp_type": "preonly", "pc_type": "lu"}, "aij", "lu"),
        ({"fe_pmat": "conforming", **BLOCKS}, "conforming", "mg"),
    ],
)
def test_preconditioners_by_options(options, pmat, pc):
    with petsc_options(**options):
        mesh = box_mesh("triangle", (6, 6), comm=PETSc.COMM_SELF)
        options = Options.from_petsc(backend="sipg_gpu", degree=2, sipg_kernel="split", check_kernels=False)
        problem = Problem(mesh, smooth_poisson(), options)
        u = problem.solve()
    assert (problem.pmat, problem.snes.getKSP().getPC().getType()) == (pmat, pc)
    assert problem.errors(u)["L2"] < 1e-3


def test_other_schemes_assemble_by_default():
    mesh = box_mesh("triangle", comm=PETSc.COMM_SELF)
    problem = Problem(mesh, smooth_poisson(), Options(check_kernels=False))
    assert problem.pmat == "aij" and problem.callbacks.assembled and not problem.callbacks.conforming


# Ranks ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def serial(mpirun):
    return json.loads(mpirun(1, SCRIPT).stdout.splitlines()[-1])


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks(mpirun, serial, ranks):
    """The same matrix of the subspace, nearly as few iterations, the same solution."""
    found = json.loads(mpirun(ranks, SCRIPT).stdout.splitlines()[-1])
    assert set(found) == set(serial)
    for name, values in serial.items():
        for key in ("coarse", "interpolation", "state"):
            assert found[name][key] == pytest.approx(values[key], rel=1e-12), (name, key)
        assert found[name]["L2"] == pytest.approx(values["L2"], rel=1e-6)
        assert found[name]["iterations"] <= values["iterations"] + 6, name
        assert found[name]["eigenvalues"][0] > 0


def test_direct_solver_gives_the_same_answer():
    norms = []
    for options in ({"ksp_rtol": "1e-12"}, direct_solver()):
        with petsc_options(**options):
            norms.append(problem_of("quadrilateral", (5, 5), smooth_poisson(), 3).solve().norm())
    assert norms[0] == pytest.approx(norms[1], rel=1e-9)
