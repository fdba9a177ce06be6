"""Every ready-made physics: device text against interpreter, Taylor test, known values, linearity."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import (
    assert_close,
    assert_second_order,
    assert_text_agrees,
    jacobian,
    moved,
    random_state,
    residual,
    taylor_order,
)
from compiled_physics import CompiledPhysics

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics import Auxiliary, Dirichlet, Neumann, Robin, library

ROBIN = Robin(
    "right",
    "f0[0] = u[0] * u[0] * x[0] + n[0] * sin(u_x[0]);",
    f1="for (d = 0; d < dim; ++d) f1[d] = u[0] * u[0] * n[d] - cos(u_x[dim - 1 - d]);",
)
PHYSICS = {
    "poisson": (
        lambda dim: library.poisson(kappa=2.5, boundary=(ROBIN, Neumann("top", "g[0] = n[0] * x[0];"))),
        (1, 2, 3),
    ),
    "poisson with auxiliary": (lambda dim: library.poisson(kappa=Auxiliary(1)), (2, 3)),
    "elasticity": (lambda dim: library.elasticity(dim, lame_lambda=1.3, mu=0.7), (2, 3)),
    "elasticity mixed": (lambda dim: library.elasticity(dim, lame_lambda=1.3, mu=0.7, mixed=True), (2, 3)),
    "minimal_surface": (lambda dim: library.minimal_surface("f0[0] = -x[0];"), (2, 3)),
    "p_laplacian": (lambda dim: library.p_laplacian(p=3.7), (2, 3)),
    "neo_hookean": (lambda dim: library.neo_hookean(dim, lame_lambda=1.3, mu=0.7), (2, 3)),
    "stokes": (lambda dim: library.stokes(dim, mu=0.4), (2, 3)),
}
CASES = [(name, dim) for name, (_, dims) in PHYSICS.items() for dim in dims]
LINEAR = {"poisson": False} | dict.fromkeys(
    ["poisson with auxiliary", "elasticity", "elasticity mixed", "stokes"], True
)


def test_every_library_physics_is_here():
    laws = {"burgers", "compressible_navier_stokes", "convection", "euler", "gas", "shallow_water"}
    laws |= {"outer_state", "outflow", "slip_wall"}  # of test_law_library.py
    assert library.__all__ == sorted({name.split()[0] for name in PHYSICS} | laws)


@pytest.mark.parametrize("name, dim", CASES)
def test_text_and_interpreter_agree(name, dim, tmp_path):
    physics = PHYSICS[name][0](dim)
    compiled, interpreter = CompiledPhysics(physics, dim, tmp_path), physics.interpreter(dim)
    for seed in range(3):
        assert_text_agrees(compiled, interpreter, random_state(physics, dim, seed))


@pytest.mark.parametrize("name, dim", CASES)
def test_single_precision_text(name, dim, tmp_path):
    physics = PHYSICS[name][0](dim)
    compiled = CompiledPhysics(physics, dim, tmp_path, "single")
    assert_text_agrees(compiled, physics.interpreter(dim), random_state(physics, dim), factor=200, real=np.float32)


@pytest.mark.parametrize("name, dim", CASES)
def test_taylor(name, dim):
    physics = PHYSICS[name][0](dim)
    interpreter = physics.interpreter(dim)
    for seed in range(3):
        assert_second_order(interpreter, random_state(physics, dim, seed))


def test_taylor_order_notices_a_wrong_derivative():
    physics = library.minimal_surface()
    interpreter, state = physics.interpreter(2), random_state(physics, 2)
    wrong = jacobian(interpreter, state) * 1.001
    assert taylor_order(lambda s: residual(interpreter, s), wrong, state) < 1.5


@pytest.mark.parametrize("name", PHYSICS)
def test_linearity(name):
    make, dims = PHYSICS[name]
    physics = make(dims[0])
    assert physics.is_linear == LINEAR.get(name, False)
    if physics.is_linear:
        interpreter, state = physics.interpreter(dims[0]), random_state(physics, dims[0])
        change = residual(interpreter, moved(state, 1.0)) - residual(interpreter, state)
        assert_close(change, jacobian(interpreter, state))


@pytest.mark.parametrize("name, dim", CASES)
def test_blocks_give_the_directional_derivative(name, dim):
    physics = PHYSICS[name][0](dim)
    interpreter, s = physics.interpreter(dim), random_state(physics, dim)
    shift = 1.7
    g0, g1, g2, g3 = interpreter.g_blocks(s["u"], s["u_t"], s["u_x"], s["a"], s["a_x"], s["t"], shift, s["x"])
    df0 = np.einsum("ij,j->i", g0, s["du"]) + np.einsum("ije,je->i", g1, s["du_x"])
    df1 = np.einsum("ijd,j->id", g2, s["du"]) + np.einsum("ijde,je->id", g3, s["du_x"])
    expected = jacobian(interpreter, s | {"du_t": shift * s["du"]})
    assert_close(np.concatenate([df0.ravel(), df1.ravel()]), expected)


@pytest.mark.parametrize("body", [library.elasticity, library.neo_hookean])
def test_bodies_take_young_and_poisson(body):
    found = body(3, E=2.5, nu=0.25, constants={"load": 3.0}).constants
    assert found == pytest.approx({"lame_lambda": 1.0, "mu": 1.0, "load": 3.0})
    for given in ({"E": 1.0}, {"nu": 0.3}, {"E": 1.0, "nu": 0.5}):
        with pytest.raises(PhysicsError, match=r"give both, nu in \(-1, 0.5\)"):
            body(2, **given)


def test_elasticity_value():
    physics = library.elasticity(2, lame_lambda=1.5, mu=0.5)
    _, f1 = physics.interpreter(2).pw_residual([0, 0], None, [[1.0, 2.0], [4.0, 8.0]], None, None, 0, [0, 0])
    strain = np.array([[1.0, 3.0], [3.0, 8.0]])
    np.testing.assert_allclose(f1, 1.5 * 9 * np.eye(2) + 2 * 0.5 * strain)


def test_neo_hookean_value():
    physics = library.neo_hookean(3, lame_lambda=1.5, mu=0.5)
    gradient = 0.1 * np.arange(9.0).reshape(3, 3)
    deformation = np.eye(3) + gradient
    inverse = np.linalg.inv(deformation).T
    expected = 0.5 * (deformation - inverse) + 1.5 * np.log(np.linalg.det(deformation)) * inverse
    _, f1 = physics.interpreter(3).pw_residual(np.zeros(3), None, gradient, None, None, 0, np.zeros(3))
    np.testing.assert_allclose(f1, expected, rtol=1e-13)


def test_stokes_value():
    physics = library.stokes(2, mu=0.5)
    f0, f1 = physics.interpreter(2).pw_residual([1, 2, 3.0], None, [[1, 2], [4, 8], [9, 9.0]], None, None, 0, [0, 0])
    np.testing.assert_allclose(f0, [0, 0, 9])
    np.testing.assert_allclose(f1, [[1 - 3, 3], [3, 8 - 3], [0, 0]])


def test_dirichlet_and_exact(tmp_path):
    physics = library.elasticity(
        2,
        exact="u[0] = sin(x[0]) * x[1]; u[1] = t * x[0] * x[0];",
        boundary=(
            Dirichlet("left", "exact"),
            Dirichlet("top", "g[1] = x[0] + 2.0;", components=1),
            Dirichlet("low", 0.0),
        ),
    )
    compiled, interpreter = CompiledPhysics(physics, 2, tmp_path), physics.interpreter(2)
    x = np.array([0.3, 0.8])
    for functions in (compiled, interpreter):
        np.testing.assert_allclose(functions.pw_dirichlet(0, None, 0.5, x), [np.sin(0.3) * 0.8, 0.5 * 0.09])
        np.testing.assert_allclose(functions.pw_dirichlet(1, None, 0.5, x), [0, 2.3])
        np.testing.assert_allclose(functions.pw_dirichlet(2, None, 0.5, x), [0, 0])
        u, u_x = functions.pw_exact(0.5, x)
        np.testing.assert_allclose(u, [np.sin(0.3) * 0.8, 0.5 * 0.09])
        np.testing.assert_allclose(u_x, [[np.cos(0.3) * 0.8, np.sin(0.3)], [0.3, 0]])
    assert [condition.components for condition in physics.dirichlet] == [(0, 1), (1,), (0, 1)]
