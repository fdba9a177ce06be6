"""Random C texts: gcc, the interpreter and the device text give one value; the derivatives fit to differences."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_physics import CompiledPhysics
from random_texts import UNKNOWNS, Texts, compiled_texts

from petsc_hdg.physics import Physics

_COUNT = 48
_ODD = ("-Wno-tautological-compare", "-Wno-bool-operation", "-Wno-bool-compare")  # random texts compare oddly


@pytest.fixture(scope="module")
def texts() -> list[str]:
    made = Texts(7)
    return [made.text() for _ in range(_COUNT)]


def test_values_and_derivatives(texts, tmp_path):
    fields = {f"v{number}": 1 for number in range(_COUNT)}
    physics = Physics(fields, dict(zip(fields, texts, strict=True)))
    expected, interpreter, device = (
        compiled_texts(texts, tmp_path),
        physics.interpreter(2),
        CompiledPhysics(physics, 2, tmp_path, flags=_ODD),
    )
    random = np.random.default_rng(3)
    u, du, x = random.uniform(-2, 2, _COUNT), np.zeros(_COUNT), random.uniform(-1, 1, 2)
    du[:UNKNOWNS] = random.uniform(-1, 1, UNKNOWNS)
    u_x = np.zeros((_COUNT, 2))

    def values(state) -> np.ndarray:
        return np.array([expected(number, state, x) for number in range(_COUNT)])

    for functions in (interpreter, device):
        np.testing.assert_allclose(
            functions.pw_residual(u, 0 * u, u_x, None, None, 0.0, x)[0], values(u), rtol=1e-13, atol=1e-13
        )
    rates = [
        functions.pw_jacobian(u, 0 * u, u_x, du, 0 * u, u_x, None, None, 0.0, 0.0, x)[0]
        for functions in (interpreter, device)
    ]
    np.testing.assert_allclose(rates[1], rates[0], rtol=1e-12, atol=1e-12)
    wide, narrow = ((values(u + h * du) - values(u - h * du)) / (2 * h) for h in (2e-5, 1e-5))
    smooth = np.abs(wide - narrow) < 1e-5 * (1 + np.abs(narrow))
    assert smooth.sum() > 0.9 * _COUNT and np.count_nonzero(rates[0]) > 0.5 * _COUNT
    np.testing.assert_allclose(rates[0][smooth], narrow[smooth], rtol=1e-5, atol=1e-5)
