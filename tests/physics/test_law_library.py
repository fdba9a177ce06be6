"""Ready-made conservation laws: fluxes, waves and boundary fluxes against plain numpy, positivity, and bad input."""

from __future__ import annotations

import re

import numpy as np
import pytest
from agreement import assert_close, assert_second_order, assert_text_agrees, random_state
from compiled_physics import CompiledPhysics
from wrong_physics import assert_one_clear_sentence

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics import library
from petsc_hdg.physics.library import gas

GAMMA, MACH, REYNOLDS, PRANDTL, SUTHERLAND = 1.3, 0.4, 20.0, 0.8, 0.5
NUMBERS = {"gamma": GAMMA, "mach": MACH, "reynolds": REYNOLDS, "prandtl": PRANDTL}
STATE = "w[0] = 1.1; w[1] = 0.3; w[2] = -0.2; w[dim] = 0.1; w[dim + 1] = 2.7;"
BOUNDARY = [
    gas.far_field("a", STATE),
    gas.slip_wall("b"),
    gas.no_slip_wall("c"),
    gas.no_slip_wall("d", "2.5"),
    gas.pressure_outflow("e", "0.7"),
    gas.outflow("f"),
]


def made(name: str, dim: int):
    return {
        "euler": lambda: library.euler(dim, gamma=GAMMA, flux="roe", boundary=BOUNDARY[:2]),
        "constant viscosity": lambda: library.compressible_navier_stokes(dim, **NUMBERS, boundary=BOUNDARY),
        "sutherland": lambda: library.compressible_navier_stokes(
            dim, **NUMBERS, viscosity="sutherland", flux="roe", constants={"sutherland": SUTHERLAND}
        ),
        "burgers": lambda: library.burgers(viscosity=0.2),
        "convection": lambda: library.convection([0.4, "-x[0]", 0.3][:dim], viscosity=0.2),
        "shallow water": lambda: library.shallow_water(dim, gravity=9.0),
    }[name]()


X = [0.3, 0.7, 0.2]


def sample(dim: int, seed: int = 0) -> dict:
    """A state of positive pressure and its neighbours, at a point."""
    rng = np.random.default_rng(seed)
    u = np.concatenate([[1.2], rng.uniform(-0.7, 0.7, dim), [3.0]])
    normal = rng.normal(size=dim)
    u_x = rng.uniform(-1, 1, (dim + 2, dim))
    return {"u": u, "u_x": u_x, "n": normal / np.linalg.norm(normal), "u_in": u + 0.1, "f_hat": rng.random(dim + 2)}


def flux(name: str, u: np.ndarray, u_x: np.ndarray) -> np.ndarray:
    """f1 [component, dim]."""
    dim = u_x.shape[1]
    if name == "burgers":
        return 0.2 * u_x - 0.5 * u[0] ** 2
    if name == "convection":
        return 0.2 * u_x - u[0] * np.array([0.4, -X[0], 0.3])[:dim]
    if name == "shallow water":
        v = u[1:] / u[0]
        return -np.vstack([u[1:], np.outer(u[1:], v) + 4.5 * u[0] ** 2 * np.eye(dim)])
    rho, v, energy = u[0], u[1:-1] / u[0], u[-1]
    p = (GAMMA - 1) * (energy - 0.5 * rho * v @ v)
    f1 = -np.vstack([rho * v, rho * np.outer(v, v) + p * np.eye(dim), (energy + p) * v])
    if name == "euler":
        return f1
    temperature = GAMMA * MACH**2 * p / rho
    mu = temperature**1.5 * (1 + SUTHERLAND) / (temperature + SUTHERLAND) if name == "sutherland" else 1.0
    v_x = (u_x[1:-1] - np.outer(v, u_x[0])) / rho
    p_x = (GAMMA - 1) * (u_x[-1] - 0.5 * v @ v * u_x[0] - rho * v @ v_x)
    temperature_x = GAMMA * MACH**2 * (p_x - p / rho * u_x[0]) / rho
    sigma = mu / REYNOLDS * (v_x + v_x.T - 2 / 3 * np.trace(v_x) * np.eye(dim))
    heat = mu / (REYNOLDS * PRANDTL * (GAMMA - 1) * MACH**2) * temperature_x
    return f1 + np.vstack([0 * v, sigma, sigma @ v + heat])


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize(
    "name", ["euler", "constant viscosity", "sutherland", "burgers", "shallow water", "convection"]
)
def test_flux(name, dim, tmp_path):
    """f1 is the textbook's; text and interpreter agree, and the derivative is that of differences."""
    physics = made(name, dim)
    count = physics.num_components
    s = random_state(physics, dim) | {key: value for key, value in sample(dim).items() if key not in ("u", "u_x")}
    s |= {"u": sample(dim)["u"][:count], "u_x": sample(dim)["u_x"][:count], "x": np.array(X[:dim])}
    interpreter = physics.interpreter(dim)
    found = interpreter.pw_residual(s["u"], None, s["u_x"], None, None, 0, s["x"])[1]
    assert_close(found, flux(name, s["u"], s["u_x"]))
    assert_text_agrees(CompiledPhysics(physics, dim, tmp_path), interpreter, s)
    assert_second_order(interpreter, s)
    assert physics.is_conservation_law != physics.is_linear == (name == "convection")


def derivative(physics, s: dict) -> np.ndarray:
    """A = ∂(F·n)/∂u of a gas without viscosity."""
    dim = len(s["n"])
    g2 = physics.interpreter(dim).g_blocks(s["u"], None, None, None, None, 0, 0, None)[2]
    return -g2 @ s["n"]


def of_waves(A: np.ndarray, function) -> np.ndarray:
    """A function of a matrix with real eigenvalues."""
    values, vectors = np.linalg.eig(A)
    return (vectors @ np.diag(function(values.real)) @ np.linalg.inv(vectors)).real


def size(speeds: np.ndarray, c: float) -> np.ndarray:
    return np.sqrt(speeds**2 + (0.05 * c) ** 2)


def sound(u: np.ndarray) -> float:
    """The speed of sound."""
    return np.sqrt(GAMMA * (GAMMA - 1) * (u[-1] - 0.5 * u[1:-1] @ u[1:-1] / u[0]) / u[0])


@pytest.mark.parametrize("dim", [2, 3])
def test_waves(dim):
    """Roe's matrix is |A|, rounded at 0, by the eigenvalues of numpy; at far fields waves enter and leave by theirs."""
    physics, s = made("euler", dim), sample(dim)
    A, interpreter, n = derivative(physics, s), physics.interpreter(dim), s["n"]
    v = s["u"][1:-1] / s["u"][0]
    c = sound(s["u"])
    speeds = np.sort([v @ n - c, *[v @ n] * dim, v @ n + c])
    assert_close(np.sort(np.linalg.eigvals(A).real), speeds, factor=1e8)
    S = interpreter.pw_stabilization(None, None, 0, None, n, None, s["u"])
    assert_close(S, of_waves(A, lambda x: size(x, c)), factor=1e8)
    w = np.zeros(dim + 2)
    w[[0, 1, 2]], w[dim], w[-1] = (1.1, 0.3, -0.2), 0.1, 2.7
    largest = abs(v @ n) + c
    b = interpreter.pw_boundary_flux(0, s["u"], None, s["u_in"], None, None, None, 0, None, n)
    mean = s | {"u": (s["u_in"] + w) / 2}
    A, near = derivative(physics, mean), sound(mean["u"])
    leaving, entering = (of_waves(A, lambda x, k=k: (size(x, near) + k * x) / 2) for k in (1, -1))
    assert_close(b, leaving @ (s["u_in"] - s["u"]) + entering @ (w - s["u"]), factor=1e8)
    lax = library.euler(dim, gamma=GAMMA).interpreter(dim).pw_stabilization(None, None, 0, None, n, None, s["u"])
    assert_close(lax, np.full(dim + 2, largest))
    hll = library.euler(dim, gamma=GAMMA, flux="hll").interpreter(dim)
    assert_close(hll.pw_stabilization(None, None, 0, None, n, None, s["u"]), np.full(dim + 2, v @ n + c))


@pytest.mark.parametrize("dim", [2, 3])
def test_boundary_fluxes(dim):
    """Traces that satisfy the conditions of walls and of outflow make b zero; the rest is the flux of energy. Through a
    slip wall nothing goes but momentum along n."""
    interpreter, s = made("constant viscosity", dim).interpreter(dim), sample(dim)
    u_in, n, rho, m = s["u_in"], s["n"], s["u_in"][0], s["u_in"][1:-1]
    rest = np.concatenate([[rho], 0 * m, [u_in[-1]]])
    warm = np.concatenate([[rho], 0 * m, [2.5 * rho]])
    low = np.concatenate([u_in[:-1], [0.7 / (GAMMA - 1) + 0.5 * m @ m / rho]])
    for condition, trace, energy in ((2, rest, s["f_hat"][-1]), (3, warm, 0), (4, low, 0), (5, u_in, 0)):
        b = interpreter.pw_boundary_flux(condition, trace, None, u_in, s["f_hat"], None, None, 0, None, n)
        assert_close(b, [0] * (dim + 1) + [energy])
    b = interpreter.pw_boundary_flux(1, u_in, None, u_in, s["f_hat"], None, None, 0, None, n)
    along = s["f_hat"][1:-1] - s["f_hat"][1:-1] @ n * n
    assert_close(b, [s["f_hat"][0], *(along + m @ n * n), s["f_hat"][-1]])


@pytest.mark.parametrize(
    "name, state", [("euler", [-1, 0, 0, 2]), ("euler", [1, 2, 0, 1]), ("shallow water", [-1, 0, 0])]
)
def test_states_that_are_none(name, state):
    physics = made(name, 2)
    assert np.isnan(physics.interpreter(2).pw_residual(state, None, None, None, None, 0, None)[1]).any()


BAD = {
    "gamma": (
        lambda: library.euler(2, gamma=1.0),
        "physics 'euler': constant 'gamma' is 1.0; give a number above 1",
    ),
    "gamma by constants": (
        lambda: library.euler(2, constants={"gamma": 0.9}),
        "constant 'gamma' is 0.9; give a number above 1",
    ),
    "gamma, changed": (
        lambda: library.euler(2).with_constants(gamma=0.9),
        "constant 'gamma' is 0.9; give a number above 1",
    ),
    "flux": (lambda: library.euler(2, flux="upwind"), "flux is 'upwind'; give lax_friedrichs, hll, roe"),
    "mach": (lambda: library.compressible_navier_stokes(2, mach=0), "constant 'mach' is 0; give a number above 0"),
    "reynolds": (
        lambda: library.compressible_navier_stokes(2, reynolds=-1),
        "constant 'reynolds' is -1; give a number above 0",
    ),
    "prandtl": (
        lambda: library.compressible_navier_stokes(2, prandtl=float("nan")),
        "constant 'prandtl' is nan; give a finite",
    ),
    "dimension": (lambda: library.euler(4), "dimension of physics 'euler' is given as 4; give a whole number, 2 to 3"),
    "viscosity": (
        lambda: library.compressible_navier_stokes(2, viscosity="x"),
        "viscosity is 'x'; give constant, suth",
    ),
    "burgers": (lambda: library.burgers(viscosity=-0.1), "viscosity is -0.1; give 0 or a number above 0"),
    "gravity": (lambda: library.shallow_water(gravity=0), "constant 'gravity' is 0; give a number above 0"),
    "state": (lambda: library.euler(2, boundary=gas.far_field("a", "w[0] = rho;")), "unknown name 'rho'"),
    "short state": (
        lambda: library.euler(2, boundary=gas.far_field("a", [1, 0, 0])).device_source(2),
        "condition on 'a', line 5: 'w[3]' is read before it is set",
    ),
    "long state": (
        lambda: library.convection([1, 0], boundary=library.outer_state("a", [1, 0])).device_source(2),
        "condition on 'a', line 2: index 1 is outside w, which has 1 element",
    ),
    "three velocities in the plane": (
        lambda: library.euler(2, boundary=gas.inflow("a", 1.0, [1, 0, 0])).device_source(2),
        "condition on 'a', line 2: index 2 is outside velocity, which has 2 element",
    ),
    "two velocities in space": (
        lambda: library.euler(3, boundary=gas.inflow("a", 1.0, [1, 0])).device_source(3),
        "condition on 'a', line 5: 'velocity[2]' is read before it is set",
    ),
    "viscosity of burgers": (lambda: library.burgers(viscosity="x"), "viscosity is 'x'; give 0 or a number above 0"),
    "wind": (
        lambda: library.convection(1.0),
        "velocity of physics convection is 1.0; give a list of one number or exp",
    ),
    "no slip without viscosity": (
        lambda: library.euler(2, boundary=[gas.slip_wall("a"), gas.no_slip_wall("b")]),
        "condition on 'b': f1 reads no gradient, and a gas without viscosity slips along walls; give gas.slip_wall",
    ),
    "space in the plane": (lambda: library.euler(3).device_source(2), "is made for dimension 3; give one made for 2"),
    "wall without velocity": (
        lambda: library.burgers(boundary=library.slip_wall("a")).device_source(2),
        "condition on 'a', line 2: index 1 is outside u, which has 1 element",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    assert_one_clear_sentence(*BAD[name])


BAD_CONDITIONS = {
    "pressure": (
        lambda: gas.pressure_outflow("a", 0),
        "gas.pressure_outflow on 'a' is 0; give a number above 0, or an",
    ),
    "state of another kind": (
        lambda: gas.far_field("a", None),
        "gas.far_field on 'a' is None; give text that writes w",
    ),
    "one velocity": (lambda: gas.inflow("a", 1.0, 0.5), "gas.inflow on 'a' is 0.5; give a list of one number"),
    "density": (lambda: gas.inflow("a", -1.0, [1, 0]), "density of gas.inflow on 'a' is -1.0; give a number above 0"),
    "energy": (lambda: gas.no_slip_wall("a", [1]), "energy of gas.no_slip_wall on 'a' is [1]; give a number above 0"),
}


@pytest.mark.parametrize("name", BAD_CONDITIONS)
def test_bad_conditions(name):
    """A sentence where the condition is made, which no physics has yet."""
    make, message = BAD_CONDITIONS[name]
    with pytest.raises(PhysicsError, match=re.escape(message)):
        make()
