"""Checks shared by the tests of physics: text against interpreter, derivatives against differences."""

from __future__ import annotations

import numpy as np


def random_state(physics, dim: int, seed: int = 0, low: float = 0.1, high: float = 0.9) -> dict[str, np.ndarray]:
    """Inputs of the pw_* functions, uniform between `low` and `high`; directions between -1 and 1."""
    rng = np.random.default_rng(seed)
    num_u, num_a = physics.num_components, physics.num_auxiliary
    shapes = {"u": num_u, "u_t": num_u, "u_x": (num_u, dim), "a": num_a, "a_x": (num_a, dim), "x": dim}
    state = {name: rng.uniform(low, high, shape) for name, shape in shapes.items()}
    rates = {name: rng.uniform(-1, 1, shapes[name[1:]]) for name in ("du", "du_t", "du_x")}
    normal = rng.normal(size=dim)
    return state | rates | {"n": normal / np.linalg.norm(normal), "t": 0.3}


def residual(functions, s: dict) -> np.ndarray:
    """f0 and f1, flat."""
    f0, f1 = functions.pw_residual(s["u"], s["u_t"], s["u_x"], s["a"], s["a_x"], s["t"], s["x"])
    return np.concatenate([f0.ravel(), f1.ravel()])


def jacobian(functions, s: dict, shift: float = 0.0) -> np.ndarray:
    """df0 and df1 along du, du_t, du_x, flat."""
    rates = s["du"], s["du_t"], s["du_x"]
    state = s["u"], s["u_t"], s["u_x"]
    df0, df1 = functions.pw_jacobian(*state, *rates, s["a"], s["a_x"], s["t"], shift, s["x"])
    return np.concatenate([df0.ravel(), df1.ravel()])


def boundary(functions, s: dict, condition: int) -> np.ndarray:
    """f0 and f1 of a natural condition, flat."""
    state = s["u"], s["u_t"], s["u_x"], s["a"], s["a_x"], s["t"], s["x"], s["n"]
    return np.concatenate([flux.ravel() for flux in functions.pw_boundary(condition, *state)])


def boundary_jacobian(functions, s: dict, condition: int) -> np.ndarray:
    """df0 and df1 of a natural condition along du, du_t, du_x, flat."""
    rates = s["du"], s["du_t"], s["du_x"]
    state = s["u"], s["u_t"], s["u_x"]
    rest = s["a"], s["a_x"], s["t"], 0.0, s["x"], s["n"]
    found = functions.pw_boundary_jacobian(condition, *state, *rates, *rest)
    return np.concatenate([flux.ravel() for flux in found])


def moved(s: dict, step: float) -> dict:
    """The state moved by `step` along its directions."""
    return s | {name: s[name] + step * s["d" + name] for name in ("u", "u_t", "u_x")}


def taylor_order(value, rate: np.ndarray, s: dict, steps=(1e-2, 1e-3)) -> float:
    """Order of  value(s + h ds) - value(s) - h rate  in h; infinite if it is zero to rounding."""
    start = value(s)
    rests = [np.abs(value(moved(s, step)) - start - step * rate).max() for step in steps]
    scale = np.abs(start).max() + np.abs(rate).max()
    if rests[1] <= 64 * np.finfo(float).eps * scale:
        return np.inf
    return np.log(rests[0] / rests[1]) / np.log(steps[0] / steps[1])


def assert_close(actual, expected, factor: float = 1e3, real=np.float64) -> None:
    """Agreement to `factor` roundings of the largest expected value."""
    actual, expected = np.asarray(actual, float), np.asarray(expected, float)
    scale = max(np.abs(expected).max(initial=0.0), 1e-3)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=factor * np.finfo(real).eps * scale)


def assert_text_agrees(compiled, interpreter, s: dict, factor: float = 1e3, real=np.float64) -> None:
    """Residual, Jacobian and boundary terms of device text and interpreter agree."""
    assert_close(residual(compiled, s), residual(interpreter, s), factor, real)
    assert_close(jacobian(compiled, s), jacobian(interpreter, s), factor, real)
    for condition in range(len(compiled.physics.natural)):
        assert_close(boundary(compiled, s, condition), boundary(interpreter, s, condition), factor, real)
        assert_close(
            boundary_jacobian(compiled, s, condition), boundary_jacobian(interpreter, s, condition), factor, real
        )


def assert_second_order(functions, s: dict, at_least: float = 1.9) -> None:
    """Taylor test: the rest after the derivative is of second order."""
    assert taylor_order(lambda state: residual(functions, state), jacobian(functions, s), s) > at_least
