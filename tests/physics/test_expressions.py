"""Expressions in C as f0, f1 and boundary data: the values of statements that write each entry, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_close, boundary, jacobian, random_state, residual
from wrong_physics import assert_one_clear_sentence

from petsc_hdg.physics import Dirichlet, Neumann, Physics, Robin

LOOP = "for (c = 0; c < 2; ++c) "
LOOPS = LOOP + "for (d = 0; d < dim; ++d) "


def two(f0: str, f1: str, g: str, flux: str, robin: str, exact: str, **constants) -> Physics:
    """A field of two components with each kind of text."""
    boundary = [Dirichlet("a", "exact"), Dirichlet("b", g), Neumann("c", flux), Robin("d", robin, f1=f1)]
    return Physics({"v": 2}, f0, f1, boundary=boundary, exact=exact, auxiliary={"kappa": 1}, constants=constants)


def assert_same(short: Physics, physics: Physics, dim: int) -> None:
    """Residuals, Jacobians and conditions of both at a random state are the same."""
    short, long, s = short.interpreter(dim), physics.interpreter(dim), random_state(physics, dim)
    assert_close(residual(short, s), residual(long, s))
    assert_close(jacobian(short, s), jacobian(long, s))
    for condition in range(len(physics.natural)):
        assert_close(boundary(short, s, condition), boundary(long, s, condition))
    for number in range(2):
        given = number, s["a"], s["t"], s["x"]
        assert_close(short.pw_dirichlet(*given), long.pw_dirichlet(*given))


@pytest.mark.parametrize("dim", [2, 3])
def test_components_and_directions(dim):
    short = two("u[c] + c*t // decay\n", "kappa*u_x[c*dim + d]", "x[c]", "n[c] + 1", "u[1 - c]", "x[0] < 1 ? x[c] : 0")
    physics = two(
        LOOP + "f0[c] = u[c] + c*t;",
        LOOPS + "f1[c*dim + d] = kappa*u_x[c*dim + d];",
        LOOP + "g[c] = x[c];",
        LOOP + "g[c] = n[c] + 1;",
        LOOP + "f0[c] = u[1 - c];",
        LOOP + "u[c] = x[0] < 1 ? x[c] : 0;",
    )
    assert_same(short, physics, dim)


@pytest.mark.parametrize("dim", [2, 3])
def test_lists_have_an_entry_each(dim):
    zeros = ["0.0"] * (dim - 1)
    listed = two(
        ["u[1]*t // of the other\n", 3],
        [["kappa*u_x[0]", *zeros], ["u[0]", *zeros]],
        ["x[1]", 0.5],
        ("n[0]", "n[1]"),
        ["u[1]", "u[0]*u[0]"],
        ["x[0] < 1 ? 1 : 0", 2],
    )
    physics = two(
        "f0[0] = u[1]*t; f0[1] = 3;",
        LOOPS + "f1[c*dim + d] = 0; f1[0] = kappa*u_x[0]; f1[dim] = u[0];",
        "g[0] = x[1]; g[1] = 0.5;",
        "g[0] = n[0]; g[1] = n[1];",
        "f0[0] = u[1]; f0[1] = u[0]*u[0];",
        "u[0] = x[0] < 1 ? 1 : 0; u[1] = 2;",
    )
    assert_same(listed, physics, dim)


def test_a_condition_is_on_each_of_its_labels():
    physics = Physics({"u": 1}, "u", boundary=[Dirichlet(["a", "b"], 1.0), Robin(("c", "d"), "u*u")])
    assert [one.label for one in physics.dirichlet] == ["a", "b"] and [one.label for one in physics.natural] == [
        "c",
        "d",
    ]
    assert [one.place for one in (*physics.dirichlet, *physics.natural)] == [0, 1, 2, 3]


def test_constants_come_first():
    """A constant keeps its meaning where it has the name of a component's or a direction's number, but within [ ]."""
    physics = Physics({"u": 1}, "c*u[0]", "c*d*(1 + u_x[d])", constants={"c": 2.0, "d": 5.0})
    s = random_state(physics, 2)
    f0, f1 = np.split(residual(physics.interpreter(2), s), [1])
    assert_close(f0, 2 * s["u"])
    assert_close(f1, 10 * (1 + s["u_x"][0]))


def test_fields_come_first_but_within_brackets():
    """A concentration c is no number of a component, nor a depth d one of a direction."""
    fields = {"c": 1, "d": 2}
    physics = Physics(
        fields,
        {"c": "3*c /* c[ */ + c_x[0]", "d": "d[c]*kappa[c] + c"},
        {"c": "2*c_x[d] + d[1]", "d": "d_x[c][d]"},
        auxiliary={"kappa": 2},
        boundary=[Robin("a", "c*n[0]", "c"), Neumann("b", "x[c]", "d")],
    )
    s = random_state(physics, 2)
    u, u_x, a, n = s["u"], s["u_x"], s["a"], s["n"]
    f0, f1 = np.split(residual(physics.interpreter(2), s), [3])
    assert_close(f0, [3 * u[0] + u_x[0, 0], u[1] * a[0] + u[0], u[2] * a[1] + u[0]])
    assert_close(f1.reshape(3, 2), np.vstack([2 * u_x[0] + u[2], u_x[1:]]))
    assert_close(boundary(physics.interpreter(2), s, 0)[0], u[0] * n[0])
    physics = Physics({"u": 2}, "c*u[c]", "d*u_x[c*dim + d]", constants={"c": 2.0, "d": 5.0})
    s = random_state(physics, 2)
    assert_close(residual(physics.interpreter(2), s), np.concatenate([2 * s["u"], 5 * s["u_x"].ravel()]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"f0": "f0[0] = -1"}, "is a ';' missing?"),
        ({"f0": "u[0], 2"}, "f0: a comma between expressions is not supported here"),
        ({"f1": "e*u_x[d]"}, "f1: unknown name 'e'"),
        ({"f0": "u[0] +"}, "f0: 'u[0] +' is not a complete expression of C"),
        ({"fields": {"u": 2}, "f1": "u_x[d]"}, "f1: is an expression without c, the number of the component; use u[c]"),
        ({"fields": {"v": 2}, "f1": "v_x[d]"}, "f1: is an expression without c"),
        ({"fields": {"v": 2}, "f1": "c*v_x[0][d]", "constants": {"c": 1.0}}, "f1: is an expression without c"),
        ({"fields": {"c": 2}, "f0": "c[1]"}, "f0: is an expression without c"),
        ({"f1": "u_x[0]"}, "f1: is an expression without d, the number of the direction; use u[c], u_x[c*dim + d]"),
        ({"jacobian": {"g3": "1"}}, "g3: is an expression; assign to g3[…]"),
    ],
)
def test_refused(given, message):
    given = {"fields": {"u": 1}, "f1": "u_x[d]"} | given
    assert_one_clear_sentence(lambda: Physics(**given).device_source(2), message)
