"""Conservation laws by hdg_gpu: orders of both fluxes, solves from disturbed states, walls, flow in time."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sympy
from full_system import solve_full
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.physics import Symbols, library
from petsc_hdg.physics.library import gas
from petsc_hdg.problem import assembled_fallback
from petsc_hdg.problem.linear import direct_solvers

GAMMA, MACH, REYNOLDS, PRANDTL = sympy.Rational(7, 5), 0.5, 50.0, 0.72
X = Symbols(2, {"u": 4}).x


STREAM = "w[0] = 1; w[1] = 0.5; w[2] = 0.1; w[3] = 2.6;"


def smooth_state() -> sympy.Matrix:
    """Conserved variables [4] of a subsonic flow that varies by a fifth."""
    x, y = X
    rho = 1 + sympy.sin(2 * x + y) / 5
    v, p = sympy.Matrix([0.6 + sympy.cos(x - 2 * y) / 5, 0.3 + sympy.sin(x + 2 * y) / 5]), 1 + sympy.cos(x + y) / 5
    return sympy.Matrix([rho, rho * v[0], rho * v[1], p / (GAMMA - 1) + rho * v.dot(v) / 2])


def flux(u: sympy.Matrix, reynolds: float | None) -> sympy.Matrix:
    """f1 [4, 2] of a gas, with viscosity 1 / Re."""
    rho, v, energy = u[0], u[1:3, 0] / u[0], u[3]
    p = (GAMMA - 1) * (energy - rho * v.dot(v) / 2)
    f1 = -sympy.Matrix.vstack(u[1:3, 0].T, rho * v * v.T + p * sympy.eye(2), (energy + p) * v.T)
    if reynolds is None:
        return f1
    v_x = v.jacobian(X)
    sigma = (v_x + v_x.T - sympy.Rational(2, 3) * v_x.trace() * sympy.eye(2)) / reynolds
    heat = GAMMA / (reynolds * PRANDTL) * sympy.Matrix([p / ((GAMMA - 1) * rho)]).jacobian(X)
    return f1 + sympy.Matrix.vstack(sympy.zeros(1, 2), sigma, (sigma * v).T + heat)


def source(law: str, state: sympy.Matrix | None = None) -> list:
    """f0 [4] of steady flow."""
    f1 = flux(smooth_state() if state is None else state, REYNOLDS if law == "viscous" else None)
    return [sum(sympy.diff(f1[c, d], X[d]) for d in range(2)) for c in range(4)]


def manufactured(law: str, far: bool = False, **given) -> fe.Physics:
    """A steady gas whose solution is `smooth_state`."""
    u, f0 = smooth_state(), source(law)
    state = " ".join(f"w[{c}] = {sympy.ccode(entry)};" for c, entry in enumerate(u))
    boundary = gas.far_field("boundary", state) if far else fe.Dirichlet("boundary", "exact")
    given |= {"exact": list(u), "boundary": [boundary]}
    if law == "viscous":
        return library.compressible_navier_stokes(2, f0, mach=MACH, reynolds=REYNOLDS, prandtl=PRANDTL, **given)
    return library.euler(2, f0, **given)


def problem(physics, faces: int, degree: int, **options) -> fe.Problem:
    mesh = fe.Mesh.box((faces, faces), simplex=options.pop("simplex", True), comm=PETSc.COMM_SELF)
    return fe.Problem(mesh, physics, backend="hdg_gpu", degree=degree, check_kernels=False, **options)


def disturbed(one: fe.Problem, size: float) -> PETSc.Vec:
    """The exact trace, each value changed at random by up to `size` of it."""
    u = one.interpolate("exact")
    u.setArray(u.getArray() * (1 + size * np.random.default_rng(0).uniform(-1, 1, u.getLocalSize())))
    return u


# law, numerical flux, degree, options, error on 8² pairs of triangles (or squares), least order from 4² on
ORDERS = {
    "Lax-Friedrichs, 1": ("euler", {}, 1, {}, 3e-3, 1.95),
    "Lax-Friedrichs, 2": ("euler", {}, 2, {}, 1.4e-4, 2.8),
    "Roe, 2": ("euler", {"flux": "roe"}, 2, {}, 9e-5, 2.95),
    "projected, 2": ("euler", {}, 2, {"hdg_flux": "projected"}, 1.1e-4, 2.8),
    "far field, 2": ("euler", {"far": True}, 2, {}, 1.4e-4, 2.8),
    "viscous, 1": ("viscous", {}, 1, {}, 3e-3, 1.95),
    "viscous, Roe, 2": ("viscous", {"flux": "roe"}, 2, {}, 1e-4, 2.85),
    "viscous, squares, 2": ("viscous", {"flux": "roe"}, 2, {"simplex": False}, 1e-4, 2.75),
}


QUICK = ("Lax-Friedrichs, 1", "projected, 2")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.full) for n in ORDERS])
def test_orders(name):
    law, given, degree, options, most, least = ORDERS[name]
    physics, errors = manufactured(law, **given), []
    for faces in (4, 8):
        one = problem(physics, faces, degree, **options)
        errors.append(one.errors(one.solve(one.interpolate("exact")))["L2"])
    assert 0 < errors[1] < most
    assert np.log2(errors[0] / errors[1]) > least


@pytest.mark.parametrize(
    "law, given",
    [("euler", {}), ("euler", {"flux": "roe", "far": True}), pytest.param("viscous", {}, marks=pytest.mark.full)],
)
def test_from_a_disturbed_state(law, given):
    """Steady flow starts from its exact trace ±5 % and comes to the same solution in few steps."""
    one = problem(manufactured(law, **given), 6, 2)
    u = one.solve(disturbed(one, 0.05))
    assert one.newton_iterations <= 8
    assert one.errors(u)["L2"] < 4e-4


@pytest.mark.full
def test_from_a_free_stream():
    """A uniform state, 40 % off in places, with a far field."""
    one = problem(manufactured("euler", far=True), 6, 2)
    u = one.solve(one.interpolate([1.0, 0.6, 0.3, 2.8]))
    assert one.newton_iterations <= 12
    assert one.errors(u)["L2"] < 4e-4


@pytest.mark.full("1.0")
@pytest.mark.parametrize("dt", [0.02, 1.0])
def test_from_rest_by_pseudo_time(dt):
    """Newton's method has no solution for a gas at rest; steps of TSPSEUDO, which grow with the residual's fall, do,
    also where PETSc's one linear solve a step comes to no numbers."""
    physics = manufactured("euler", far=True)
    rates = "".join(f"f0[{c}] = u_t[{c}] + ({sympy.ccode(entry)}); " for c, entry in enumerate(source("euler")))
    moving = library.euler(2, rates, boundary=physics.boundary, exact=physics.exact)
    with petsc_options(ts_type="pseudo", ts_pseudo_increment="1.5", ts_max_steps="60"):
        one = problem(moving, 4, 2)
        u = one.solve_in_time(one.interpolate([1.0, 0.0, 0.0, 2.5]), 1e6, dt=dt)
        assert one.time_steps < 15 and one.newton_iterations < 30
        assert one.errors(u)["L2"] < 1.2e-3
        if dt == 0.02:
            with petsc_options(ts_max_steps="2"), pytest.warns(UserWarning, match="2 steps of pseudo time, .* steady"):
                one.solve_in_time(one.interpolate([1.0, 0.0, 0.0, 2.5]), 1e6, dt=dt)
            with petsc_options(snes_type="ksponly"), pytest.raises(fe.SolveError, match=" nan"):
                one.solve_in_time(one.interpolate([1.0, 0.0, 0.0, 2.5]), 1e6, dt=dt)


@pytest.mark.full("True")
@pytest.mark.parametrize("adiabatic", [False, True])
def test_couette(adiabatic):
    """Gas between plates, the upper one moving: v = y, T quadratic in y. The order of both kinds of wall."""
    heat = f"{(1.4 - 1) / 2 * MACH**2 * PRANDTL}"
    temperature = f"1 + {heat}*(1 - x[1]*x[1])" if adiabatic else f"0.8 + 0.2*x[1] + {heat}*x[1]*(1 - x[1])"
    per_mass = 1 / (1.4 * 0.4 * MACH**2)
    state = f"const PetscReal T = {temperature}; u[0] = 1/T; u[1] = x[1]/T; u[2] = 0; "
    state += f"u[3] = {per_mass} + 0.5*x[1]*x[1]/T;"
    physics = library.compressible_navier_stokes(
        2,
        mach=MACH,
        reynolds=20.0,
        prandtl=PRANDTL,
        exact=state,
        boundary=[
            *(fe.Dirichlet(label, "exact") for label in ("left", "right", "top")),
            gas.no_slip_wall("bottom", None if adiabatic else 0.8 * per_mass),
        ],
    )
    errors = []
    for faces in (2, 4):
        one = problem(physics, faces, 2)
        errors.append(one.errors(one.solve(one.interpolate("exact")))["L2"])
    assert errors[1] < 3e-4 and np.log2(errors[0] / errors[1]) > 2.5


@pytest.mark.full
@pytest.mark.parametrize(("law", "most"), [("euler", 2e-4), ("viscous", 2e-4)])
def test_a_plane_of_symmetry(law, most):
    """No shear and no heat cross y = 0, where all but the velocity along n is even."""
    x, y = X
    rho, p = 1 + sympy.sin(2 * x) * sympy.cos(y) / 5, 1 + sympy.cos(x) * sympy.cos(y) / 5
    v = sympy.Matrix([0.6 + sympy.cos(x) * sympy.cos(2 * y) / 5, y * (0.3 + sympy.cos(y) / 5) * sympy.cos(x)])
    u = sympy.Matrix([rho, rho * v[0], rho * v[1], p / (GAMMA - 1) + rho * v.dot(v) / 2])
    given = {"exact": list(u), "boundary": [gas.slip_wall("bottom"), fe.Dirichlet("boundary", "exact")]}
    if law == "viscous":
        given |= {"mach": MACH, "reynolds": REYNOLDS, "prandtl": PRANDTL}
    make, errors = library.compressible_navier_stokes if law == "viscous" else library.euler, []
    for faces in (4, 8):
        one = problem(make(2, source(law, u), **given), faces, 2)
        solution = one.solve(one.interpolate("exact"))
        errors.append(one.errors(solution)["L2"])
        assert abs(one.flux("bottom", solution)[0]) < 1e-12  # of mass
    assert errors[1] < most and np.log2(errors[0] / errors[1]) > 2.5


def test_the_first_condition_of_a_facet_holds():
    """Of boundary fluxes and Dirichlet conditions; one that would hold nowhere is refused."""
    wall = gas.slip_wall("bottom")
    for rest in (gas.far_field("boundary", STREAM), fe.Dirichlet("boundary", [1, 0.5, 0.1, 2.6])):
        one = problem(library.euler(2, boundary=[wall, rest]), 2, 1)
        u = one.solve(one.interpolate([1, 0.5, 0.0, 2.6]))
        assert abs(one.flux("bottom", u)[0]) < 1e-12 < abs(one.flux("left", u)[0])
        with pytest.raises(fe.PhysicsError, match="on 'bottom', number 1 of the list, holds nowhere"):
            problem(library.euler(2, boundary=[rest, wall]), 2, 1)
    walls = [fe.Dirichlet("boundary", 0.0), fe.Dirichlet("left", 1.0)]
    with pytest.raises(fe.PhysicsError, match="Dirichlet condition on 'left', number 1"):
        fe.Problem(fe.Mesh.box((2, 2)), library.poisson("f0[0] = -1;", boundary=walls), backend="sipg_gpu", degree=1)


def test_conditions_that_do_not_suit_the_flow_are_told():
    slow, fast = [1, 0.5, 0.0, 2.625], [1, 3.0, 0.0, 7.0]
    for state, end, told in (
        (slow, gas.outflow("right"), "on 'right' .* on 100 % of it.* give gas.pressure_outflow"),
        (fast, gas.pressure_outflow("right", 1.0), "on 'right' .* give gas.outflow"),
    ):
        sides = [fe.Dirichlet("left", state), end, gas.slip_wall("boundary")]
        one = problem(library.euler(2, boundary=sides), 2, 1)
        with pytest.warns(UserWarning, match=told):
            one.solve(one.interpolate(state))
    one = problem(library.euler(2, boundary=[]), 2, 1)
    with (
        pytest.warns(UserWarning, match="'euler' has no condition on a part of the boundary"),
        pytest.raises(fe.SolveError, match="^the density is -.* in cell"),
    ):
        one.solve(one.interpolate(slow))
    sides = [gas.inflow("left", 1.0, ["0.5", 0.0]), gas.pressure_outflow("right", 1.0), gas.slip_wall("boundary")]
    one = problem(library.euler(2, boundary=sides), 2, 1)
    u = one.solve(one.interpolate([1.1, 0.5, 0.1, 2.8]))
    assert one.integral("u[0]", u) == pytest.approx(1, abs=1e-6) == one.integral("2*u[1]", u)


VORTEX = """
  PetscReal r[2], square = 0.0;
  r[0] = (x[0] - 0.4 - 0.8*t)/0.2; r[1] = (x[1] - 0.4 - 0.6*t)/0.2;
  square = r[0]*r[0] + r[1]*r[1];
  const PetscReal bell = 0.3*exp(0.5*(1.0 - square)), T = 1.0 - 0.5*(gamma - 1.0)/gamma*bell*bell;
  const PetscReal rho = pow(T, 1.0/(gamma - 1.0)), v0 = 0.8 - bell*r[1], v1 = 0.6 + bell*r[0];
  OUT[0] = rho; OUT[1] = rho*v0; OUT[2] = rho*v1; OUT[3] = rho*T/(gamma - 1.0) + 0.5*rho*(v0*v0 + v1*v1);
"""


def vortex(one_flux: str = "roe") -> fe.Physics:
    """An isentropic vortex that moves through the far field of the unit square."""
    boundary = gas.far_field("boundary", VORTEX.replace("OUT", "w"))
    return library.euler(2, gas.RATE, flux=one_flux, boundary=boundary, exact=VORTEX.replace("OUT", "u"))


def test_solvers(monkeypatch):
    """Facet blocks without a matrix in time, while they take few iterations; incomplete LU otherwise, or LU by MUMPS of
    steady flow in the plane."""
    sides = [gas.slip_wall("bottom"), gas.far_field("boundary", STREAM)]
    guess = [1.05, 0.5, 0.0, 2.6]
    for has_mumps in {False, PETSc.Sys.hasExternalPackage("mumps")}:
        monkeypatch.setattr(direct_solvers, "_has_mumps", lambda has_mumps=has_mumps: has_mumps)
        steady = problem(library.euler(2, boundary=sides), 6, 1)
        steady.solve(steady.interpolate(guess))
        ksp = steady.snes.getKSP()
        assert steady.pmat == "aij" and ksp.getType() == "fgmres"
        assert ksp.getPC().getType() == ("lu" if has_mumps else "bjacobi") and bool(steady.direct) == has_mumps
    moving, found = library.euler(2, gas.RATE, boundary=sides), []
    for most in (150, 12, 2):  # none is slow, steps after the first, the first
        monkeypatch.setattr(assembled_fallback, "MOST_WITH_BLOCKS", most)
        monkeypatch.setattr(assembled_fallback, "MOST_ON_DEVICE", most)
        one = problem(moving, 6, 1)
        assert one.pmat == "none"
        found.append(one.solve_in_time(one.interpolate(guess), 0.2, dt=0.05).array)
        assert one.pmat == ("none" if most == 150 else "aij") and not one.direct
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-6)


@pytest.mark.full
def test_a_vortex_in_time():
    errors = []
    for faces in (4, 8):
        one = problem(vortex(), faces, 2)
        u = one.solve_in_time(one.interpolate("exact"), 0.03, dt=0.01)
        errors.append(one.errors(u, one.time)["L2"])
    assert errors[1] < 2.5e-3 and np.log2(errors[0] / errors[1]) > 2.6


@pytest.mark.skipif(not PETSc.Sys.hasExternalPackage("mumps"), reason="PETSc has no MUMPS")
def test_a_closed_container_is_told():
    """Nothing determines the mass of a steady gas between walls."""
    walls = [gas.no_slip_wall("left", 4.6), gas.no_slip_wall("right", 4.4), gas.no_slip_wall("boundary")]
    given = {"mach": 0.63, "reynolds": 5.0, "boundary": walls}
    one = problem(library.compressible_navier_stokes(2, **given), 4, 1)
    with pytest.warns(UserWarning, match="many solutions.* the mass in a closed container; put u_t into f0"):
        one.solve(one.interpolate([1.0, 0.0, 0.0, 4.5]))
    stream = [1.0, 0.5, 0.0, 4.6]
    given["boundary"] = [gas.far_field("left", stream), gas.far_field("right", stream), gas.slip_wall("boundary")]
    one = problem(library.compressible_navier_stokes(2, **given), 4, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one.solve(one.interpolate(stream))
    assert one.snes.getKSP().getPC().getType() == "lu"


def test_a_failed_linearization_is_forgotten():
    """The next residual in time is that of another state."""
    one = problem(vortex(), 2, 1)
    good, f = one.interpolate("exact"), one.create_vec()
    bad = good.copy()
    bad.scale(-1.0)
    calls = one.callbacks
    with pytest.raises(fe.SolveError, match="local problem of cell"):
        calls.ijacobian(None, 0.0, bad, bad, 1.0, calls.jacobian, calls.preconditioning)
    assert one.operator.failure
    calls.ifunction(None, 0.0, good, bad, f)
    assert not one.operator.failure and np.isfinite(f.norm())


DIRK = hasattr(PETSc.TS.Type, "DIRK")
# options of the TS, steps, least order between as many and twice as many
SCHEMES = {
    "bdf 2": ({"ts_type": "bdf", "ts_bdf_order": 2}, 12, 1.85),
    "bdf 3": ({"ts_type": "bdf", "ts_bdf_order": 3}, 12, 2.55),
    "arkimex": ({"ts_type": "arkimex", "ts_arkimex_type": "l2", "ts_adapt_type": "none"}, 6, 1.9),
    # PETSc before DIRK starts methods with an explicit stage by backward Euler
    "arkimex 3": ({"ts_type": "arkimex", "ts_arkimex_type": "3", "ts_adapt_type": "none"}, 6, 2.7 if DIRK else 1.9),
    "ars443": ({"ts_type": "arkimex", "ts_arkimex_type": "ars443", "ts_adapt_type": "none"}, 6, 2.7 if DIRK else 1.9),
}
if DIRK:
    SCHEMES["dirk"] = ({"ts_type": "dirk", "ts_dirk_type": "es324sal", "ts_adapt_type": "none"}, 6, 2.7)


def end_of(steps: int, **options) -> np.ndarray:
    with petsc_options(**{name: str(value) for name, value in options.items()}):
        one = problem(vortex("lax_friedrichs"), 4, 1)
        return one.solve_in_time(one.interpolate("exact"), 0.06, dt=0.06 / steps).getArray().copy()


@pytest.fixture(scope="module")
def reference() -> np.ndarray:
    return end_of(96, ts_type="bdf", ts_bdf_order=4)


@pytest.mark.full
@pytest.mark.parametrize("name", SCHEMES)
def test_orders_in_time(name, reference):
    """Data at the boundary move with the vortex."""
    options, steps, least = SCHEMES[name]
    errors = [np.abs(end_of(count, **options) - reference).max() for count in (steps, 2 * steps)]
    assert errors[1] < 1e-3 and np.log2(errors[0] / errors[1]) > least


def test_boundary_fluxes_are_for_traces():
    with pytest.raises(
        fe.PetscHdgError, match="has a boundary flux on 'boundary', which cg_gpu has no trace for; give"
    ):
        fe.Problem(fe.Mesh.box((2, 2)), manufactured("euler", far=True), degree=1)
    with pytest.raises(fe.PetscHdgError, match="-hdg_flux projected has no flux at the points of a facet, and physics"):
        problem(manufactured("euler", far=True), 2, 1, hdg_flux="projected")


BY_SPEED = (
    "for (PetscInt c = 0; c < Nc; ++c) for (PetscInt d = 0; d < Nc; ++d) S[c*Nc + d] = c == d ? {}*(1 + u[0]) : 0.0;"
)


def test_a_negative_matrix_is_refused():
    sides = gas.far_field("boundary", STREAM)
    with pytest.raises(fe.PhysicsError, match="'euler', stabilization: the matrix S has negative eigenvalues, so that"):
        problem(library.euler(2, stabilization=BY_SPEED.format("-1"), boundary=sides), 2, 1)
    with pytest.raises(fe.OptionError, match="-hdg_tau for .*: the matrix S has negative eigenvalues"):
        problem(library.euler(2, boundary=sides), 2, 1, hdg_tau=BY_SPEED.format("-1"))
    for kept in ("1", "0"):
        problem(library.euler(2, stabilization=BY_SPEED.format(kept), boundary=sides), 2, 1)


def test_a_state_without_pressure_is_told():
    one = problem(manufactured("euler"), 2, 1)
    u = one.interpolate("exact")
    u.scale(-1.0)
    with pytest.raises(fe.SolveError, match="DIVERGED_FUNCTION_DOMAIN"):
        one.solve(u)
    moving = problem(library.euler(2, gas.RATE, boundary=gas.far_field("boundary", STREAM)), 2, 1)
    with pytest.raises(fe.SolveError, match="step from t = 0 failed: the pressure is -0.85 in cell"):
        moving.solve_in_time(moving.interpolate([1.0, 0.5, 0.0, -2.0]), 0.1, 0.05)


def transport(value) -> fe.Physics:
    """Linear convection and diffusion of two fields, whose value on the left is given by a condition."""
    return fe.Physics(
        {"u": 2},
        "f0[0] = u[1] - 1; f0[1] = 0.3*u[0];",
        "for (d = 0; d < dim; ++d) { f1[d] = 0.1*u_x[d] - u[0]; f1[dim + d] = u_x[dim + d] - 0.2*u[0]; }",
        boundary=[value, fe.Dirichlet("right", 0.0)],
    )


@pytest.mark.parametrize("share", [True, False])
def test_values_by_a_boundary_flux(share):
    """They are those of a Dirichlet condition, for linear physics too, whose congruent cells share local solvers."""
    given = {"hdg_flux": "pointwise", "hdg_share": share}
    by_flux = problem(transport(fe.BoundaryFlux("left", "b[0] = u[0] - 1.5; b[1] = u[1] - x[1];")), 6, 1, **given)
    by_value = problem(transport(fe.Dirichlet("left", "g[0] = 1.5; g[1] = x[1];")), 6, 1, **given)
    assert by_flux.physics.is_linear and bool(by_flux.operator.local.classes) == share
    found, expected = (one.cell_values(one.solve())["u"] for one in (by_flux, by_value))
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())
    through, source = by_flux.operator.recovery.fluxes(by_flux.operator.arrays.zeros(by_flux.num_unknowns), 0.0)
    np.testing.assert_allclose(through.sum(axis=1), source, atol=1e-12)


def test_all_unknowns_at_once():
    """u, q and the trace by one matrix are the same solution."""
    sides = [fe.Dirichlet("left", 1.0), fe.BoundaryFlux("boundary", "b[0] = f_hat[0] + 0.3*u[0]*u_in[0];")]
    physics, found = library.burgers("f0[0] = u[0] - x[0];", viscosity=0.2, boundary=sides), []
    for solve in (fe.Problem.solve, lambda one: solve_full(one)[0]):
        with petsc_options(snes_rtol="1e-12", ksp_rtol="1e-12"):
            one = problem(physics, 2, 1)
            found.append(one.cell_values(solve(one))["u"])
    np.testing.assert_allclose(found[1], found[0], atol=1e-9)


# Velocity across y = 0 is 0 in "shallow water, wall".
OTHERS = ["convection", "burgers", "shallow water", "shallow water, wall"]


@pytest.mark.full("shallow water")
@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("law", OTHERS)
def test_other_laws(law, far):
    """Orders with sources made by sympy, of Dirichlet data and of the flux to a state outside."""
    x, y = X
    if law == "burgers":
        u = sympy.Matrix([1 + sympy.sin(x + 2 * y) / 4])
        f1 = sympy.Matrix([[-(u[0] ** 2) / 2 + sympy.diff(u[0], each) / 100 for each in X]])
        make = lambda f0, **given: library.burgers(f0, viscosity=0.01, **given)  # noqa: E731
    elif law == "convection":
        u = sympy.Matrix([1 + sympy.sin(x + 2 * y) / 4])
        f1 = -sympy.Matrix([[u[0] * (1 + y), u[0] * (0.5 - x)]])
        make = lambda f0, **given: library.convection(["1 + x[1]", "0.5 - x[0]"], f0, **given)  # noqa: E731
    else:
        across = y * sympy.cos(y) / 3 if "wall" in law else 0.3 + sympy.sin(y) / 5
        u = sympy.Matrix([1 + sympy.sin(x + y) / 5, 0.5 + sympy.cos(x) / 5, across])
        f1 = -sympy.Matrix.vstack(u[1:, 0].T, u[1:, 0] * u[1:, 0].T / u[0] + u[0] ** 2 * sympy.eye(2))
        make = lambda f0, **given: library.shallow_water(2, f0, gravity=2.0, **given)  # noqa: E731
    f0 = [sum(sympy.diff(f1[c, d], X[d]) for d in range(2)) for c in range(len(u))]
    rest = library.outer_state("boundary", [sympy.ccode(entry) for entry in u]) if far else None
    walls = [library.slip_wall("bottom")] if "wall" in law else []
    physics = make(f0, exact=list(u), boundary=[*walls, rest or fe.Dirichlet("boundary", "exact")])
    errors = []
    for faces in (4, 8):
        one = problem(physics, faces, 1)
        solution = one.solve(disturbed(one, 0.05))
        errors.append(one.errors(solution)["L2"])
        if walls:
            assert abs(one.flux("bottom", solution)[0]) < 1e-10  # of water
    assert errors[1] < 5e-3 and np.log2(errors[0] / errors[1]) > (1.75 if law == "convection" else 1.8)


def test_a_front_leaves():
    """Convection of exact data to the outflow: what has left is gone, and what comes in is the state outside."""
    shape = "exp(-40*pow(x[0] - 2*t - 0.3, 2))"
    sides = [library.outer_state(["left", "right"], shape), fe.BoundaryFlux("boundary", "b[0] = f_hat[0];")]
    physics = library.convection([2.0, 0.0], "f0[0] = u_t[0];", exact=f"u[0] = {shape};", boundary=sides)
    tube = fe.Mesh.box((24, 1), simplex=False, upper=(1.0, 0.1), comm=PETSc.COMM_SELF)
    one = fe.Problem(tube, physics, backend="hdg_gpu", degree=2, check_kernels=False)
    u = one.solve_in_time(one.interpolate("exact"), 0.6, dt=0.005)
    assert one.errors(u, 0.6)["L2"] < 2e-3 and abs(one.integral("u[0]", u)) < 1e-3
