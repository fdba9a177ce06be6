"""Small systems that are not definite: LU by default, from the text or after iterations that fail; users win."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from run_direct import CASES, box, helmholtz, modes, numbers, stokes, stretched, wind

import petsc_hdg as fe
from petsc_hdg.discretizations.sipg.scheme import InteriorPenalty
from petsc_hdg.options import loses_levels
from petsc_hdg.physics import library
from petsc_hdg.problem.linear import cell_measures, direct_solvers

SCRIPT = Path(__file__).with_name("run_direct.py")


@pytest.mark.parametrize(
    "name, reason, most",
    [
        ("enclosed", "saddle point: the equation of 'pressure' has no terms of 'pressure'", 3),
        ("open", "saddle point: the equation of 'pressure'", 3),
        ("wind", "cell Péclet number is", 3),
        ("rubber", "the bulk stiffness is about 5e+03 times the shear stiffness", 3),
        ("layers", "diffusion in the cells is about 3.6e+03 times as strong along one direction as along another", 3),
        ("stiff", "cg with mg did not converge in 50 iterations", 53),
        ("waves", "cg with mg found the matrix indefinite in", 20),
    ],
)
@pytest.mark.filterwarnings("ignore:the cell Péclet number")
def test_defaults_solve_what_iterations_do_not(name, reason, most):
    problem = CASES[name](PETSc.COMM_SELF)
    found = numbers(problem)
    assert reason in found["direct"] and found["its"] <= most and found["left"] < 1e-8
    assert reason in problem.view() and "linear solver: LU, because" in problem.view()
    problem.solve()
    assert problem.linear_iterations <= 3, "it stays"


@pytest.mark.filterwarnings("ignore:the cell Péclet number")
def test_ranks_agree(mpirun):
    found = json.loads(mpirun(3, SCRIPT).stdout.splitlines()[-1])
    for name, make in CASES.items():
        alone = numbers(make(PETSc.COMM_SELF))
        assert found[name]["direct"] and found[name]["left"] < 1e-8
        assert found[name]["energy"] == pytest.approx(alone["energy"], rel=1e-7)
    large = found["large stiff"]
    assert "in 50 iterations" in large["direct"] and abs(large["its"] - found["stiff"]["its"]) <= 2
    assert large["left"] < 1e-8 and large["energy"] == pytest.approx(found["stiff"]["energy"], rel=1e-7)
    alone, flat = numbers(stretched(PETSc.COMM_SELF)), found["stretched"]
    assert flat["factors"] and not flat["direct"] and flat["its"] <= 30
    assert flat["left"] < 1e-8 and flat["energy"] == pytest.approx(alone["energy"], rel=1e-7)
    assert found["modes"]["left"] < 1e-7
    assert found["modes"]["energy"] == pytest.approx(numbers(modes(PETSc.COMM_SELF))["energy"], rel=1e-6)


@pytest.mark.full
def test_factors_serve_where_a_preconditioner_cannot_be_set_up(monkeypatch):
    """As GAMG of some matrices cannot, which are finite."""
    failed, reason = [], PETSc.KSP.ConvergedReason.DIVERGED_PCSETUP_FAILED
    physics = fe.Physics({"u": 1}, "u[0]*u[0] - 1", "(1 + u[0]*u[0])*u_x[d]", boundary=[fe.Dirichlet("left", 0.0)])
    mesh = fe.Mesh.box((6, 6), comm=PETSc.COMM_SELF)
    problem = fe.Problem(mesh, physics, backend="cg_gpu", degree=1, cg_condense=True)
    reason_of_solve = direct_solvers.reason_of_solve

    def first_fails(problem, snes):
        if not failed:
            failed.append(snes.getKSP().setConvergedReason(reason))
        return reason_of_solve(problem, snes)

    monkeypatch.setattr(direct_solvers, "reason_of_solve", first_fails)
    problem.solve()
    assert failed and "failed after" in problem.direct and problem.snes.getKSP().getPC().getType() == "lu"


@pytest.mark.parametrize(
    "backend, reason", [("cg_gpu", "gmres with gamg did not converge in 300"), ("hdg_gpu", "indefinite")]
)
def test_a_named_matrix_is_factored_where_iterations_fail(backend, reason):
    problem = fe.Problem(box(10, simplex=False), helmholtz(20.0), degree=2, backend=backend, pmat="aij")
    assert numbers(problem)["left"] < 1e-8 and reason in problem.direct and problem.linear_iterations < 310


@pytest.mark.skipif(not PETSc.Sys.hasExternalPackage("mumps"), reason="PETSc has no MUMPS")
def test_factors_in_space_are_of_mumps(monkeypatch):
    monkeypatch.setattr(direct_solvers, "MOST_BY_PETSC", 300)
    mesh = fe.Mesh.box((5, 5, 5), comm=PETSc.COMM_SELF)
    found = [fe.Problem(mesh, wind(1e-3), degree=degree) for degree in (1, 2)]
    for problem in found:
        problem.solve()
    solvers = [problem.snes.getKSP().getPC().getFactorSolverType() for problem in found]
    assert solvers == ["petsc", "mumps"]


def test_polytopes_lose_their_levels():
    problem = fe.Problem(box(10, simplex=False), helmholtz(20.0), degree=3, backend="poly_gpu")
    assert numbers(problem)["left"] < 1e-8 and problem.direct and problem.callbacks.levels is None


def test_users_choose():
    """By options, by code; a problem that is large keeps its iterations."""
    with petsc_options(ksp_max_it="5"), pytest.raises(fe.SolveError, match="linear solver stopped"):
        CASES["waves"](PETSc.COMM_SELF).solve()
    problem = CASES["waves"](PETSc.COMM_SELF)
    problem.snes.getKSP().setType("bcgs")
    problem.snes.getKSP().setTolerances(max_it=10)
    with pytest.raises(fe.SolveError):
        problem.solve()
    assert not problem.direct and problem.snes.getKSP().getType() == "bcgs"


def test_large_problems_are_not_factored(monkeypatch):
    for name in ("IN_SPACE", "MOST", "IN_PLANE", "IN_PLANE_BY_PETSC"):
        monkeypatch.setattr(direct_solvers, name, 100)
    problem = CASES["open"](PETSc.COMM_SELF)
    assert problem.snes.getKSP().getPC().getType() == "fieldsplit" and not problem.direct


@pytest.mark.full
def test_larger_ones_are_factored_in_the_plane(monkeypatch):
    """By MUMPS where PETSc has it; fewer in space, or of cells with many unknowns, and later there and on a GPU."""
    monkeypatch.setattr(direct_solvers, "MOST", 100)
    problem = CASES["stiff"](PETSc.COMM_SELF)
    found, solver = numbers(problem), problem.snes.getKSP().getPC().getFactorSolverType()
    assert "in 50 iterations" in found["direct"] and found["its"] <= 53 and found["left"] < 1e-8
    assert solver == ("mumps" if PETSc.Sys.hasExternalPackage("mumps") else "petsc")
    most = direct_solvers.most_of_failures(problem)
    assert most > problem.num_unknowns
    cubes = fe.Problem(fe.Mesh.box((4, 4, 4), comm=PETSc.COMM_SELF), helmholtz(20.0), degree=2)
    apart = fe.Problem(cubes.mesh, helmholtz(20.0), degree=2, backend="sipg_gpu")
    in_space = direct_solvers.most_of_failures(cubes)
    if PETSc.Sys.hasExternalPackage("mumps"):
        assert direct_solvers.IN_SPACE < direct_solvers.most_of_failures(apart) < in_space < 200_000
    else:
        assert in_space == direct_solvers.MOST
    assert direct_solvers.most_of_slow(cubes) == in_space and direct_solvers.most_of_slow(apart) == direct_solvers.MOST
    assert direct_solvers.patience(cubes) == direct_solvers.IN_NEWTON
    dense = fe.Problem(problem.mesh, problem.physics, degree=6, backend="sipg_gpu")
    assert direct_solvers.MOST < direct_solvers.most_of_failures(dense) < most
    rubber = CASES["rubber"](PETSc.COMM_SELF)
    assert direct_solvers.patience(rubber) == direct_solvers.PATIENCE and direct_solvers.reason_of_text(rubber)
    monkeypatch.setattr(rubber.device, "is_gpu", True)
    assert direct_solvers.patience(rubber) == direct_solvers.IN_NEWTON and not direct_solvers.reason_of_text(rubber)
    monkeypatch.setattr(rubber.device, "is_gpu", False)
    width = max(direct_solvers.LEAST_WIDTH, rubber.num_unknowns / rubber.mesh.num_cells_all)
    for part, is_known in ((2.0, True), (3.0, False)):  # more of them where the data say that iterations are slow
        for name in ("IN_PLANE", "IN_PLANE_BY_PETSC"):
            monkeypatch.setattr(direct_solvers, name, int(rubber.num_unknowns / part * width))
        assert direct_solvers.most_of_failures(rubber) < rubber.num_unknowns
        assert bool(direct_solvers.reason_of_text(rubber)) == is_known


@pytest.mark.parametrize(
    "backend, degree, mesh", [("hdg_gpu", 4, "squares"), ("sipg_gpu", 1, "triangles"), ("cg_gpu", 2, "cubes")]
)
def test_iterations_are_left_where_they_are_few(backend, degree, mesh):
    """Diffusion 10⁴ times as strong along one direction, where benchmarks/defaults.py has few iterations."""
    dim, simplex = (3 if mesh == "cubes" else 2), mesh == "triangles"
    box = fe.Mesh.box((4,) * dim, simplex=simplex, upper=(1.0, 0.01, 1.0)[:dim], comm=PETSc.COMM_SELF)
    problem = fe.Problem(box, library.poisson(), degree=degree, backend=backend)
    assert cell_measures.typical_anisotropy(problem) > 3e3 and not direct_solvers.reason_of_text(problem)


@pytest.mark.parametrize(
    "backend, faces, simplex",
    [
        ("cg_gpu", (14, 14), False),
        ("cg_gpu", (14, 14), True),
        pytest.param("sipg_gpu", (14, 14), False, marks=pytest.mark.full),
        pytest.param("sipg_gpu", (14, 14), True, marks=pytest.mark.full),
        pytest.param("hdg_gpu", (14, 14), False, marks=pytest.mark.full),
        pytest.param("hdg_gpu", (14, 14), True, marks=pytest.mark.full),
        pytest.param("cg_gpu", (6, 6, 6), False, marks=pytest.mark.full),
        pytest.param("cg_gpu", (6, 6, 6), True, marks=pytest.mark.full),
        ("sipg_gpu", (3, 3, 3), True),
        ("hdg_gpu", (3, 3, 3), True),
        pytest.param("hdg_gpu", (4, 4, 4), False, marks=pytest.mark.full),
    ],
)
def test_strong_directions_are_smoothed_by_factors(backend, faces, simplex, monkeypatch):
    """Nonlinear physics on cells stretched 1:100, and by a tensor along no edge of the plane; others keep two levels
    without a matrix."""
    monkeypatch.setattr(direct_solvers, "MOST", 300)
    found, physics = [], "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];"
    turned = physics + "f1[0] += 0.4326*u_x[1] - 0.25*u_x[0]; f1[1] += 0.4326*u_x[0] - 0.75*u_x[1];"
    for height, flux in ((0.01, physics), (1.0, physics), (1.0, turned))[: 5 - len(faces)]:
        given = fe.Physics({"u": 1}, "f0[0] = -1;", flux, boundary=[fe.Dirichlet("boundary", 0.0)])
        upper = (1.0, height) if len(faces) == 2 else (1.0, 1.0, height)
        box = fe.Mesh.box(faces, simplex=simplex, upper=upper, comm=PETSc.COMM_SELF)
        problem = fe.Problem(box, given, degree=2, backend=backend)
        if height < 1 or flux == turned:
            problem.solve()
            assert problem.linear_iterations <= 10 * problem.newton_iterations and not problem.direct
        pc = problem.snes.getKSP().getPC()
        found.append((pc.getType(), problem.pmat, pc.getMGSmoother(1).getPC().getType() == "asm"))
    assert found == [("mg", "aij", True), ("mg", "conforming", False), ("mg", "aij", True)][: len(found)]


@pytest.mark.parametrize(
    "backend, faces, simplex, most",
    [("hdg_gpu", 4, True, 22), pytest.param("cg_gpu", 16, False, 22, marks=pytest.mark.full)],
)
def test_factors_smooth_more_often_where_couplings_cross_edges_in_space(backend, faces, simplex, most, monkeypatch):
    """A tensor 1:10⁴, 30° from the first axis. Three steps in the order of the mesh take 26 and 71 iterations."""
    monkeypatch.setattr(direct_solvers, "MOST", 4000 if backend == "hdg_gpu" else 30_000)
    turned = "const PetscReal s = sqrt(0.75)*u_x[0] + 0.5*u_x[1];"
    turned += "for (d = 0; d < dim; ++d) f1[d] = 1e-4*(1 + x[0])*u_x[d] + (d == 0)*sqrt(0.75)*s + (d == 1)*0.5*s;"
    sides = [fe.Dirichlet(name, 0.0) for name in ("left", "bottom", "front")]
    given = fe.Physics({"u": 1}, "f0[0] = -1;", turned, boundary=sides)
    box = fe.Mesh.box((faces,) * 3, simplex=simplex, comm=PETSc.COMM_SELF)
    problem = fe.Problem(box, given, degree=2, backend=backend)
    problem.solve()
    assert problem.factors and not problem.direct and problem.linear_iterations <= most


@pytest.mark.parametrize("is_linear", [True, False])
@pytest.mark.parametrize("backend", ["cg_gpu", "hdg_gpu", "sipg_gpu"])
def test_gpus_coarsen_stretched_cells_along_strong_couplings(backend, is_linear, monkeypatch):
    """By aggregates of the matrix, cells 1:100; two levels take 59 to 152 iterations of the linear problem. Turned
    tensors and cells 1:10 keep two levels."""
    as_if_large(monkeypatch)
    flux = f"(1 + x[0]{'' if is_linear else ' + u[0]*u[0]'})*u_x[d]"
    turned = "f1[0] = u_x[0] + 0.99*u_x[1]; f1[1] = 0.99*u_x[0] + u_x[1];"
    found = []
    for height, f1 in ((0.01, flux), (0.1, flux), (1.0, turned)):
        given = fe.Physics({"u": 1}, "-1", f1, boundary=[fe.Dirichlet("bottom", 0.0)])
        box = fe.Mesh.box((24, 24), upper=(1.0, height), comm=PETSc.COMM_SELF)
        problem = fe.Problem(box, given, degree=1 if backend == "hdg_gpu" else 2, backend=backend)
        monkeypatch.setattr(problem.device, "has_solvers", True)
        if not found:
            problem.solve()
            assert problem.linear_iterations <= 30 * problem.newton_iterations and not problem.direct
        found.append(problem.snes.getKSP().getPC().getType())
    assert found == ["python", "mg", "mg"] and problem.default_krylov == "cg"


@pytest.mark.parametrize("simplex", [True, pytest.param(False, marks=pytest.mark.full)])
def test_few_iterations_where_one_narrow_side_is_essential(simplex, monkeypatch):
    """Traces in space, under conjugate gradients; without factors they take 133 and 41 iterations."""
    monkeypatch.setattr(direct_solvers, "MOST", 300)
    given = fe.Physics({"u": 1}, "-1", "(1 + x[1])*u_x[d]", boundary=[fe.Dirichlet("left", 0.0)])
    box = fe.Mesh.box((5, 5, 5), simplex=simplex, upper=(1.0, 1.0, 0.01), comm=PETSc.COMM_SELF)
    problem = fe.Problem(box, given, degree=1, backend="hdg_gpu")
    problem.solve()
    assert problem.factors and problem.pmat == "aij"
    assert problem.linear_iterations <= 12 and problem.default_krylov == "cg"


def as_if_large(monkeypatch) -> None:
    """Have LU take no problem of more than 300 unknowns."""
    for name in ("MOST", "IN_PLANE", "IN_PLANE_BY_PETSC"):
        monkeypatch.setattr(direct_solvers, name, 300)


@pytest.mark.parametrize("backend, bulk, height", [("hdg_gpu", 5e3, 1.0), ("sipg_gpu", 1.0, 0.05)])
def test_bodies_in_the_plane_are_smoothed_by_factors(backend, bulk, height, monkeypatch):
    """Nearly incompressible ones and stretched cells, as if they were too large for LU."""
    as_if_large(monkeypatch)
    box = fe.Mesh.box((10, 10), upper=(1.0, height), comm=PETSc.COMM_SELF)
    given = library.elasticity(2, "c == 1 ? 1.0 : 0.0", lame_lambda=bulk, boundary=[fe.Dirichlet("left", 0.0)])
    problem = fe.Problem(box, given, degree=2, backend=backend)
    u = problem.solve()
    assert problem.factors and not problem.direct and problem.linear_iterations <= 40
    with petsc_options(ksp_type="preonly", pc_type="lu"):
        exact = fe.Problem(box, given, degree=2, backend=backend).solve()
    assert (u - exact).norm() < 1e-6 * exact.norm()


def test_fields_of_two_degrees_have_no_first_order_levels(monkeypatch):
    """Continuous elements of several degrees have no first-order subspace: multigrid on the matrix stays."""
    as_if_large(monkeypatch)
    box = fe.Mesh.box((14, 14), upper=(1.0, 0.01), comm=PETSc.COMM_SELF)
    sides = [fe.Dirichlet("left", 0.0, field=name) for name in "uv"]
    fields = {"u": fe.Field(1), "v": fe.Field(1, degree_offset=-1)}
    given = fe.Physics(fields, {"u": "-1", "v": "-1"}, {"u": "u_x[d]", "v": "v_x[d]"}, boundary=sides)
    problem = fe.Problem(box, given, degree=2)
    problem.solve()
    assert cell_measures.typical_anisotropy(problem) > 1e3 and not problem.factors and not problem.direct


def test_single_precision_takes_no_conjugate_gradients_with_factors(monkeypatch):
    """Products are no linear map there: short recurrences stop at 1e-7 of the load."""
    as_if_large(monkeypatch)
    box = fe.Mesh.box((16, 16), upper=(1.0, 0.01), comm=PETSc.COMM_SELF)
    given = fe.Physics({"u": 1}, "-1", "(1 + x[0])*u_x[d]", boundary=[fe.Dirichlet("left", 0.0)])
    problem = fe.Problem(box, given, degree=2, backend="sipg_gpu", precision="single")
    problem.solve()
    assert problem.factors and problem.linear_iterations <= 20


@pytest.mark.parametrize("backend, ts_type", [("hdg_gpu", "beuler"), ("cg_gpu", "arkimex")])
def test_factors_in_time(backend, ts_type, monkeypatch):
    """Stretched cells take as few iterations in each step; a TS that resets its levels has multigrid on the matrix."""
    as_if_large(monkeypatch)
    monkeypatch.setattr(direct_solvers, "IN_TIME", {})
    box = fe.Mesh.box((12, 12), upper=(1.0, 0.01), comm=PETSc.COMM_SELF)
    given = fe.Physics({"u": 1}, "u_t[0] - 1", "u_x[d]", boundary=[fe.Dirichlet("left", 0.0)])
    problem = fe.Problem(box, given, degree=2, backend=backend)
    with petsc_options(ts_type=ts_type):
        problem.solve_in_time(problem.create_vec(), 0.02, 0.01)
        stays = ts_type == "beuler" or not loses_levels("")
    assert bool(problem.factors) == stays and not problem.direct
    assert problem.linear_iterations <= (15 if stays else 60) * problem.time_steps * (1 if ts_type == "beuler" else 3)


@pytest.mark.parametrize(("sees_least", "most"), [(False, 20), (True, 28)])
def test_factors_follow_an_indefinite_matrix(sees_least, most, monkeypatch):
    """A coefficient that jumps inside of cells: by penalties that do not see it the matrix is indefinite, by others
    Cholesky's incomplete factors are. GMRES smooths with incomplete LU; Chebyshev's method finds no end."""
    monkeypatch.setattr(direct_solvers, "MOST", 300)
    monkeypatch.setattr(InteriorPenalty, "sees_least", sees_least)
    flux = "(x[0]*x[0] + x[1]*x[1] < 0.3 ? 1e4 : 1.0)*u_x[d]"
    box = fe.Mesh.box((4, 4, 4), upper=(1.0, 1.0, 0.2), comm=PETSc.COMM_SELF)
    given = fe.Physics({"u": 1}, "-1", flux, boundary=[fe.Dirichlet("left", 0.0)])
    problem = fe.Problem(box, given, degree=1, backend="sipg_gpu")
    problem.solve()
    assert problem.factors and problem.indefinite and problem.linear_iterations <= most
    assert problem.snes.getKSP().getPC().getMGSmoother(1).getType() == "gmres"


def test_reaction_is_the_same_in_all_directions():
    mesh = fe.Mesh.box((4, 4), upper=(1.0, 0.01), comm=PETSc.COMM_SELF)
    physics = fe.Physics({"u": 1}, "f0[0] = 1e8*u[0];", "for (d = 0; d < dim; ++d) f1[d] = u_x[d];")
    assert cell_measures.typical_anisotropy(fe.Problem(mesh, physics, degree=2)) < 2


@pytest.mark.full
def test_newton_goes_on_with_factors():
    """Waves whose speed follows them: to the tolerance that Newton's method began with, from the same guess."""
    physics = fe.Physics(
        {"u": 1},
        f0="f0[0] = -1 - 400*u[0] + u[0]*u[0]*u[0];",
        f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[fe.Dirichlet("boundary", 0.0)],
    )
    problem = fe.Problem(box(10, simplex=False), physics, degree=3, backend="hdg_gpu")
    u = problem.solve()
    assert problem.direct
    with petsc_options(ksp_type="preonly", pc_type="lu"):
        other = fe.Problem(problem.mesh, physics, degree=3, backend="hdg_gpu")
        assert (u - other.solve()).norm() < 1e-7 * u.norm()
    assert problem.snes.getIterationNumber() <= other.newton_iterations + 2  # of its last run, with factors


@pytest.mark.full
@pytest.mark.parametrize("more", ["", " + u[0]*u[0]*u[0]"], ids=["linear", "cubic"])
def test_convection_by_continuous_elements_is_told_once(more):
    physics = wind(1e-3, more)
    problem = fe.Problem(box(20, simplex=False), physics, degree=1)
    schemes = "-cg_stabilization supg, or -fe_backend sipg_gpu or hdg_gpu, suit"
    with pytest.warns(UserWarning, match=f"cell Péclet number .* is about 75.*; {schemes} convection"):
        problem.solve()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem.create_snes()
        for backend in ("sipg_gpu", "hdg_gpu"):
            fe.Problem(problem.mesh, physics, degree=1, backend=backend).create_snes()
        fe.Problem(problem.mesh, wind(0.1), degree=1).create_snes()


def test_steps_in_time_of_a_saddle_point():
    physics = stokes(True)
    physics = library.stokes(2, "f0[0] = u_t[0] - x[1]; f0[1] = u_t[1];", boundary=physics.boundary)
    problem = fe.Problem(box(4), physics, degree=2)
    u = problem.solve_in_time(problem.create_vec(), 0.2, dt=0.05)
    assert problem.linear_iterations <= 3 * problem.time_steps + 3 and np.isfinite(u.norm())


HEAT = fe.Physics(
    {"u": 1},
    "f0[0] = u_t[0] - 1;",
    "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    boundary=[fe.Dirichlet("boundary", 0.0)],
    name="heat",
)


def heat(n: int = 12, **options):
    return fe.Problem(fe.Mesh.box((n, n), comm=PETSc.COMM_SELF), HEAT, degree=options.pop("degree", 2), **options)


@pytest.mark.parametrize("backend", ["cg_gpu", "hdg_gpu"])
def test_factors_serve_the_steps_of_small_problems(backend):
    problem = heat(backend=backend)
    u = problem.solve_in_time(problem.interpolate(0.0), 0.05, dt=0.01)
    told = f"linear solver: LU, because factors serve all steps with {problem.num_unknowns} unknowns on a CPU"
    assert told in problem.view() and problem.linear_iterations <= 2 * problem.newton_iterations
    with petsc_options(ksp_type="gmres", pc_type="jacobi", ksp_rtol="1e-12"):
        other = heat(backend=backend)
        v = other.solve_in_time(other.interpolate(0.0), 0.05, dt=0.01)
        assert not other.direct and other.linear_iterations > 5 * other.newton_iterations
    assert (u - v).norm() < 1e-9 * u.norm()


def test_traces_of_strong_convection_take_factors_in_time():
    """Also nonlinear ones, whose matrix follows the state: incomplete factors along the flow may fail in any step."""
    texts = "u_t[0] + 10*u_x[0] + 5*u_x[1] - 1", "0.01*(1 + u[0]*u[0])*u_x[d]"
    physics = fe.Physics({"u": 1}, *texts, boundary=[fe.Dirichlet("left", 0.0)])
    problem = fe.Problem(fe.Mesh.box((6, 6), comm=PETSc.COMM_SELF), physics, backend="hdg_gpu", degree=2)
    problem.solve_in_time(problem.create_vec(), 0.02, 0.01)
    assert "LU, because convection in the cells is strong" in problem.view()
    assert problem.linear_iterations <= 2 * problem.newton_iterations


def test_a_first_step_of_many_iterations_goes_on_with_factors(monkeypatch):
    monkeypatch.setattr(direct_solvers, "IN_NEWTON", 2)
    problem = heat(backend="sipg_gpu")
    assert not problem.direct
    problem.solve_in_time(problem.create_vec(), 0.02, 0.01)
    assert "did not converge in 2 iterations" in problem.direct and not problem.after_step


@pytest.mark.full
def test_steps_that_keep_iterations(monkeypatch):
    """By options, by code, on GPUs, of large problems, and where each step has a matrix of its own."""

    def takes(**options) -> bool:
        problem = heat(**options)
        problem.create_ts()
        return bool(problem.direct)

    assert takes()
    for option in ({"pc_type": "gamg"}, {"ksp_type": "cg"}, {"fe_pmat": "conforming"}, {"ts_type": "euler"}):
        with petsc_options(**option):
            assert not takes(), option
    assert not takes(backend="sipg_gpu") and not takes(backend="poly_gpu")
    attached, ts = heat(), PETSc.TS().create(PETSc.COMM_SELF)
    ts.setType("bdf")
    attached.attach(ts)
    assert not attached.direct
    with petsc_options(ts_adapt_type="basic"):
        assert takes()
        monkeypatch.setitem(direct_solvers.IN_TIME, ("cg_gpu", 2, True), (10**6, 100))
        assert not takes()
    monkeypatch.setitem(direct_solvers.IN_TIME, ("cg_gpu", 2, True), (100, 100))
    assert not takes()
    monkeypatch.undo()
    problem = heat()
    monkeypatch.setattr(problem.device, "is_gpu", True)
    assert not direct_solvers.reason_in_time(problem, True)
