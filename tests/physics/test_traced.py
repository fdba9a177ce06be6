"""Functions of numpy arrays as data of a physics: the text they become has their values."""

from __future__ import annotations

import numpy as np
import pytest

import petsc_hdg as fe

LAPLACE = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
FUNCTIONS = {
    "of x": lambda x: np.sin(np.pi * x[..., 0]) * np.exp(-x[:, 1]) + 2,
    "of x and t": lambda x, t: np.cosh(t) * x[..., 0] ** 2 / (1 + abs(x[..., 1])),
    "in parts": lambda x: np.where((x[..., 0] < 0.3) | (x[..., 1] >= 0.7), np.hypot(x[..., 0], 2), -1.5),
    "bounded": lambda x: np.clip(x[..., 0], 0.2, 0.6) + np.maximum(x[..., 1], 0.5) - np.minimum(1, x[..., 0]),
    "rotated": lambda x: np.arctan2(x[..., 1], x[..., 0]) + np.sqrt(np.sum(x[..., :2] ** 2, axis=-1)),
    "constant": lambda x: 3.0,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_text_has_the_values(name):
    function = FUNCTIONS[name]
    interpreter = fe.Physics({"u": 1}, f1=LAPLACE, boundary=[fe.Dirichlet("left", function)]).interpreter(2)
    for x in np.random.default_rng(0).uniform(0, 1, (20, 2)):
        expected = np.ravel(function(x[None], 0.4) if name == "of x and t" else function(x[None]))[0]
        assert interpreter.pw_dirichlet(0, None, 0.4, x)[0] == pytest.approx(expected, rel=1e-14)


def test_components():
    turn = fe.Dirichlet("left", lambda x: np.stack([-x[..., 1], x[..., 0]], axis=-1))
    physics = fe.Physics({"v": 2}, f1="for (d = 0; d < 2*dim; ++d) f1[d] = u_x[d];", boundary=[turn])
    assert physics.interpreter(2).pw_dirichlet(0, None, 0.0, np.array([0.3, 0.7])).tolist() == [-0.7, 0.3]


def test_a_solve_of_functions():
    """f0, Dirichlet and Neumann data, and the exact solution with its gradient."""
    exact = lambda x: x[..., 0] ** 2 + x[..., 0] * x[..., 1]  # noqa: E731
    conditions = [fe.Neumann("right", lambda x: 2 + x[..., 1]), fe.Dirichlet("boundary", exact)]
    physics = fe.Physics({"u": 1}, lambda x: 2 + 0 * x[..., 0], LAPLACE, boundary=conditions, exact=exact)
    problem = fe.Problem(fe.Mesh.box((3, 3)), physics, degree=2)
    errors = problem.errors(problem.solve())
    assert errors["L2"] < 1e-10 and errors["H1"] < 1e-9


@pytest.mark.parametrize(
    "function, said",
    [
        (lambda x: np.interp(x[..., 0], [0, 1], [0, 2]), "cannot be read .* a nodal auxiliary field"),
        (lambda x: x, "returns 3 numbers per point, the field has 1 component"),
        (lambda x: 1.0 if x[0, 0] > 0.5 else 0.0, "depends on x or t; np.where takes it"),
        (lambda x: np.log1p(x[..., 0]), "np.log1p is not among the functions"),
        (lambda: 1.0, "cannot be read"),
    ],
)
def test_functions_that_cannot_be_read(function, said):
    with pytest.raises(fe.PhysicsError, match=f"Dirichlet condition on 'left': .*{said}"):
        fe.Physics({"u": 1}, f1=LAPLACE, boundary=[fe.Dirichlet("left", function)])
