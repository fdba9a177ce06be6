"""First-order continuous functions below matrix-free CG of higher degree and below the traces of hybridizable DG."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_meshes import box_mesh
from sample_physics import NONLINEAR, WIND, smooth_poisson
from subspace_gap import subspace_gap

from petsc_hdg.database import is_given
from petsc_hdg.krylov.level_bounds import LevelBounds
from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Physics, library
from petsc_hdg.problem import Problem
from petsc_hdg.problem.linear import direct_solvers
from petsc_hdg.problem.linear.preconditioners import smoothing

SCHEMES = [("cg_gpu", 3), ("hdg_gpu", 2)]
TIGHT = {"ksp_rtol": "1e-10"}


def problem_of(backend, degree, cell="triangle", faces=(8, 8), physics=None, amplitude=0.15) -> Problem:
    options = Options(backend=backend, degree=degree, pmat="conforming", check_kernels=False)
    mesh = box_mesh(cell, faces, amplitude=amplitude, comm=PETSc.COMM_SELF)
    return Problem(mesh, physics or smooth_poisson(), options)


def solution(problem, **options) -> PETSc.Vec:
    with petsc_options(**TIGHT, **options):
        problem.snes.setFromOptions()
        return problem.solve()


@pytest.mark.full
@pytest.mark.parametrize("backend, degree, cell, most", [
    ("cg_gpu", 2, "triangle", 12), ("cg_gpu", 4, "quadrilateral", 16), ("cg_gpu", 3, "tetrahedron", 18),
    ("hdg_gpu", 1, "triangle", 12), ("hdg_gpu", 4, "triangle", 13), ("hdg_gpu", 2, "tetrahedron", 18),
    ("hdg_gpu", 2, "quadrilateral", 14),
])  # fmt: skip
def test_iterations_do_not_grow(backend, degree, cell, most):
    found = []
    for n in (3, 5) if cell == "tetrahedron" else (8, 16):
        problem = problem_of(backend, degree, cell, (n,) * (3 if cell == "tetrahedron" else 2))
        problem.solve()
        ksp = problem.snes.getKSP()
        assert (ksp.getType(), ksp.getPC().getType()) == ("cg", "mg")
        found.append(problem.linear_iterations)
    assert max(found) <= most, found


@pytest.mark.parametrize("backend, degree", SCHEMES)
def test_the_coarse_matrix_is_the_scheme_on_the_subspace(backend, degree):
    """Pᵀ A P = A_0: local problems of hybridizable DG have P1 solutions where the trace is P1."""
    problem = problem_of(backend, degree, faces=(4, 3))
    assert subspace_gap(problem, [3]) < 1e-11


@pytest.mark.full
@pytest.mark.parametrize("backend, degree", SCHEMES)
@pytest.mark.parametrize("what", ["nonlinear", "elastic", "wind"])
def test_the_solution_is_that_of_other_preconditioners(backend, degree, what):
    dirichlet = [Dirichlet("left", "g[0] = 0; g[1] = 0;")]
    physics = {
        "nonlinear": NONLINEAR,
        "elastic": library.elasticity(2, "f0[0] = 0; f0[1] = 1;", boundary=dirichlet),
        "wind": WIND,
    }[what]
    problem = problem_of(backend, degree, physics=physics)
    if what == "wind":
        problem.set_constants(wind=100.0)
    u = solution(problem)
    assert problem.linear_iterations <= 40 * max(1, problem.newton_iterations)
    given = Options(backend=backend, degree=degree, pmat="aij", check_kernels=False)
    other = Problem(problem.mesh, problem.physics, given)
    expected = solution(other, pc_type="lu", ksp_type="preonly")
    assert (u - expected).norm() < 1e-6 * expected.norm()


SHEAR = """
    PetscReal s = 1;
    for (d = 0; d < 4; ++d) s += u_x[d]*u_x[d];
    for (d = 0; d < 4; ++d) f1[d] = (1 + 1/sqrt(s))*u_x[d];
"""


@pytest.mark.full
@pytest.mark.parametrize("backend", ["cg_gpu", "sipg_gpu"])
def test_nonlinear_physics_of_as_many_components_as_dimensions(backend, monkeypatch):
    """The rigid-body modes leave rows of zeros on levels below the coarse one, where incomplete LU smooths."""
    monkeypatch.setattr(direct_solvers, "FEW_OF_LEVELS", {2: 300})
    physics = Physics({"u": 2}, "f0[0] = -1; f0[1] = -2;", SHEAR, boundary=[Dirichlet("boundary", [0.0, 0.0])])
    problem = problem_of(backend, 2, "quadrilateral", (14, 14), physics)
    u = solution(problem)
    coarse = problem.snes.getKSP().getPC().getMGCoarseSolve().getPC()
    assert coarse.getPythonContext().cycle.levels if backend == "cg_gpu" else coarse.getMGLevels() > 1
    assert problem.linear_iterations <= 40 * problem.newton_iterations
    other = Problem(problem.mesh, physics, Options(backend=backend, degree=2, pmat="aij", check_kernels=False))
    expected = solution(other, pc_type="lu", ksp_type="preonly")
    assert (u - expected).norm() < 1e-8 * expected.norm()


@pytest.mark.parametrize("backend, degree", SCHEMES)
def test_states_are_averaged_at_vertices(backend, degree):
    problem = problem_of(backend, degree, faces=(5, 4), physics=NONLINEAR)
    conforming = problem.callbacks.conforming
    u = conforming.interpolation.createVecLeft()
    u.set(2.5)
    np.testing.assert_allclose(conforming.average(u).getArray(), 2.5, atol=1e-13)


@pytest.mark.parametrize("backend, degree", [("cg_gpu", 3), ("sipg_gpu", 2)])
def test_a_factorization_asked_for_after_the_problem_has_a_matrix(backend, degree):
    levels = problem_of(backend, degree, faces=(4, 3))
    problem = Problem(levels.mesh, smooth_poisson(), backend=backend, degree=degree)
    assert problem.pmat == "conforming"
    with petsc_options(ksp_type="preonly", pc_type="lu"):
        u = problem.solve()
    assert problem.pmat == "aij" and problem.linear_iterations == 1
    assert (u - solution(levels)).norm() < 1e-8 * u.norm()


@pytest.mark.parametrize("wind, symmetric", [(0.0, True), (100.0, False)])
def test_gamg_knows_a_symmetric_coarse_matrix(wind, symmetric):
    problem = problem_of("cg_gpu", 2, physics=WIND, faces=(5, 4))
    problem.set_constants(wind=wind)
    problem.solve()
    mat = problem.callbacks.conforming.mat
    assert mat.isSymmetricKnown() == (True, symmetric)
    assert mat.isSymmetric(1e-12) == symmetric


@pytest.mark.full("False")
@pytest.mark.parametrize("free", [False, True])
def test_coarse_levels_of_cpus_take_lu_up_to_a_size(free, monkeypatch):
    """Not where conditions leave constants free; multigrid gives the same solution."""
    physics = Physics(
        {"u": 1}, "f0[0] = -PETSC_PI*PETSC_PI*cos(PETSC_PI*x[0]);", "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[] if free else [Dirichlet("left", 1.0)],
    )  # fmt: skip
    kinds, norms = [], []
    for most in (1000, 500):
        monkeypatch.setattr(direct_solvers, "FEW_OF_LEVELS", {2: most})
        problem = problem_of("cg_gpu", 2, faces=(24, 24), physics=physics, amplitude=0.0)
        norms.append(solution(problem).norm())
        kinds.append(problem.snes.getKSP().getPC().getMGCoarseSolve().getPC().getType())
    assert problem.callbacks.conforming.mat.getSize()[0] in (600, 625), "the premise"
    assert kinds == (["python", "python"] if free else ["lu", "python"])
    assert norms[0] == pytest.approx(norms[1], rel=1e-8)


def test_one_rank_multiplies_coarse_matrices_by_two_products():
    found = []
    for given in ({}, {"matptap_via": "scalable"}):
        with petsc_options(mg_coarse_pc_gamg_type="agg", **given):
            problem = problem_of("cg_gpu", 2, faces=(24, 24))
            with smoothing(problem, problem.snes):
                found.append(PETSc.Options().getString("matptap_via"))
            u = solution(problem)
            assert problem.snes.getKSP().getPC().getMGCoarseSolve().getPC().getMGLevels() > 1
        found.append((problem.linear_iterations, u.norm()))
    assert (found[0], found[2]) == ("rap", "scalable") and not is_given("", "matptap_via")
    assert found[1] == pytest.approx(found[3], rel=1e-9)


def test_levels_are_set_up_at_states_of_the_scheme_alone(monkeypatch):
    """The extension of data for the first guess fills the coarse matrix before the scheme has been linearized."""
    update, found = LevelBounds.update, []

    def told(bounds):
        found.append(problem.operator.linearizations)
        update(bounds)

    monkeypatch.setattr(LevelBounds, "update", told)
    f1 = "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];"
    physics = Physics({"u": 1}, "f0[0] = -1;", f1, boundary=[Dirichlet("boundary", "g[0] = x[0];")])
    problem = problem_of("cg_gpu", 2, physics=physics)
    with petsc_options(snes_lag_preconditioner="1"):  # new levels in each step
        problem.solve()
    assert found == [*range(1, problem.newton_iterations + 1)]


@pytest.mark.parametrize("backend, u_depends, smoother", [
    ("cg_gpu", False, "chebyshev"), ("cg_gpu", True, "chebyshev"),
    ("sipg_gpu", False, "gmres"), ("sipg_gpu", True, "chebyshev"),
])  # fmt: skip
def test_smoothers_of_nonlinear_physics(backend, u_depends, smoother):
    """Symmetric derivatives under penalties that follow the state keep GMRES; diffusion that depends on u does not."""
    factor = "1 + u[0]*u[0]" if u_depends else "1 + u_x[0]*u_x[0] + u_x[1]*u_x[1]"
    f1 = f"for (d = 0; d < dim; ++d) f1[d] = ({factor})*u_x[d];"
    physics = Physics({"u": 1}, "f0[0] = -1;", f1, boundary=[Dirichlet("boundary", "g[0] = x[0];")])
    problem = problem_of(backend, 2, physics=physics)
    assert problem.snes.getKSP().getPC().getMGSmoother(1).getType() == smoother


def test_states_of_the_level_between_are_averages():
    """Of a state in the subspace they are the state itself, and those below its values at vertices."""
    problem = problem_of("sipg_gpu", 2, "tetrahedron", (2, 2, 2), NONLINEAR)
    conforming = problem.callbacks.conforming
    state, _ = conforming.above.mat.createVecs()
    state.setArray(np.random.default_rng(4).standard_normal(state.getSize()))
    found = conforming.above.average(conforming.above.interpolation * state)
    assert (found - state).norm() < 1e-13
    below = conforming.average(found)
    low = conforming.interpolation * below
    assert below.norm() > 0 and conforming.average(low).getArray() == pytest.approx(below.getArray(), abs=1e-13)
    solution(problem)
    assert problem.snes.getKSP().getPC().getMGLevels() == 3 and problem.linear_iterations <= 30


# Interior penalty on simplices, and where a diffusivity steps --------------------------------------------------------


@pytest.mark.parametrize("solvers", [False, True])
def test_simplices_have_a_level_between(solvers):
    """Two levels take 36 iterations. The level is assembled where PETSc smooths it."""
    problem = problem_of("sipg_gpu", 2, "tetrahedron", (5, 5, 5))
    problem.device.has_solvers = solvers
    u = solution(problem)
    above = problem.callbacks.conforming.above
    assert problem.snes.getKSP().getPC().getMGLevels() == 3 and ("aij" in above.mat.getType()) != solvers
    assert problem.linear_iterations <= 18 and not problem.direct
    residual = u.duplicate()
    problem.callbacks.residual(None, u, residual)
    assert residual.norm() < 1e-6
    assert problem_of("sipg_gpu", 2, "hexahedron", (2, 2, 2)).callbacks.conforming.above is None


def test_few_unknowns_of_the_level_between_are_joined_on_gpus(monkeypatch):
    """It has no entries there, of which an inverse would be made."""
    expected = solution(problem_of("sipg_gpu", 2, faces=(4, 3)))
    problem = problem_of("sipg_gpu", 2, faces=(4, 3))
    for name in ("has_solvers", "is_gpu"):
        monkeypatch.setattr(problem.device, name, True)
    found = solution(problem)
    assert problem.callbacks.conforming.above.mat.getType() == "python" and problem.linear_iterations <= 12
    np.testing.assert_allclose(found.array, expected.array, atol=1e-7 * expected.norm())


def stepping(where: str, jump: float = 100.0) -> Physics:
    """A diffusivity that is larger where a condition on x holds."""
    flux = f"for (d = 0; d < dim; ++d) f1[d] = ({where} ? {jump} : 1.0)*u_x[d];"
    return Physics({"u": 1}, "f0[0] = -1;", flux, boundary=[Dirichlet("left", "g[0] = x[1];")])


DISC = stepping("(x[0]-0.5)*(x[0]-0.5) + (x[1]-0.47)*(x[1]-0.47) < 0.09")


@pytest.mark.parametrize("degree", [2, pytest.param(4, marks=pytest.mark.full)])
def test_the_level_between_is_the_scheme_without_jumps(degree):
    """Pᵀ A P x = A_1 x, where facets follow the step and quadrature is exact."""
    problem = problem_of("sipg_gpu", degree, "triangle", (4, 4), stepping("x[0] < 0.5"), amplitude=0.0)
    problem.solve()
    above = problem.callbacks.conforming.above
    x = above.mat.createVecRight()
    x.setArray(np.random.default_rng(3).standard_normal(x.getSize()))
    fine = above.interpolation * x
    wanted = above.interpolation.transpose(PETSc.Mat()) * (problem.callbacks.jacobian * fine)
    gap = wanted - above.mat * x
    assert gap.norm() < 1e-11 * wanted.norm()
    assert problem.callbacks.conforming.interpolation.getSize()[0] == x.getSize()


@pytest.mark.parametrize("solvers", [False, True])
@pytest.mark.parametrize("cell, degree, most", [("triangle", 2, 28), ("quadrilateral", 3, 28)])
def test_steps_inside_of_cells_cost_few_iterations(cell, degree, most, solvers):
    """Two levels take 357 and 48 iterations."""
    problem = problem_of("sipg_gpu", degree, cell, (16, 16), DISC, amplitude=0.0)
    problem.device.has_solvers = solvers
    u = solution(problem)
    assert problem.snes.getKSP().getPC().getMGLevels() == 3
    assert problem.linear_iterations <= most and not problem.direct
    residual = u.duplicate()
    problem.callbacks.residual(None, u, residual)
    assert residual.norm() < 1e-6
    assert problem_of("sipg_gpu", 1, cell, physics=DISC).callbacks.conforming.above is None
