"""Shock capturing: the sensor beside numpy, smooth fields, shocks of Burgers and Sod, ranks, refusals."""

from __future__ import annotations

import importlib
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from run_shock_sensor import FACES, run
from scipy.optimize import brentq

import petsc_hdg as fe
from petsc_hdg.errors import OptionError, PhysicsError
from petsc_hdg.physics import library
from petsc_hdg.physics.library import gas

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("run_shock_sensor.py")
DIFFUSION = "for (d = 0; d < dim; ++d) f1[d] = epsilon*u_x[d];"


def problem_of(dim: int, faces: int, simplex: bool, degree: int, backend: str = "hdg_gpu", **given) -> fe.Problem:
    """A physics of the user's own, with u_t, whose cells hold any field."""
    physics = fe.Physics({"u": 1}, "f0[0] = u_t[0];", DIFFUSION, **{"auxiliary": {"epsilon": 1}, **given})
    mesh = fe.Mesh.box(dim * (faces,), simplex=simplex, comm=PETSc.COMM_SELF)
    return fe.Problem(mesh, physics, backend=backend, degree=degree, check_kernels=False)


def wavy(x):
    """Polynomial of degree 2 in all coordinates together, whose share of degree 2 differs much among cells."""
    return 1.0 + 0.3 * x[..., 0] - 0.2 * x[..., 1] + 0.05 * (x**2).sum(axis=-1) + 0.3 * x[..., 0] * x[..., 1]


def shares(mesh, f, degree: int) -> np.ndarray:
    """S [cell] of a polynomial f of `degree` in affine cells, by least squares with monomials at Gauss points."""
    dim, is_simplex = mesh.dim, mesh.cell in ("triangle", "tetrahedron")
    abscissae, weights = np.polynomial.legendre.leggauss(degree + 4)
    line = 0.5 * (abscissae + 1)
    grid = np.array(list(itertools.product(line, repeat=dim)))
    w = np.prod(list(itertools.product(weights, repeat=dim)), axis=1)
    if is_simplex:  # the cube collapses onto the simplex
        for k in range(1, dim):
            w = w * np.prod([1 - grid[:, j] for j in range(k)], axis=0)
        grid = np.stack([grid[:, k] * np.prod(1 - grid[:, :k], axis=1) for k in range(dim)], axis=1)
    powers = [a for a in itertools.product(range(degree), repeat=dim) if not is_simplex or sum(a) < degree]
    low = np.stack([np.prod(grid**a, axis=1) for a in powers], axis=1) * np.sqrt(w)[:, None]
    found = []
    for corners in mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells]]:
        edges = corners[[1, 2, *([3] if mesh.cell == "tetrahedron" else [])]] - corners[0]
        values = f(corners[0] + grid @ edges) * np.sqrt(w)
        rest = values - low @ np.linalg.lstsq(low, values, rcond=None)[0]
        found.append(rest @ rest / (values @ values))
    return np.array(found)


@pytest.mark.parametrize(
    "dim, simplex, backend", [(2, True, "hdg_gpu"), (2, False, "hdg_gpu"), (2, True, "cg_gpu"), (3, True, "cg_gpu")]
)
def test_beside_numpy(dim, simplex, backend):
    """Shares, and viscosities of all three branches of the ramp, of a field that the space contains."""
    problem = problem_of(dim, 3 if dim == 2 else 2, simplex, 2, backend)
    assert problem.mesh.dim == dim
    expected = np.log10(shares(problem.mesh, wavy, 2))
    s0, width = float(np.median(expected)), float(np.ptp(expected)) / 4
    assert width > 0.05
    sensor = fe.ShockSensor(problem, "2*u[0]", "epsilon", speed="1 + u[0]*0", threshold=s0, width=width)
    u = problem.interpolate(wavy)
    np.testing.assert_allclose(sensor.indicator(u), expected, atol=1e-9)
    largest = 1 / (3 if dim == 2 else 2) / 2  # h / p
    ramp = [
        0.0
        if s < s0 - width
        else largest
        if s > s0 + width
        else largest / 2 * (1 + math.sin(math.pi * (s - s0) / (2 * width)))
        for s in expected
    ]
    assert 0.0 in ramp and largest in ramp and len(set(np.round(ramp, 6))) > 2
    np.testing.assert_allclose(sensor.update(u), ramp, atol=1e-8)
    np.testing.assert_allclose(problem.field("epsilon", u).values()[:, 0, 0], ramp, atol=1e-8)


def test_shortest_edge():
    """h of a stretched cell is its shortest edge, and `speed` the largest value in it."""
    physics = fe.Physics({"u": 1}, "f0[0] = u[0];", DIFFUSION, auxiliary={"epsilon": 1})
    mesh = fe.Mesh.box((1, 1), simplex=False, upper=(3.0, 0.5), comm=PETSc.COMM_SELF)
    problem = fe.Problem(mesh, physics, backend="cg_gpu", degree=2, check_kernels=False)
    sensor = fe.ShockSensor(problem, "u", "epsilon", speed="fabs(x[0]) < 10 ? 7.0 : 0.0", threshold=-9)
    np.testing.assert_allclose(sensor.update(problem.interpolate(lambda x: x[..., 0] ** 2)), [7 * 0.5 / 2])


def test_a_state_has_its_time():
    """A quantity that depends on t is taken at the time of the state, where none is given."""
    problem = problem_of(2, 3, True, 2)
    sensor = fe.ShockSensor(problem, "u[0] + t", "epsilon", speed="1 + t")
    u = problem.interpolate(wavy, 2.0)
    assert not np.allclose(sensor.indicator(u), sensor.indicator(u, 0.0))
    np.testing.assert_array_equal(sensor.indicator(u), sensor.indicator(u, 2.0))
    np.testing.assert_array_equal(sensor.update(u), sensor.update(u, 2.0))


@pytest.mark.parametrize("degree", [2, 3])
def test_smooth_fields_have_none(degree):
    """Fields of a lower degree have no share, smooth ones no viscosity; a jump has."""
    problem = problem_of(2, 8, True, degree)
    sensor = fe.ShockSensor(problem, "u[0]", "epsilon")
    low = problem.interpolate(lambda x: 1 + (x[..., 0] - 2 * x[..., 1]) ** (degree - 1))
    assert sensor.indicator(low).max() < -25
    sine = problem.interpolate(lambda x: 2 + np.sin(2 * x[..., 0] + x[..., 1]))
    assert not sensor.update(sine).any()
    assert not sensor.update(problem.create_vec()).any()
    jump = sensor.update(problem.interpolate(lambda x: 1.0 + (x[..., 0] > 0.56)))
    assert 0 < np.count_nonzero(jump) < problem.mesh.num_cells / 3


def test_burgers_shock(mpirun):
    """With the sensor u stays between its sides; without it does not. Two ranks have the viscosity of one."""
    _, viscosity, (least, most) = run(PETSc.COMM_SELF, speed=1.0)
    assert 0 < np.count_nonzero(viscosity) <= FACES / 3
    bare = run(PETSc.COMM_SELF, speed=0.0)
    assert not bare[1].any()
    assert max(-bare[2][0], bare[2][1] - 1) > 0.05
    assert max(-least, most - 1) < 0.01
    rows, *ends = json.loads(mpirun(2, SCRIPT).stdout.splitlines()[-1])
    np.testing.assert_allclose(sorted(row[1] for row in rows), np.sort(viscosity), atol=1e-7)
    np.testing.assert_allclose(ends, [least, most], atol=1e-6)


@pytest.fixture
def sod(monkeypatch):
    """The example of Sod's tube as a module."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    return importlib.import_module("sod_hdg")


def test_sod_by_jump_conditions(sod):
    """The states of the example are those that the shock and the rarefaction join (Toro, 4.2)."""
    shock, c = lambda p: (p - 0.1) * math.sqrt(2 / 2.4 / 0.125 / (p + 0.1 / 6)), math.sqrt(1.4)
    wave = lambda p: 2 * c / 0.4 * (1 - p ** (0.4 / 2.8))  # noqa: E731
    p = brentq(lambda p: shock(p) - wave(p), 0.11, 0.99, xtol=1e-14)
    right = 0.125 * (p / 0.1 + 1 / 6) / (p / 0.1 / 6 + 1)
    expected = {"p_star": p, "v_star": wave(p), "left": p ** (1 / 1.4), "right": right}
    expected["shock"] = right * wave(p) / (right - 0.125)
    assert sod.STAR == pytest.approx(expected, rel=1e-8)


@pytest.mark.full
def test_sod(sod):
    """Density and pressure stay within those of both sides, and the L1 error halves with h."""
    found = []
    for faces in (8, 16):
        problem = sod.tube(faces, check_kernels=False)
        found.append(sod.numbers(problem, *sod.run(problem, faces, courant=0.4, speed=1.0), faces))
        assert found[-1]["variation"] < 1.03 and found[-1]["most density"] < 1.001
        assert found[-1]["least density"] > 0.124 and found[-1]["least pressure"] > 0.099
        assert 0 < found[-1]["cells"] <= 6
    assert found[1]["L1"] < 0.035
    assert np.log2(found[0]["L1"] / found[1]["L1"]) > 0.55


@pytest.mark.full
def test_a_viscous_shock(sod):
    """Sod's tube at Re 10⁴ by the Navier-Stokes equations, where p = 1 / (γ M²) = 1: bounded with the sensor."""
    sides = [fe.Dirichlet("left", list(sod.LEFT)), fe.Dirichlet("right", list(sod.RIGHT)), gas.slip_wall("boundary")]
    given = {"mach": 1.4**-0.5, "reynolds": 1e4, "constants": sod.STAR, "boundary": sides}
    physics = library.compressible_navier_stokes(2, gas.RATE, artificial_viscosity=True, **given)
    mesh = fe.Mesh.box((16, 1), simplex=False, upper=(1.0, 1 / 16), comm=PETSc.COMM_SELF)
    problem = fe.Problem(mesh, physics, backend="hdg_gpu", degree=2, check_kernels=False)
    found = [sod.numbers(problem, *sod.run(problem, 16, speed=speed), 16) for speed in (1.0, 0.0)]
    assert found[0]["variation"] < 1.03 < 1.05 < found[1]["variation"]
    assert found[0]["most density"] < 1.001 and found[0]["least density"] > 0.124 > found[1]["least density"]
    assert found[0]["least pressure"] > 0.099 > found[1]["least pressure"]
    assert found[0]["L1"] < 0.035


def of_scheme(degree: int, backend: str, auxiliary: str = "epsilon", space: str = "cell") -> fe.ShockSensor:
    given = {"auxiliary": {"epsilon": 1, "nu": fe.Auxiliary(1, space)}}
    return fe.ShockSensor(problem_of(2, 2, True, degree, backend, **given), "u", auxiliary)


WHO = "of a shock sensor"
BAD = {
    "degree 1": (lambda: of_scheme(1, "hdg_gpu"), OptionError, "hdg_gpu of degree 1; it needs hdg_gpu, sipg_gpu or"),
    "polytopes": (lambda: of_scheme(2, "poly_gpu"), OptionError, "poly_gpu of degree 2; it needs hdg_gpu"),
    "no field": (lambda: sensor(auxiliary="nu"), PhysicsError, "auxiliary field 'nu', which physics '.*' lacks; give"),
    "nodal": (lambda: of_scheme(2, "cg_gpu", "nu", "nodal"), PhysicsError, "'nu', .* has with other values; give the"),
    "speed": (lambda: sensor(speed=-1.0), OptionError, f"speed {WHO} is given as -1.0; give 0"),
    "no speed": (lambda: sensor(speed=None), OptionError, f"speed {WHO} is given as None; give a finite number"),
    "width": (lambda: sensor(width=0), OptionError, f"width {WHO} is given as 0; give a number above 0"),
    "threshold": (lambda: sensor(threshold="x"), OptionError, f"threshold {WHO} is given as 'x'; give a"),
    "quantity": (lambda: updated(quantity="pressure"), PhysicsError, "unknown name 'pressure'"),
    "a vector": (lambda: updated(quantity="grad_u"), OptionError, f"quantity {WHO}, 'grad_u', has 2 components; give"),
    "no number": (lambda: updated(speed="1/(0*u[0])"), PhysicsError, "auxiliary field 'epsilon' has the value"),
}


def sensor(**given) -> fe.ShockSensor:
    return fe.ShockSensor(problem_of(2, 2, True, 2, "cg_gpu"), **{"auxiliary": "epsilon", **given})


def updated(**given):
    made = sensor(**given)
    return made.update(made.problem.interpolate(lambda x: 1 + x[..., 0] ** 2))


@pytest.mark.parametrize("name", BAD)
def test_refusals(name):
    call, kind, sentence = BAD[name]
    with pytest.raises(kind, match=sentence) as raised:
        call()
    assert "\n" not in str(raised.value)


LAWS = {f"euler {flux}": (library.euler, {"flux": flux}, 4) for flux in ("lax_friedrichs", "roe", "hll")}
LAWS["shallow water"] = library.shallow_water, {}, 3
VISCOUS = {
    "constant": {},
    "roe": {"flux": "roe"},
    "sutherland": {"viscosity": "sutherland"},
    "alone": {"convection": False},
}
LAWS |= {f"viscous {name}": (library.compressible_navier_stokes, given, 4) for name, given in VISCOUS.items()}


@pytest.mark.parametrize("law", LAWS)
def test_library(law):
    """f1 gains ε ∇u, and the stabilization ε of each component."""
    make, given, count = LAWS[law]
    n, u, u_x = np.array([0.6, 0.8]), np.array([1.0, 0.3, -0.2, 2.0])[:count], np.arange(2.0 * count).reshape(count, 2)
    found = []
    for wanted in (False, True):
        physics = make(2, artificial_viscosity=wanted, **given)
        assert [a.name for a in physics.auxiliary] == ["artificial_viscosity"] * wanted
        a, a_x = (np.array([0.7]), np.zeros((1, 2))) if wanted else (None, None)
        functions = physics.interpreter(2)
        f1 = functions.pw_residual(u, None, u_x, a, a_x, 0, None)[1]
        found.append((f1, functions.pw_stabilization(a, a_x, 0, None, n, None, u)))
    (without, tau), (f1, more) = found
    np.testing.assert_allclose(f1 - without, 0.7 * u_x, atol=1e-12)
    np.testing.assert_allclose(more - tau, 0.7 * (np.eye(count) if tau.ndim == 2 else np.ones(count)), atol=1e-12)
