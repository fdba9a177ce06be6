"""Where Newton's method begins if the user does not say, what is tried after it, how patient its linear solves are."""

from __future__ import annotations

import pytest
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.physics import library
from petsc_hdg.problem.linear import direct_solvers
from petsc_hdg.problem.newton import first_guess, monitors

STEEP = "g[0] = sin(2*PETSC_PI*x[0])*cos(PETSC_PI*x[1]);"
LINEAR = "Newton's method from the linear extension of the data"

PULL = fe.Dirichlet("boundary", "g[0] = load*sin(2*x[1]); g[1] = load*x[0]*x[1];")


def soap_film(backend: str, faces: int = 8, **settings) -> fe.Problem:
    """A minimal surface over a square whose rim is steep; on triangles, where it is harder, by poly_gpu."""
    physics = library.minimal_surface(boundary=[fe.Dirichlet("boundary", STEEP)])
    mesh = fe.Mesh.box((faces, faces), simplex=backend == "poly_gpu", comm=PETSc.COMM_SELF)
    return fe.Problem(mesh, physics, backend=backend, **({"degree": 2} | settings))


def scherk() -> fe.Physics:
    """A minimal surface, steep beside two corners."""
    height = "g[0] = log(cos(2.4*(x[1] - 0.5))/cos(2.4*(x[0] - 0.5)))/2.4;"
    return library.minimal_surface(boundary=[fe.Dirichlet("boundary", height)])


@pytest.mark.full("sipg_gpu", "poly_gpu")
@pytest.mark.parametrize("backend, most", [("cg_gpu", 12), ("sipg_gpu", 20), ("poly_gpu", 20)])
def test_steep_data_from_nothing(backend, most):
    problem = soap_film(backend)
    u = problem.solve()
    assert problem.newton_iterations <= most and problem.tried == [LINEAR]
    again = soap_film(backend).solve(u)
    assert (again - u).norm() < (1e-6 if backend == "cg_gpu" else 0.05) * u.norm(), "penalties follow the way there"


def test_traces_begin_there_too():
    problem = fe.Problem(fe.Mesh.box((8, 8), comm=PETSc.COMM_SELF), scherk(), backend="hdg_gpu", degree=2)
    problem.solve()
    assert problem.newton_iterations <= 7


@pytest.mark.full
def test_traces_of_several_fields_begin_there_too():
    """Their solution is the linear extension itself."""
    law = "for (d = 0; d < dim; ++d) f1[d] = (1 + u_x[{0}]*u_x[{0} + 1])*u_x[{0} + d];"
    flux = {"u": law.format(0), "v": law.format(2)}
    walls = [fe.Dirichlet("boundary", f"g[0] = x[{d}];", field=name) for d, name in enumerate("uv")]
    physics = fe.Physics({"u": 1, "v": 1}, f1=flux, boundary=walls, exact={"u": "u[0] = x[0];", "v": "u[0] = x[1];"})
    problem = fe.Problem(fe.Mesh.box((2, 3), comm=PETSc.COMM_SELF), physics, backend="hdg_gpu", degree=1)
    assert problem.errors(problem.solve())["L2"] < 1e-9
    assert problem.newton_iterations <= 2


@pytest.mark.full("hdg_gpu", "poly_gpu", "sipg_gpu")
@pytest.mark.parametrize(
    "backend", ["cg_gpu", "hdg_gpu", *(pytest.param(b, marks=pytest.mark.full) for b in ("sipg_gpu", "poly_gpu"))]
)
def test_load_steps_begin_at_what_moves_with_the_boundary(backend, monkeypatch):
    """Steps so large that cells beside the boundary would be turned inside out. Data of a load are extended once."""
    extended, made = first_guess._extended, []
    monkeypatch.setattr(first_guess, "_extended", lambda *given: made.append(given) or extended(*given))
    physics = library.neo_hookean(2, lame_lambda=4.0, boundary=[PULL], constants={"load": 0.15})
    problem = fe.Problem(fe.Mesh.box((10, 10), simplex=False, comm=PETSc.COMM_SELF), physics, backend=backend, degree=2)
    u = problem.solve()
    problem.set_constants(load=0.3)
    u = problem.solve(u)
    assert problem.newton_iterations <= 5 and len(made) == 2
    assert problem.integral("u[0]*u[0] + u[1]*u[1]", u) == pytest.approx(0.0646007, rel=1e-4)


@pytest.mark.parametrize("degree", [4, 6])
def test_load_steps_of_high_degree_by_hdg(degree):
    """Interiors begin next to traces whose values at the boundary are far from affine."""
    physics = library.neo_hookean(2, lame_lambda=4.0, boundary=[PULL], constants={"load": 0.2})
    mesh = fe.Mesh.box((2, 2), simplex=False, comm=PETSc.COMM_SELF)
    problem, u = fe.Problem(mesh, physics, backend="hdg_gpu", degree=degree), None
    for load in (0.2, 0.4):
        problem.set_constants(load=load)
        u = problem.solve(u)
        assert problem.newton_iterations <= 4
    assert problem.integral("u[0]*u[0] + u[1]*u[1]", u) == pytest.approx(0.114, rel=2e-2)


def test_loads_that_turn_cells_of_hdg_inside_out():
    """From the last solution itself the second load takes 13 steps. The kernels are checked at a state out of the
    domain of the physics on this mesh."""
    walls = [fe.Dirichlet("left", [0, 0]), fe.Dirichlet("right", "g[0] = load; g[1] = 0;")]
    physics = library.neo_hookean(2, lame_lambda=4.0, boundary=walls, constants={"load": 0.0})
    problem, u = fe.Problem(fe.Mesh.box((6, 6), comm=PETSc.COMM_SELF), physics, backend="hdg_gpu", degree=1), None
    for load in (0.25, 0.5):
        problem.set_constants(load=load)
        u = problem.solve(u)
        assert problem.newton_iterations <= 5
    assert problem.integral("u[0]", u) == pytest.approx(0.25, rel=1e-6)


@pytest.mark.full("hdg_gpu")
@pytest.mark.parametrize("backend, degree", [("cg_gpu", 4), ("hdg_gpu", 3)])
def test_starts_whose_derivative_vanishes(backend, degree):
    """The linear extension of data about the middle is constant in the cells there, and so is |∇u|² ∇u's derivative."""
    exact = "0.75*pow(2.0, -1.0/3)*(1 - pow(pow(x[0] - 0.5, 2) + pow(x[1] - 0.5, 2) + 1e-30, 2.0/3))"
    flux = "PetscReal q = 1e-10; for (d = 0; d < 2; ++d) q += u_x[d]*u_x[d]; for (d = 0; d < 2; ++d) f1[d] = q*u_x[d];"
    physics = fe.Physics({"u": 1}, "-1", flux, boundary=[fe.Dirichlet("boundary", exact)], exact=exact)
    problem = fe.Problem(fe.Mesh.box((8, 8), comm=PETSc.COMM_SELF), physics, backend=backend, degree=degree)
    assert problem.errors(problem.solve())["L2"] < 3e-5
    assert problem.newton_iterations <= 25


@pytest.mark.parametrize("few, by", [(first_guess.FEW, "lu"), (10, "python")])
def test_the_start_is_the_linear_solution(monkeypatch, few, by):
    """Of f1 = (1 + u²) ∇u the harmonic one of first degree, its data exact at the nodes; of zero data none. By LU, and
    by multigrid on the device where there are more unknowns."""
    monkeypatch.setattr(first_guess, "FEW", few)
    mesh = fe.Mesh.box((5, 4), comm=PETSc.COMM_SELF)

    def made(f1: str, g) -> fe.Problem:
        return fe.Problem(mesh, fe.Physics({"u": 1}, "f0[0] = 0.0;", f1, boundary=[fe.Dirichlet("left", g)]), degree=1)

    flux = "for (d = 0; d < dim; ++d) f1[d] = {}*u_x[d];"
    harmonic = made(flux.format("1.0"), "g[0] = 1 + x[1];").solve()
    problem = made(flux.format("(1 + u[0]*u[0])"), "g[0] = 1 + x[1];")
    u = first_guess._extension(problem)
    assert first_guess._preconditioners(problem, problem.callbacks.assembled.mat)[0] == by
    assert first_guess._has_data(problem) and (u - harmonic).norm() < 1e-5 * harmonic.norm()
    assert not first_guess._has_data(made(flux.format("(1 + u[0]*u[0])"), 0.0))
    assert made(flux.format("(1 + u[0]*u[0])"), 0.0).solve().norm() == 0


def test_flows_of_two_degrees_begin_at_zero():
    """A pressure of first degree has no linear extension beside it."""
    physics = fe.Physics(
        {"v": 2, "p": fe.Field(1, degree_offset=-1)},
        {"v": "for (d = 0; d < 2; ++d) f0[d] = u[0]*u_x[2*d] + u[1]*u_x[2*d + 1];", "p": "f0[0] = u_x[0] + u_x[3];"},
        {"v": "for (d = 0; d < 4; ++d) f1[d] = u_x[d]; f1[0] -= u[2]; f1[3] -= u[2];"},
        boundary=[fe.Dirichlet("boundary", "exact", field="v")],
        exact={"v": "u[0] = x[1]; u[1] = x[0];", "p": "u[0] = -(x[0]*x[0] + x[1]*x[1])/2;"},
    )
    problem = fe.Problem(fe.Mesh.box((3, 3), comm=PETSc.COMM_SELF), physics, backend="cg_gpu", degree=3)
    assert problem.errors(problem.solve(), field="v")["L2"] < 1e-8 and problem.tried == ["Newton's method from zero"]


@pytest.mark.full("sipg_gpu")
@pytest.mark.parametrize("backend", ["sipg_gpu", "poly_gpu"])
def test_the_incomplete_method_has_the_same_data(backend):
    """u = x of -∇·(κ (1 + c u²) ∇u) by a problem without the adjoint term."""
    flux = "for (d = 0; d < dim; ++d) f1[d] = a[0]*(1 + constants[0]*u[0]*u[0])*u_x[d];"
    source, wall = "f0[0] = 2*a[0]*constants[0]*x[0];", fe.Dirichlet("boundary", "exact")
    physics = fe.Physics(
        {"u": 1}, source, flux, auxiliary={"kappa": 1}, constants={"c": 1.0}, boundary=[wall], exact="u[0] = x[0];"
    )
    problem = fe.Problem(fe.Mesh.box((3, 3), simplex=False, comm=PETSc.COMM_SELF), physics, backend=backend, degree=2)
    problem.set_auxiliary("kappa", 2.0)
    problem.set_constants(c=0.5)
    problem.newton_iterations, problem.linear_iterations = 0, 0
    with petsc_options(snes_rtol="1e-10"):  # the method's convergence is linear
        found = first_guess._by_incomplete_method(problem, problem.create_vec())
    assert problem.errors(found)["L2"] < 1e-8 and problem.newton_iterations > 1
    assert problem.options.sipg_theta == 1 and problem.tried == [first_guess.INCOMPLETE]


@pytest.mark.full
def test_the_incomplete_method_is_the_next_try():
    mesh = fe.Mesh.box((8, 8), simplex=False, comm=PETSc.COMM_SELF)
    problem = fe.Problem(mesh, scherk(), backend="poly_gpu", degree=6)
    problem.solve()
    assert problem.tried == [LINEAR, first_guess.INCOMPLETE, f"Newton's method from {first_guess.INCOMPLETE}"]
    assert problem.newton_iterations <= 40


def test_steps_that_gain_nothing_end_a_try(monkeypatch):
    """Two steps that do not make the residual a hundred times smaller; the last try has no such end."""
    monkeypatch.setattr(monitors, "GAIN", 0.99)
    monkeypatch.setattr(monitors, "LAST", 0.99)
    monkeypatch.setattr(monitors, "FRUITLESS", 2)
    problem = soap_film("cg_gpu", degree=1)
    problem.solve()
    assert problem.tried[0] == LINEAR and len(problem.tried) == 4 and problem.snes.getConvergedReason() > 0


@pytest.mark.full
def test_a_trust_region_is_the_next_try(monkeypatch, capfd):
    monkeypatch.setattr(first_guess, "moved_with_data", lambda *_: None)
    monkeypatch.setattr(first_guess, "_by_incomplete_method", lambda *_: None)
    with petsc_options(snes_monitor=""):
        problem, steps = soap_film("sipg_gpu", 16, degree=1), []
        problem.snes.setMonitor(lambda snes, step, norm: steps.append(step))
        u = problem.solve(problem.create_vec())
    assert problem.tried == ["Newton's method from the guess", "a trust region from the guess"]
    assert (u - soap_film("sipg_gpu", 16, degree=1).solve()).norm() < 0.05 * u.norm()
    assert problem.snes.getConvergedReason() > 0 and problem.snes.getType() == "newtonls"
    count = len(problem.watch._norms)  # each step is seen, and printed, once
    assert count > 2 and steps[-count:] == list(range(count))
    assert capfd.readouterr().out.count("SNES Function norm") == len(steps)


def test_a_stiff_contact_opens():
    """A bar that bends onto a stiff support: the first step goes far through it, and shorter steps lead nowhere."""
    strain = "u_x[c*dim + d] + u_x[d*dim + c] + (c == d ? u_x[0] + u_x[3] : 0)"
    support = fe.Robin("bottom", "c == 1 && u[1] < -0.01 ? 500*(u[1] + 0.01) : 0")
    physics = fe.Physics({"u": 2}, "0.2*c", strain, boundary=[fe.Dirichlet("left", 0.0), support])
    mesh = fe.Mesh.box((16, 4), upper=(4, 1), comm=PETSc.COMM_SELF)
    problem = fe.Problem(mesh, physics, degree=2)
    u = problem.solve()
    assert problem.tried[-1] == "a line search by secants from zero"
    f = problem.create_vec()
    problem.callbacks.residual(None, u, f)
    assert f.norm() < 1e-8 and problem.integral("u[1]", u) == pytest.approx(-0.12857275, rel=1e-6)


def test_the_end_says_what_was_tried():
    """-Δu = exp(u) times more than there is a solution for."""
    flux = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    physics = fe.Physics({"u": 1}, "f0[0] = -60*exp(u[0]);", flux, boundary=[fe.Dirichlet("boundary", "g[0] = 0.1;")])
    problem = fe.Problem(fe.Mesh.box((4, 4), comm=PETSc.COMM_SELF), physics, degree=1)
    ends = "then a trust region from .*, then .* secants from .*, then .* from zero$"
    with pytest.raises(fe.SolveError, match=f"; tried: {LINEAR}, {ends}"):
        problem.solve()
    with petsc_options(snes_max_it="3"), pytest.raises(fe.SolveError, match="after 3 steps; (?!.*tried)"):
        fe.Problem(problem.mesh, physics, degree=1).solve()


def test_steps_of_linear_solves_that_run_out_of_patience_are_used(monkeypatch):
    monkeypatch.setattr(direct_solvers, "MOST", 0)
    monkeypatch.setattr(direct_solvers, "most_of_failures", lambda problem: 0)
    monkeypatch.setattr(direct_solvers, "IN_NEWTON", 4)
    problem = soap_film("cg_gpu", degree=1)
    problem.solve()
    assert problem.newton_iterations <= 30 and problem.linear_iterations <= 4 * problem.newton_iterations
    assert problem.snes.getKSP().getTolerances()[3] == 10_000
