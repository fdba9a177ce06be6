"""A diffusivity that nearly vanishes where Newton's method begins: penalties follow the states until it converges."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_meshes import box_mesh

import petsc_hdg as fe
from petsc_hdg.physics import Symbols, library
from petsc_hdg.physics.symbols import divergence

EPS = 0.01
TORSION = 0.0736713532  # largest value of w on the unit square, -∇·∇w = 1 inside, w = 0 on its boundary


@pytest.fixture(scope="module")
def problem() -> fe.Problem:
    """-∇·((EPS + u²)∇u) = 1, so that w = EPS u + u³/3."""
    physics = fe.Physics(
        {"u": 1}, "f0[0] = -1;", f"for (d = 0; d < dim; ++d) f1[d] = ({EPS} + u[0]*u[0])*u_x[d];",
        boundary=[fe.Dirichlet("boundary", 0.0)], name="nearly degenerate",
    )  # fmt: skip
    mesh = box_mesh("triangle", (6, 6), comm=PETSc.COMM_SELF)
    return fe.Problem(mesh, physics, backend="poly_gpu", degree=2, check_kernels=False)


@pytest.mark.full
def test_one_run_with_penalties_of_the_start_stands_still(problem):
    problem.newton_iterations = problem.linear_iterations = 0
    problem.operator.restart()
    problem.solve_from(problem.create_vec())
    assert problem.snes.getConvergedReason() < 0


@pytest.mark.full
def test_converges_from_zero(problem):
    u = np.abs(problem.cell_values(problem.solve())["u"]).max()
    assert EPS * u + u**3 / 3 == pytest.approx(TORSION, rel=0.01)


@pytest.mark.parametrize("backend", ["sipg_gpu", pytest.param("poly_gpu", marks=pytest.mark.full)])
def test_penalties_grow_before_a_step_leaves_the_matrix_indefinite(backend):
    """1 + u² with a load of 50, from zero: diffusivities grow by a factor of 4 on the way, each time linear solvers
    took hundreds of iterations by penalties of states before. PETSc shows each run of one set of penalties."""
    physics = fe.Physics(
        {"u": 1}, "f0[0] = -50;", "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];",
        boundary=[fe.Dirichlet("boundary", 0.0)], name="loaded",
    )  # fmt: skip
    mesh = fe.Mesh.box((6, 6), simplex=backend == "poly_gpu", comm=PETSc.COMM_SELF)
    mesh = fe.agglomerate(mesh, 36) if backend == "poly_gpu" else mesh
    found = fe.Problem(mesh, physics, backend=backend, degree=3, check_kernels=False)
    u = np.abs(found.cell_values(found.solve())["u"]).max()
    assert u + u**3 / 3 == pytest.approx(50 * TORSION, rel=0.02)
    assert found.linear_iterations <= 60 and found.newton_iterations <= 10 and not found.direct


@pytest.mark.parametrize("backend", ["sipg_gpu", pytest.param("poly_gpu", marks=pytest.mark.full)])
def test_a_step_in_time_that_fails_is_tried_again_by_larger_penalties(backend):
    """(1 + |∇u|²/4)∇u on cells of half a wave: penalties of the state before the second step are too small in it."""
    s = Symbols(2, {"u": 1})
    exact = (1 + s.t) * sympy.sin(8 * s.x[0] + 1) * sympy.sin(8 * s.x[1] + 2)
    slope, law = sympy.Matrix([exact.diff(c) for c in s.x]), lambda g: (1 + g.dot(g) / 4) * g
    source = divergence(law(slope), s.x) - exact.diff(s.t) - 5000 * exact
    physics = fe.Physics(
        {"u": 1}, s.rate("u") + 5000 * s.value("u") + source, law(s.grad("u")), exact=exact,
        boundary=[fe.Dirichlet("boundary", exact)],
    )  # fmt: skip
    mesh = fe.Mesh.box((4, 4), simplex=False, comm=PETSc.COMM_SELF)
    problem = fe.Problem(mesh, physics, backend=backend, degree=2, check_kernels=False)
    u = problem.solve_in_time(problem.interpolate("exact"), 0.1, 0.05)
    assert problem.errors(u, 0.1)["L2"] < 0.2


ENERGY = """
    const PetscReal J = (1 + u_x[0])*(1 + u_x[3]) - u_x[1]*u_x[2], l = PetscLogReal(J);
    obj[0] = ((1 + u_x[0])*(1 + u_x[0]) + u_x[1]*u_x[1] + u_x[2]*u_x[2] + (1 + u_x[3])*(1 + u_x[3]) - 2)/2 - l + 2*l*l;
"""


def sheared(backend: str, **options) -> tuple[fe.Problem, float]:
    """A neo-Hookean beam of length 2 whose right end is moved up by 1/4 at once, and its energy."""
    physics = library.neo_hookean(
        2, lame_lambda=4.0, boundary=[fe.Dirichlet("left", [0, 0]), fe.Dirichlet("right", [0, 0.25])]
    )
    mesh = fe.Mesh.box((8, 4), upper=(2, 1), simplex=False, comm=PETSc.COMM_SELF)
    problem = fe.Problem(mesh, physics, backend=backend, degree=2, check_kernels=False, **options)
    with petsc_options(pc_type="lu"):
        return problem, problem.integral(ENERGY, problem.solve())


@pytest.mark.full
@pytest.mark.parametrize("theta", [0, 1])
def test_a_large_load_is_solved_at_once(theta):
    """From the linear extension of the data: where a jump of zero to the data met a large stress, the adjoint term
    would let the energy fall without end."""
    found, energy = sheared("sipg_gpu", sipg_theta=theta)
    assert energy == pytest.approx(sheared("cg_gpu")[1], rel=0.01)
    assert found.newton_iterations <= 6


def degenerate(**options) -> fe.Problem:
    """-∇·(|∇u|²∇u) = 1 with data far from zero, on triangles each of which is a polytope."""
    physics = library.p_laplacian(p=4.0, boundary=[fe.Dirichlet("boundary", "g[0] = sin(3*x[0])*x[1];")])
    mesh = fe.agglomerate(fe.Mesh.box((6, 6), comm=PETSc.COMM_SELF), 36)
    return fe.Problem(mesh, physics, backend="poly_gpu", degree=2, check_kernels=False, **options)


@pytest.mark.parametrize("theta", [0, pytest.param(1, marks=pytest.mark.full)])
def test_a_degenerate_law_is_solved_from_zero(theta):
    """Diffusivities are those of zero gradients, but for the jumps to the data, which penalties see."""
    problem = degenerate(sipg_theta=theta)
    of_cg = fe.Problem(fe.Mesh.box((6, 6), comm=PETSc.COMM_SELF), problem.physics, degree=2, check_kernels=False)
    means = [found.integral("u[0]", found.solve()) for found in (problem, of_cg)]
    assert means[0] == pytest.approx(means[1], rel=0.005)
    assert problem.linear_iterations < 100 and problem.newton_iterations <= 12


def known(mesh: fe.Mesh, **options) -> fe.Problem:
    """u = x² + y of -∇·((|∇u|² + 1e-6)∇u) = f."""
    physics = library.p_laplacian(
        "f0[0] = 24*x[0]*x[0] + 2.000002;", p=4.0, epsilon=1e-3, exact="u[0] = x[0]*x[0] + x[1];",
        boundary=[fe.Dirichlet("boundary", "exact")],
    )  # fmt: skip
    return fe.Problem(mesh, physics, check_kernels=False, **options)


@pytest.mark.full
def test_a_degenerate_law_with_a_known_solution():
    mesh = fe.agglomerate(fe.Mesh.box((4, 4), comm=PETSc.COMM_SELF), 16)
    problem = known(mesh, backend="poly_gpu", degree=2)
    assert problem.errors(problem.solve())["L2"] < 1e-8
    assert problem.linear_iterations < 150


@pytest.mark.full
def test_penalties_that_grow_with_each_step_end_with_a_sentence():
    problem = known(fe.Mesh.box((6, 6), simplex=False, comm=PETSc.COMM_SELF), backend="sipg_gpu", degree=3)
    problem.snes.setTolerances(max_it=12)
    with pytest.raises(fe.SolveError, match="penalties of interior penalty do not settle"):
        problem.solve()
