"""Multigrid on agglomerates: injections of nested spaces, iterations that do not grow, data that change, ranks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_meshes import box_mesh
from sample_physics import NONLINEAR, WIND, smooth_poisson

import petsc_hdg
from petsc_hdg.discretizations import PolytopicDG
from petsc_hdg.operators.poly.levels import change_of_box, degrees_below
from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Physics
from petsc_hdg.problem import Problem

SCRIPT = Path(__file__).with_name("run_poly_levels.py")
FLUX = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
JUMPS = Physics(
    {"u": 1},
    "f0[0] = -1;",
    "for (d = 0; d < dim; ++d) f1[d] = a[0]*u_x[d];",
    auxiliary={"kappa": 1},
    boundary=[Dirichlet("boundary", 0.0)],
    name="jumps",
)
FREE = Physics({"u": 1}, "f0[0] = x[0] - 0.5;", FLUX, name="free")


def problem_of(physics, n: int, degree: int = 2, cell: str = "triangle", cells: int = 4, degrees=None, **options):
    """A problem on polytopes of about `cells` base cells of a box of n squares or cubes a side."""
    dim = 2 if cell in ("triangle", "quadrilateral") else 3
    mesh = box_mesh(cell, (n,) * dim, comm=PETSc.COMM_SELF)
    mesh = petsc_hdg.agglomerate(mesh, mesh.num_cells // cells, degrees=degrees)
    options = {"backend": "poly_gpu", "check_kernels": False, **options}
    return Problem(mesh, physics, Options(degree=degree, **options))


def iterations(problem) -> int:
    problem.solve()
    return problem.linear_iterations


def krylov(problem) -> str:
    return problem.snes.getKSP().getType()


# Injections -----------------------------------------------------------------------------------------------------------


def test_a_change_of_box_is_exact():
    """Legendre polynomials of the box (0, 1) × (2, 4) on (0.25, 0.5) × (3, 3.1), at places of the latter."""
    coarse, fine = np.array([[[0.0, 2.0], [1.0, 4.0]]]), np.array([[[0.25, 3.0], [0.5, 3.1]]])
    lines = change_of_box(fine, coarse, 4)
    xi = np.linspace(-1, 1, 7)
    table = np.polynomial.legendre.legvander(xi, 4) * np.sqrt(2 * np.arange(5) + 1)
    for axis in range(2):
        x = (fine[0].sum(axis=0)[axis] + xi * np.diff(fine[0, :, axis])) / 2
        eta = (2 * x - coarse[0, :, axis].sum()) / np.diff(coarse[0, :, axis])
        there = np.polynomial.legendre.legvander(eta, 4) * np.sqrt(2 * np.arange(5) + 1)
        np.testing.assert_allclose(table @ lines[0, axis], there, atol=1e-12)
        assert np.abs(np.tril(lines[0, axis], -1)).max() < 1e-13  # degrees do not grow


@pytest.mark.full
@pytest.mark.parametrize("cell", ["triangle", "quadrilateral", "tetrahedron", "hexahedron"])
def test_coarse_functions_are_fine_functions(cell):
    """Values at centres of base cells stay the same from each level to the finest; mixed degrees, two components."""
    physics = Physics(
        {"u": 2},
        "f0[0] = u[0]; f0[1] = u[1];",
        "for (d = 0; d < 2*dim; ++d) f1[d] = u_x[d];",
        boundary=[Dirichlet("boundary", "g[0] = 0; g[1] = 0;")],
        name="pair",
    )
    n = 8 if cell in ("triangle", "quadrilateral") else 3
    problem = problem_of(physics, n, 2, cell, 3, degrees=lambda x: 1 + (2 * x[:, 0]).astype(int))
    levels, random = problem.callbacks.levels, np.random.default_rng(5)
    finer = problem.operator
    assert len(set(finer.discretization.degrees.tolist())) == 2
    for operator, injection in zip(levels.operators, levels.injections, strict=True):
        low = injection.createVecRight()
        low.setArray(random.standard_normal(low.getLocalSize()))
        high = injection.createVecLeft()
        injection.mult(low, high)
        np.testing.assert_allclose(at_centres(operator, low), at_centres(finer, high), rtol=1e-10, atol=1e-11)
        finer = operator


def at_centres(operator, vector) -> np.ndarray:
    """Values [cell, component] of a function of polytopes at the centres of the base cells, by its operator."""
    given, disc = operator.arrays.to_device(vector.getArray().copy()), operator.fine.discretization
    values = operator.arrays.to_host(operator.expand(given), disc.dofmap.num_owned)[disc.dofmap.cell_dofs]
    corners = disc.element.nodes[[on[0] for on in disc.element.entity_dofs[0]]]
    table = disc.element.tabulate(corners.mean(axis=0, keepdims=True), 0)[0][0]
    return np.einsum("n,cnk->ck", table, values.reshape(len(values), len(table), -1))


def test_levels_are_nested():
    levels = problem_of(smooth_poisson(), 20, 2).callbacks.levels
    assert levels.counts == [200, 50]
    fine, coarse = (o.discretization for o in levels.operators)
    assert (coarse.polytopes.of_cell == fine.polytopes.parents(coarse.polytopes)[fine.polytopes.of_cell]).all()


def test_what_levels_take_from_finer_ones_is_what_they_find_themselves():
    for operator in problem_of(smooth_poisson(), 20, 2).callbacks.levels.operators:
        given = operator.discretization
        alone = PolytopicDG(given.mesh, given.physics, given.options, given.limits)
        assert given.finer is not None and alone.finer is None
        for name in ("lower", "upper", "first", "polytope_of"):
            np.testing.assert_array_equal(getattr(given.numbering, name), getattr(alone.numbering, name))
        np.testing.assert_array_equal(given.fine.neighbours.neighbour, alone.fine.neighbours.neighbour)
        np.testing.assert_array_equal(given.fine.extended_dofs, alone.fine.extended_dofs)
        np.testing.assert_allclose(given.penalty_numbers, alone.penalty_numbers, rtol=1e-14)


# Iterations -----------------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("degree, most", [(1, 20), (2, 20), (3, 26), (4, 16)])
def test_iterations_do_not_grow(degree, most):
    problems = [problem_of(smooth_poisson(), n, degree) for n in (10, 20, 40)]
    with petsc_options(ksp_rtol="1e-10"):
        found = [iterations(p) for p in problems]
    assert max(found) <= most, found
    assert len(problems[2].callbacks.levels.counts) >= 2 and krylov(problems[2]) == "cg"


def test_degrees_of_the_levels():
    assert [degrees_below(degree) for degree in (1, 2, 3, 4, 6, 9)] == [[], [1], [1], [2, 1], [3, 1], [4, 2, 1]]


@pytest.mark.full
@pytest.mark.parametrize("degree", [1, 2])
def test_iterations_in_three_dimensions(degree):
    found = [iterations(problem_of(smooth_poisson(), n, degree, "tetrahedron", 6)) for n in (3, 6)]
    assert max(found) <= 24, found


@pytest.mark.full
@pytest.mark.parametrize("cells", [4, 16])
def test_jumping_coefficients(cells):
    """A checkerboard of 1 and 1000, which polytopes do not follow."""
    for n in (16, 32):
        problem = problem_of(JUMPS, n, 2, cells=cells)
        problem.set_auxiliary("kappa", lambda x: 1.0 + 999.0 * (np.floor(4 * x).sum(axis=-1) % 2))
        assert iterations(problem) <= 30 and krylov(problem) == "cg"


def test_coefficients_that_change():
    """The levels follow auxiliary fields and constants: as few iterations as anew."""
    problem = problem_of(JUMPS, 16)
    for low, high in ((1.0, 1.0), (1.0, 1e4), (1e4, 1.0)):
        problem.set_auxiliary("kappa", lambda x, low=low, high=high: np.where(x[..., 0] > 0.5, high, low))
        assert iterations(problem) <= 24, (low, high)


@pytest.mark.full
def test_convection():
    """From diffusion to polytopes with Péclet numbers of thousands, in one problem whose constant changes."""
    problem = problem_of(WIND, 24)
    for wind, method in ((0, "cg"), (30, "fgmres"), (1e3, "fgmres"), (1e5, "fgmres"), (0, "cg")):
        problem.set_constants(wind=wind)
        assert iterations(problem) <= 20, wind
        assert krylov(problem) == method


@pytest.mark.full
def test_each_level_has_the_state_by_its_own_element():
    """Of first degree below second below fourth: the matrix of that scheme at the same affine state, in two chunks of
    cells."""
    flux = "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];"
    physics = Physics({"u": 1}, "f0[0] = -1;", flux, boundary=[Dirichlet("boundary", "g[0] = 1 + x[0] - 2*x[1];")])
    found = []
    for degree in (4, 1):
        problem = problem_of(physics, 5, degree, cells=1)
        u = problem.interpolate(lambda x: 1 + x[..., 0] - 2 * x[..., 1])
        calls = problem.callbacks
        calls.residual(None, u, problem.create_vec())
        calls.linearize(None, u, calls.jacobian, calls.preconditioning)
        found.append(calls.levels.matrices[1].mat if degree == 4 else calls.preconditioning)
    level, alone = (mat.getValuesCSR()[2] for mat in found)
    np.testing.assert_allclose(level, alone, rtol=1e-10, atol=1e-10 * abs(alone).max())


@pytest.mark.full
def test_newton():
    for n in (8, 16):
        problem = problem_of(NONLINEAR, n)
        assert iterations(problem) <= 15 * problem.newton_iterations <= 150 and krylov(problem) == "fgmres"


@pytest.mark.full
def test_a_solution_up_to_a_constant():
    mesh = petsc_hdg.Mesh.box((16, 16), comm=PETSc.COMM_SELF)
    mesh = petsc_hdg.agglomerate(mesh, groups=lambda x: (8 * x).astype(int) @ [8, 1])
    problem = Problem(mesh, FREE, Options(backend="poly_gpu", degree=2, check_kernels=False))
    assert iterations(problem) <= 20


@pytest.mark.full
def test_mixed_degrees():
    found = [
        iterations(problem_of(smooth_poisson(), n, degrees=lambda x: 1 + (3 * x[:, 0]).astype(int))) for n in (10, 20)
    ]
    assert max(found) <= 24, found


@pytest.mark.full
def test_own_penalties_beat_inherited_ones():
    """Galerkin products instead of matrices of the levels' own scheme take more iterations."""
    problem = problem_of(smooth_poisson(), 40, 2)
    own = iterations(problem)
    pc, calls = problem.snes.getKSP().getPC(), problem.callbacks
    matrix = calls.assembled.mat
    for place, injection in enumerate(calls.levels.injections):
        matrix = matrix.ptap(injection)
        matrix.setBlockSize(calls.levels.operators[place].discretization.block_size)
        pc.getMGSmoother(pc.getMGLevels() - 2 - place).setOperators(matrix)
    ksp = problem.snes.getKSP()
    x, b = matrix_vectors(calls.assembled.mat)
    ksp.solve(b, x)
    assert ksp.getIterationNumber() > 1.2 * own, (ksp.getIterationNumber(), own)


def matrix_vectors(mat):
    x, b = mat.createVecs()
    b.setArray(np.random.default_rng(3).standard_normal(b.getLocalSize()))
    return x, b


# Interior penalty -----------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("cell, most", [("triangle", 24), ("quadrilateral", 20)])
def test_agglomerates_below_interior_penalty(cell, most):
    for n in (8, 24):
        mesh = box_mesh(cell, (n, n), comm=PETSc.COMM_SELF)
        options = Options(backend="sipg_gpu", degree=2, pmat="agglomerates", check_kernels=False)
        problem = Problem(mesh, smooth_poisson(), options)
        assert iterations(problem) <= most and krylov(problem) == "cg"
        assert problem.callbacks.assembled is None
        mesh.destroy()


# Options --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, pmat, pc",
    [
        ({}, "agglomerates", "mg"),
        ({"pc_type": "mg"}, "agglomerates", "mg"),
        ({"fe_pmat": "aij"}, "aij", "bjacobi"),
        ({"pc_type": "gamg"}, "aij", "gamg"),
        ({"fe_pmat": "none", "ksp_max_it": "3000"}, "none", "jacobi"),
        ({"ksp_type": "preonly", "pc_type": "lu"}, "aij", "lu"),
    ],
)
def test_preconditioners_by_options(options, pmat, pc):
    with petsc_options(**options):
        mesh = petsc_hdg.agglomerate(box_mesh("triangle", (6, 6), comm=PETSc.COMM_SELF), 20)
        problem = Problem(mesh, smooth_poisson(), Options.from_petsc(backend="poly_gpu", degree=2, check_kernels=False))
        u = problem.solve()
    assert (problem.pmat, problem.snes.getKSP().getPC().getType()) == (pmat, pc)
    assert problem.errors(u)["L2"] < 2e-3


# Ranks ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def serial(mpirun):
    return json.loads(mpirun(1, SCRIPT).stdout.splitlines()[-1])


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks(mpirun, serial, ranks):
    """The same first level, nearly as few iterations, the same solution."""
    found = json.loads(mpirun(ranks, SCRIPT).stdout.splitlines()[-1])
    assert set(found) == set(serial)
    for name, values in serial.items():
        assert len(found[name]["owned"]) == ranks and sum(found[name]["owned"]) == values["owned"][0]
        assert found[name]["counts"][0] == values["counts"][0]
        for key in ("first", "injection"):
            assert found[name][key] == pytest.approx(values[key], rel=1e-11), (name, key)
        assert found[name]["L2"] == pytest.approx(values["L2"], rel=1e-5)
        assert found[name]["iterations"] <= values["iterations"] + 4
        assert found[name]["defect"] < 1e-11
