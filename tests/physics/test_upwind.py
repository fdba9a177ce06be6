"""Upwinding by eigenvalues: the text against numpy's eigenvalues, its derivative, device text, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_close, random_state
from compiled_physics import CompiledPhysics

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics import Physics, library
from petsc_hdg.physics.upwind import ROUNDED, upwinded

FIELDS = {"p": 1, "v": 2}
ACOUSTICS = {
    "p": "for (d = 0; d < dim; ++d) f1[d] = -bulk*v[d] - a[d]*p;",
    "v": "for (c = 0; c < 2; ++c) for (d = 0; d < dim; ++d) f1[c*dim + d] = (c == d ? -p/(rho*(1 + x[0])) : 0.0)"
    " - a[d]*v[c];",
}


def acoustics(bulk: float = 1.42e5, rho: float = 1.2) -> Physics:
    """Sound in SI units, in a wind that is data and a density that depends on x."""
    return Physics(FIELDS, f1=ACOUSTICS, auxiliary={"wind": 2}, constants={"bulk": bulk, "rho": rho})


def winds(*speeds: tuple) -> Physics:
    """A component for each wind [component, dim]."""
    flux = [f"f1[{2 * c + d}] = -({speed})*u[{c}];" for c, wind in enumerate(speeds) for d, speed in enumerate(wind)]
    return Physics({"u": len(speeds)}, f1=" ".join(flux))


def slopes(made: Physics, s: dict) -> np.ndarray:
    """∂f1/∂u [component, component, dim]."""
    zero = np.zeros((made.num_components, 2))
    return made.interpreter(2).g_blocks(s["u"], zero[:, 0], zero, s["a"], s["a_x"], s["t"], 0.0, s["x"])[2]


def bound(matrix: np.ndarray) -> float:
    """Eighth root of the largest row sum of the eighth power: no eigenvalue is above."""
    size = np.abs(matrix).max() or 1.0
    return size * np.abs(np.linalg.matrix_power(matrix / size, 8)).sum(axis=1).max() ** 0.125


def by_eigenvalues(by_u: np.ndarray, n: np.ndarray) -> np.ndarray:
    """√(A² + (a/20)²) by numpy's eigenvectors."""
    along, a = by_u @ n, max(bound(matrix) for matrix in (by_u @ n, *np.moveaxis(by_u, 2, 0)))
    speeds, vectors = np.linalg.eig(along)
    return (vectors * np.sqrt(speeds**2 + (ROUNDED * a) ** 2)) @ np.linalg.inv(vectors)


CASES = {
    "acoustics": acoustics,
    "winds": lambda: winds((1.0, 0.5), (-3.0, 0.0), (0.0, 0.0)),
    "gas": lambda: library.euler(2),
}


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("name", CASES)
def test_text_against_eigenvalues(name, precision, tmp_path):
    """Of linear and nonlinear systems; in single precision to 1e-3 of the largest entry of a column's unit."""
    made = upwinded(CASES[name](), 2)
    compiled, interpreter = CompiledPhysics(made, 2, tmp_path, precision), made.interpreter(2)
    assert made.is_linear == (name != "gas") and made.has_stabilization_matrix
    for seed in range(2):
        s = random_state(made, 2, seed)
        s["u"][-1] += 3  # energy of a gas with pressure
        data, expected = (s["a"], s["a_x"], s["t"], s["x"], s["n"]), by_eigenvalues(slopes(made, s), s["n"])
        units = np.where(expected == 0, 1.0, np.abs(expected))
        found = interpreter.pw_stabilization(*data, None, s["u"])
        assert_close(found / units, expected / units, factor=1e6)
        assert_close(compiled.pw_stabilization(*data, None, s["u"]) / units, expected / units, 1e4, compiled.real)
        assert np.linalg.eigvals(found).real.min() > 0.04 * np.abs(np.linalg.eigvals(found)).max()


def test_a_facet_along_the_wind():
    """What is rounding of n·A, or zero, leaves a positive matrix; so does a system without waves."""
    n = np.array([1.0, -2.0]) / np.sqrt(5)
    found = upwinded(winds((1.0, 0.5), (0.0, 0.0)), 2).interpreter(2).pw_stabilization(None, None, 0, None, n)
    assert_close(found, 1.0 * ROUNDED * np.eye(2))
    assert_close(upwinded(winds((0.0, 0.0)), 2).interpreter(2).pw_stabilization(None, None, 0, None, n), np.eye(1))


def test_derivative(tmp_path):
    """Of a gas: by differences, and by the device's text."""
    made, h = upwinded(library.euler(2), 2), 1e-5
    interpreter, s = made.interpreter(2), random_state(made, 2)
    s["u"][-1] += 3
    data = s["a"], s["a_x"], s["t"], s["x"], s["n"]
    rate = interpreter.pw_stabilization_jacobian(s["u"], *data) @ s["du"]
    moved = [interpreter.pw_stabilization(*data, None, s["u"] + step * s["du"]) for step in (h, -h)]
    assert_close((moved[0] - moved[1]) / (2 * h), rate, factor=1e7)
    assert_close(CompiledPhysics(made, 2, tmp_path).pw_stabilization_jacobian(*data, None, s["u"], s["du"]), rate)
    assert np.abs(rate).max() > 0.01 and made.is_conservation_law


def test_it_follows_constants():
    s = random_state(acoustics(), 2)
    data, made = (s["a"], s["a_x"], s["t"], s["x"], s["n"]), upwinded(acoustics(), 2).with_constants(bulk=1.0, rho=2.0)
    other = upwinded(acoustics(1.0, 2.0), 2).interpreter(2).pw_stabilization(*data)
    assert_close(made.interpreter(2).pw_stabilization(*data), other)


def test_asked_for_by_name():
    made = Physics({"u": 1}, f1="f1[0] = u[0];", stabilization=" upwind ")
    assert made.upwinds and not made.has_stabilization and not made.with_stabilization(2).upwinds
    assert upwinded(made, 2).digest != made.digest != Physics({"u": 1}, f1="f1[0] = u[0];").digest


REFUSED = {
    "diffusion": (library.poisson(), "is for systems of first order .* and f1 reads u_x; write convection into f1"),
    "wind in f0": (Physics({"u": 1}, "f0[0] = u_x[0];"), "and f0 reads u_x; write convection into f1"),
    "rate in f1": (Physics({"u": 1}, f1="f1[0] = u_t[0];"), "and f1 reads u_t"),
    "wrong sign": (
        Physics({"u": 2}, f1="for (d = 0; d < dim; ++d) { f1[d] = u[1]; f1[dim + d] = -u[0]; }"),
        "takes the speeds of a hyperbolic system, and ∂f1/∂u·n has the eigenvalue .*j; check the signs",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    physics, message = REFUSED[name]
    with pytest.raises(PhysicsError, match=message) as caught:
        upwinded(physics, 2)
    assert "\n" not in str(caught.value)
