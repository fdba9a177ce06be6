"""The default preconditioner of hybridizable DG: two levels where the derivative of the physics is symmetric, or
nearly, the assembled trace matrix elsewhere and where two levels fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_meshes import DIM, SHAPES, box_mesh
from sample_physics import smooth_poisson
from sample_trace_levels import PHYSICS

import petsc_hdg as fe
from petsc_hdg.discretizations.symmetry import derivative_kind
from petsc_hdg.options import Options
from petsc_hdg.physics import library
from petsc_hdg.problem import assembled_fallback
from petsc_hdg.problem.linear import direct_solvers

SCRIPT = Path(__file__).with_name("run_trace_levels.py")
TIGHT = {"ksp_rtol": "1e-11", "snes_rtol": "1e-11"}


def made(physics: fe.Physics, cell: str = "triangle", faces=(8, 8), degree: int = 2, **settings) -> fe.Problem:
    options = Options(**{"backend": "hdg_gpu", "degree": degree, "check_kernels": False, **settings})
    return fe.Problem(box_mesh(cell, faces, comm=PETSc.COMM_SELF), physics, options)


@pytest.mark.parametrize("name", PHYSICS)
def test_what_the_physics_chooses(name):
    physics, kind = PHYSICS[name]
    is_body = physics.num_components == 3
    assert {derivative_kind(physics, dim) for dim in ((3,) if is_body else (2, 3))} == {kind}
    problem = made(physics, *(("tetrahedron", (1, 1, 1)) if is_body else ("triangle", (2, 2))))
    wanted = "aij" if kind == "other" else "conforming"
    assert problem.pmat == wanted
    why = {"symmetric": "symmetric", "diffusive": "follow the state", "other": "not symmetric"}
    why = {**why, "coupled": "without convection", "convective": "of little convection in a cell"}[kind]
    line = next(line for line in problem.view().splitlines() if "preconditioner:" in line)
    assert wanted in line and line.endswith(why)


# Options of PETSc, settings of the problem, matrix.
CHOICES = {
    "nothing": ({}, {}, "conforming"),
    "mg": ({"pc_type": "mg"}, {}, "conforming"),
    "the method of the user": ({"ksp_type": "gmres"}, {}, "conforming"),
    "gamg": ({"pc_type": "gamg"}, {}, "aij"),
    "lu": ({"pc_type": "lu", "ksp_type": "preonly"}, {}, "aij"),
    "jacobi": ({"pc_type": "jacobi"}, {}, "aij"),
    "aij": ({}, {"pmat": "aij"}, "aij"),
    "none": ({}, {"pmat": "none"}, "none"),
    "trace matrix aij": ({}, {"hdg_trace_mat": "aij"}, "aij"),
    "trace matrix of elements": ({}, {"hdg_trace_mat": "element"}, "conforming"),
    "multigrid in single precision": ({}, {"pmat_precision": "single"}, "conforming"),
    "single": ({"ksp_rtol": "1e-5"}, {"precision": "single"}, "conforming"),
    "degree 0": ({}, {"degree": 0}, "conforming"),
    "degree 5": ({}, {"degree": 5}, "conforming"),
}


@pytest.mark.full
@pytest.mark.parametrize("name", CHOICES)
def test_what_options_choose(name):
    """And the solution is the same, and `-fe_view` gives no wrong reason."""
    options, settings, wanted = CHOICES[name]
    physics = PHYSICS["Poisson"][0]
    with petsc_options(**options):
        problem = made(physics, **settings)
        assert problem.pmat == wanted
        u = problem.solve()
    same = {name: settings[name] for name in ("degree", "precision") if name in settings}
    with petsc_options(pc_type="lu", ksp_type="preonly"):
        expected = made(physics, pmat="aij", **same).solve()
    assert (u - expected).norm() < (1e-3 if "single" in same.values() else 1e-8) * expected.norm()
    assert ("because" in problem.view().split("preconditioner: ")[-1].splitlines()[0]) == (wanted == "conforming")


def test_solvers_of_the_users_own_get_the_matrix():
    snes, problem = PETSc.SNES().create(PETSc.COMM_SELF), made(PHYSICS["Poisson"][0])
    problem.attach(snes)
    assert problem.pmat == "aij" and problem.callbacks.conforming is None
    assert snes.getJacobian()[1] == problem.callbacks.assembled.mat


# Physics, cell, faces, degree; most iterations of all Newton steps, and most beside those of the assembled matrix.
COUNTS = [
    ("Poisson", "triangle", (16, 16), 1, 10, 0.5), ("Poisson", "triangle", (16, 16), 3, 11, 0.5),
    ("Poisson", "quadrilateral", (12, 12), 2, 9, 0.5), ("Poisson", "tetrahedron", (4, 4, 4), 2, 17, 0.65),
    ("Poisson", "hexahedron", (4, 4, 4), 1, 9, 0.65), ("Poisson", "triangle", (16, 16), 0, 10, 0.6),
    ("coefficient", "triangle", (16, 16), 2, 100, 0.5), ("coefficient", "quadrilateral", (12, 12), 1, 75, 0.75),
    ("reaction", "quadrilateral", (12, 12), 2, 9, 0.8), ("no condition", "triangle", (12, 12), 3, 12, 0.5),
    ("no condition", "quadrilateral", (12, 12), 1, 9, 0.5), ("Robin", "triangle", (12, 12), 2, 11, 0.5),
    ("coupled", "triangle", (12, 12), 2, 10, 0.5), ("cross diffusion", "quadrilateral", (12, 12), 1, 20, 0.6),
    ("cubic reaction", "triangle", (12, 12), 2, 14, 0.65), ("p-Laplacian", "triangle", (12, 12), 2, 80, 1.0),
    ("1 + u²", "triangle", (12, 12), 2, 20, 0.65), ("1 + v², 1 + u²", "triangle", (12, 12), 2, 20, 0.65),
    ("1 + u²", "quadrilateral", (12, 12), 1, 16, 0.75),
    ("coupled one way", "triangle", (12, 12), 2, 9, 0.65), ("turned tensor", "quadrilateral", (12, 12), 3, 13, 1.1),
    ("wind", "triangle", (12, 12), 2, 10, 0.6),
]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("name, cell, faces, degree, most, part", COUNTS)
def test_iterations_are_few_and_the_solution_is_the_same(name, cell, faces, degree, most, part):
    physics, kind = PHYSICS[name]
    counts, means, norms = [], [], []
    for settings in ({}, {"pmat": "aij"}):
        problem = made(physics, cell, faces, degree, **settings)
        if name == "coefficient":
            problem.set_auxiliary("k", lambda x: 10.0 ** (6 * (np.floor(8 * x).sum(axis=-1) % 2)))
        problem.solve()
        counts.append(problem.linear_iterations)
        with petsc_options(**TIGHT):
            problem.snes.setFromOptions()
            u = problem.solve()
        means.append(problem.integral("u[0]*(1 + x[0])", u))
        norms.append(u.norm())
    assert problem.pmat == "aij" and problem.snes.getKSP().getPC().getType() == "gamg"
    assert counts[0] <= min(most, part * counts[1]), counts
    if name != "no condition":  # whose constant is anyone's
        assert abs(norms[0] - norms[1]) < 1e-7 * norms[1]
        assert abs(means[0] - means[1]) < 1e-7 * abs(means[1])


@pytest.mark.full
def test_an_elastic_body_whose_load_turns():
    """10 000 iterations by multigrid on the assembled matrix are not enough."""
    problem = made(PHYSICS["turning load"][0], "tetrahedron", (4, 4, 4), 1)
    u = problem.solve()
    assert problem.pmat == "conforming" and problem.linear_iterations <= 45
    with petsc_options(pc_type="lu", ksp_type="preonly"):
        expected = made(problem.physics, "tetrahedron", (4, 4, 4), 1).solve()
    assert (u - expected).norm() < 1e-6 * expected.norm()


@pytest.mark.full("1 + u")
@pytest.mark.parametrize(
    "name, cell, begin, part", [("heat", "quadrilateral", 1.0, 0.5), ("heat, 1 + u²", "triangle", 0.0, 0.8)]
)
def test_steps_in_time(name, cell, begin, part):
    """By the same levels, in fewer iterations than by the assembled matrix, to the same state."""
    found = []
    with petsc_options(ksp_max_it="100", ksp_rtol="1e-11", snes_rtol="1e-11"):
        for settings in ({}, {"pmat": "aij"}):
            problem = made(PHYSICS[name][0], cell, (16, 16), **settings)
            u = problem.solve_in_time(problem.interpolate(begin), 0.04, 0.02)
            found.append((problem.pmat, problem.linear_iterations, problem.integral("u[0]*(1 + x[0])", u)))
    (levels, few, mean), (assembled, many, expected) = found
    assert (levels, assembled) == ("conforming", "aij") and few <= part * many, (few, many)
    assert abs(mean - expected) < 1e-8 * abs(expected)


@pytest.mark.parametrize("w, wanted", [(10.0, "conforming"), (1e4, "aij")])
def test_wind_chooses_by_the_peclet_number(w, wanted):
    problem = made(PHYSICS["wind"][0])
    problem.set_constants(w=w)
    problem.solve()
    assert problem.pmat == wanted and problem.linear_iterations <= 12
    assert {"aij": "is large", "conforming": "of little convection"}[wanted] in problem.view()
    problem.set_constants(w=1e5)
    problem.solve()
    assert problem.pmat == "aij" and problem.linear_iterations <= 12, "the solver follows the data"


@pytest.mark.full
@pytest.mark.parametrize("cell", SHAPES)
def test_distorted_cells(cell):
    """Known solutions, default solvers."""
    problem = made(smooth_poisson(), cell, (8, 8) if DIM[cell] == 2 else (4, 4, 4), 2)
    u = problem.solve()
    assert problem.pmat == "conforming" and problem.linear_iterations <= 17
    assert problem.errors(u)["L2"] < 4e-4


@pytest.mark.parametrize("poisson, most", [(0.3, 24), (0.49, 50)])
def test_elasticity(poisson, most):
    """Nearly incompressible too, in fewer iterations than by the assembled matrix."""
    mu, lame = 0.5 / (1 + poisson), poisson / ((1 + poisson) * (1 - 2 * poisson))
    clamped = [fe.Dirichlet("left", [0.0, 0.0])]
    physics = library.elasticity(
        2, "f0[0] = 0; f0[1] = 1;", lame_lambda=lame, mu=mu, boundary=clamped, stabilization="2*mu"
    )
    counts = []
    for settings in ({}, {"pmat": "aij"}):
        problem = made(physics, **settings)
        problem.solve()
        counts.append(problem.linear_iterations)
    assert counts[0] <= min(most, counts[1]), counts


@pytest.mark.parametrize("cell", ["triangle", "quadrilateral"])
def test_an_indefinite_matrix_is_assembled(cell, monkeypatch):
    """Of Helmholtz' equation, as soon as conjugate gradients find out; other data go on so. Without any LU."""
    monkeypatch.setattr(direct_solvers, "most_of_failures", lambda problem: 100)
    monkeypatch.setattr(direct_solvers, "IN_SPACE", 1)
    problem = made(PHYSICS["Helmholtz"][0], cell)
    assert problem.pmat == "conforming"
    u, again = problem.solve(), problem.solve()
    ksp = problem.snes.getKSP()
    assert (problem.pmat, ksp.getType(), ksp.getPC().getType()) == ("aij", "fgmres", "gamg")
    assert problem.callbacks.conforming is None and problem.symmetric is False
    with petsc_options(pc_type="lu", ksp_type="preonly"):
        expected = made(problem.physics, cell, pmat="aij").solve()
    for found in (u, again):
        assert (found - expected).norm() < 1e-6 * expected.norm()


def test_what_the_user_asked_for_is_not_replaced():
    with petsc_options(ksp_type="cg"):
        for settings in ({"pmat": "conforming"}, {}):
            problem = made(PHYSICS["Helmholtz"][0], **settings)
            with pytest.raises(fe.SolveError, match="definite; -ksp_type fgmres takes any"):
                problem.solve()
            assert problem.pmat == settings.get("pmat", "aij")


@pytest.mark.parametrize("before", [False, True])
def test_a_pc_that_the_user_sets_in_the_solver_has_a_matrix(before):
    """By code, or by options that came after the solver; before the first solve or later."""
    problem = made(PHYSICS["Poisson"][0])
    u = problem.solve() if before else None
    problem.snes.getKSP().getPC().setType("lu")
    v = problem.solve()
    assert problem.pmat == "aij" and problem.linear_iterations == 1
    assert u is None or (u - v).norm() < 1e-8 * v.norm()


def test_the_constant_of_pure_natural_conditions_survives_another_matrix():
    """The null space of the levels is that of the assembled matrix too."""
    problem = made(PHYSICS["no condition"][0])
    u = problem.solve()
    expected = problem.integral("u[0]*x[0]", u) - 0.5 * problem.integral("u[0]", u)
    ksp = problem.snes.getKSP()
    ksp.setConvergedReason(PETSc.KSP.ConvergedReason.DIVERGED_BREAKDOWN)
    assert assembled_fallback.changes_course(problem, problem.snes) and problem.pmat == "aij"
    u, assembled = problem.solve(), problem.callbacks.assembled.mat
    assert assembled.getNullSpace().handle and assembled.getNullSpace().test(assembled)
    assert ksp.getPC().getType() == "gamg" and ksp.getConvergedReason() > 0
    found = problem.integral("u[0]*x[0]", u) - 0.5 * problem.integral("u[0]", u)
    assert abs(found - expected) < 1e-7 * abs(expected)


def test_a_nonlinear_problem_goes_on_with_the_matrix():
    """Newton's method from the state it was at."""
    physics = fe.Physics(
        {"u": 1},
        "f0[0] = -40*u[0] + u[0]*u[0]*u[0] - 1;",
        "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[fe.Dirichlet("boundary", 0.0)],
    )
    problem = made(physics)
    guess = problem.create_vec()
    u = problem.solve(guess)
    assert problem.derivative == "symmetric" and problem.pmat == "aij"
    expected = made(physics, pmat="aij").solve(guess)
    assert (u - expected).norm() < 1e-6 * expected.norm()


def test_ranks_agree(mpirun):
    """On the matrix, and on the solution whatever the partition."""
    lines = [mpirun(ranks, SCRIPT, timeout=240).stdout.splitlines()[-4:] for ranks in (1, 3)]
    for alone, many in zip(*(map(str.split, each) for each in lines), strict=True):
        assert alone[:2] == many[:2]
        assert abs(float(alone[3]) - float(many[3])) < 1e-8 * abs(float(alone[3]))
        assert many[1] == "aij" or int(many[2]) <= int(alone[2]) + 4
    assert [line.split()[1] for line in lines[0]] == ["conforming", "conforming", "aij", "aij"]


def test_a_matrix_that_comes_between_two_linearizations_in_time():
    """As where two levels fail in a step: the next linearization has the same data, and no entries yet."""
    physics = fe.Physics({"u": 1}, "u_t - 1", "(1 + x[0])*u_x[d]", boundary=fe.Dirichlet("left", 0.0))
    problem = fe.Problem(fe.Mesh.box((2, 2, 2), comm=PETSc.COMM_SELF), physics, degree=1, backend="hdg_gpu")
    calls, u = problem.callbacks, problem.create_vec()
    for _ in range(2):
        calls.ijacobian(None, 0.0, u, u.copy(), 10.0, calls.jacobian, calls.preconditioning)
        assembled_fallback.take_matrix(problem)
    x, entries = calls.assembled.mat.createVecs()
    x.setRandom()
    product = entries.duplicate()
    calls.assembled.mat.mult(x, entries)
    calls.solved.mult(x, product)
    assert (entries - product).norm() < 1e-12 * product.norm()
