"""Streamline upwinding as a physics: f1 + τ b R against a formula by hand, derivatives and device text against it."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_close, assert_second_order, assert_text_agrees, random_state, residual
from compiled_physics import CompiledPhysics

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics import Physics
from petsc_hdg.physics.layout import Field
from petsc_hdg.physics.upwind import METRIC, streamlined

F0 = "f0[0] = u_t[0] + 2*u_x[0] + a[0]*u_x[1] + pow(u[0], 2)*u_x[0] - sin(x[0]) + exp(u[0]);"
F1 = "for (d = 0; d < dim; ++d) f1[d] = kappa*(1 + a[1])*u_x[d] - (d == 0 ? a[1]*u[0]*sin(x[1]) : 0);"


def physics(sign: int = 1, kappa: float = 1e-3, jacobian=None) -> Physics:
    """A scalar field with a wind in f0, one in f1, one that is u², reaction, source and diffusion."""
    f0, f1 = f"{F0} f0[0] *= {sign};", f"{F1} f1[0] *= {sign}; f1[1] *= {sign};"
    return Physics({"u": 1}, f0, f1, auxiliary={"w": 2}, constants={"kappa": kappa}, jacobian=jacobian)


def by_hand(s: dict, degree: int, sign: int, kappa: float) -> np.ndarray:
    """f0 and f1 + τ b R at a state."""
    u, g, (w, v), x = s["u"][0], s["u_x"][0], s["a"][:2], s["x"]
    diffusion = kappa * (1 + v)
    b = np.array([2 + u**2 + v * np.sin(x[1]), w])
    f0 = s["u_t"][0] + 2 * g[0] + w * g[1] + u**2 * g[0] - np.sin(x[0]) + np.exp(u)
    f1 = diffusion * g - np.array([v * u * np.sin(x[1]), 0])
    divergence = kappa * s["a_x"][1] @ g - (s["a_x"][1, 0] * u + v * g[0]) * np.sin(x[1])
    half = 1 / np.sqrt(b @ s["a"][2:].reshape(2, 2) @ b)  # the time along half of the cell
    tau = half / degree * max(0, 1 - diffusion * degree / (b @ b * half))
    return sign * np.concatenate([[f0], f1 + tau * b * (f0 - divergence)])


def state(seed: int) -> dict:
    s = random_state(physics(), 2, seed)
    return s | {"a": np.append(s["a"], [400, 30, 30, 300]), "a_x": np.append(s["a_x"], np.zeros((4, 2)), axis=0)}


@pytest.mark.parametrize("kappa", [1e-3, 1.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_terms_and_their_derivatives(sign, kappa, tmp_path):
    made = streamlined(physics(sign, kappa, {"g3": "g3[0] = 1;"}), 2, degree=2)
    assert made.auxiliary[-1].name == METRIC and not made.has_jacobian and not made.is_linear
    device, interpreter = CompiledPhysics(made, 2, tmp_path), made.interpreter(2)
    for seed in range(2):
        s = state(seed)
        assert_close(residual(interpreter, s), by_hand(s, 2, sign, kappa))
        assert_text_agrees(device, interpreter, s)
        assert_second_order(interpreter, s)


def test_a_linear_physics_stays_linear():
    f1 = "for (d = 0; d < dim; ++d) f1[d] = 1e-3*u_x[d] - a[d]*sin(x[0])*u[0];"
    given = Physics({"u": 1}, "f0[0] = u_x[0];", f1, auxiliary={"wind": 3})
    assert streamlined(given, 2, 1).is_linear and streamlined(given, 3, 1).is_linear
    assert streamlined(given, 2, 1).digest != given.digest


def test_terms_of_expressions_are_those_of_bodies():
    """Which write to an array of another name."""
    bodies = "f0[0] = 2*u_x[0] - 1;", "for (d = 0; d < dim; ++d) f1[d] = 1e-3*u_x[d] - a[d]*u[0]*u[0];"
    found = []
    for f0, f1 in (bodies, ("2*u_x[0] - 1", "1e-3*u_x[d] - a[d]*u[0]*u[0]")):
        given = Physics({"u": 1}, f0, f1, auxiliary={"wind": 2})
        s = random_state(given, 2) | {"a": np.array([0.5, -0.3, 400, 30, 30, 300]), "a_x": np.zeros((6, 2))}
        found.append(residual(streamlined(given, 2, 1).interpreter(2), s))
    assert_close(*found)


def test_components_have_their_own_winds():
    """Of two fields the second has no f1 and a degree one lower; nothing comes to the third, which stands still."""
    f0 = {"u": "f0[0] = 2*u_x[0] + u[1]; f0[1] = 3*u_x[3];", "v": "f0[0] = 5*u_x[4]; f0[1] = u[3];"}
    given = Physics({"u": 2, "v": Field(2, degree_offset=-1)}, f0)
    s = random_state(given, 2) | {"a": np.array([4.0, 0, 0, 16]), "a_x": np.zeros((4, 2))}
    f0, f1 = np.split(residual(streamlined(given, 2, 2).interpreter(2), s), [4])
    expected = np.zeros((4, 2))
    expected[[0, 1, 2], [0, 1, 0]] = f0[:3] * [1 / 2 / 2, 1 / 4 / 2, 1 / 2]
    assert_close(f1, expected.ravel())


def test_second_derivatives_of_functions_are_refused():
    given = Physics({"u": 1}, "f0[0] = exp(u[0])*u_x[0];", "f1[0] = exp(u[0])*u_x[0];")
    with pytest.raises(PhysicsError, match="exp of a value that depends on the solution has no second derivative"):
        streamlined(given, 1, 1).check(1)
