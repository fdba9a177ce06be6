"""Every built-in function: value and derivative as device text, through dual numbers and by differences."""

# Rows of the tables are C text and stay on one line.
# ruff: noqa: E501

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_close
from compiled_physics import CompiledPhysics

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics import Physics
from petsc_hdg.physics.functions import BUILTINS
from petsc_hdg.physics.interpreter.dual import Dual, call, value_of
from petsc_hdg.physics.lowering.names import ALIASES, GENERIC

# Where each function is tried: real arguments, and "i" for the integer 3.
POINTS = {
    "acosh": [(1.7,)], "asin": [(-0.4,)], "acos": [(0.4,)], "asinpi": [(0.3,)], "acospi": [(-0.3,)], "atanh": [(0.6,)],
    "log": [(0.3,), (2.0,)], "log2": [(0.3,)], "log10": [(3.0,)], "log1p": [(-0.5,)], "sqrt": [(0.3,)], "rsqrt": [(0.3,)],
    "cbrt": [(0.3,), (-0.7,)], "pow": [(0.7, 1.3), (1.4, -2.2)], "powr": [(0.7, 1.3)], "rootn": [(0.7, 3), (-0.7, 3)],
    "pown": [(-0.7, 3), (1.1, -2)], "hypot": [(0.3, -0.4), (0.0, 1.0)], "atan2": [(0.3, -0.4), (-0.3, 0.0)], "ldexp": [(0.7, 3)],
    "fmod": [(2.7, 0.8), (-2.7, 0.8)], "remainder": [(2.7, 0.8)], "fmax": [(0.3, 0.5), (0.6, 0.5)], "fmin": [(0.3, 0.5), (0.6, 0.5)],
    "maxmag": [(-0.7, 0.5)], "minmag": [(-0.7, 0.5)], "fdim": [(0.7, 0.5), (0.3, 0.5)], "copysign": [(0.7, -0.5), (-0.7, -0.2)],
    "clamp": [(0.3, 0.1, 0.9), (-0.3, 0.1, 0.9), (1.3, 0.1, 0.9)], "smoothstep": [(0.1, 0.9, 0.3), (0.1, 0.9, 1.3), (0.1, 0.9, -1.0)],
    "step": [(0.3, 0.5), (0.6, 0.5)], "tgamma": [(0.7,), (3.3,), (-0.6,)], "lgamma": [(0.7,), (11.0,), (-0.6,)],
    "fma": [(0.3, 0.5, 0.7)], "mad": [(0.3, 0.5, 0.7)], "mix": [(0.3, 0.5, 0.7)], "nextafter": [(0.3, 0.5)], "logb": [(0.3,), (9.0,)],
    "quarter_power": [(0.7, 3), (1.4, -2), (-0.7, 12), (1.2, 55), (0.9, -62)], "abs": [(-3,)], "max": [(2, 3)], "min": [(2, 3)],
}  # fmt: skip
ONE_ARGUMENT = [(0.3,), (-1.2,)]


def points(name: str) -> list[tuple]:
    """Arguments at which a function is tried."""
    return POINTS.get(name, ONE_ARGUMENT)


def physics_of(name: str, count: int) -> Physics:
    """f0[0] = name(u[0], u[1], …), an integer argument being literal."""
    row, point = BUILTINS[name], points(name)[count]
    arguments = [f"u[{i}]" if kind == "r" else str(point[i]) for i, kind in enumerate(row.arguments)]
    if set(row.arguments) == {"i"}:
        arguments = [str(value) for value in point]
    return Physics({"u": 3}, f"f0[0] = 1.0 * {name}({', '.join(arguments)});", name=name)


CASES = [(name, number) for name in BUILTINS for number in range(len(points(name)))]
DIFFERENTIABLE = [case for case in CASES if BUILTINS[case[0]].partials is not None]


def test_no_point_is_left_over():
    assert set(POINTS) <= set(BUILTINS)
    assert all(len(points(name)[0]) == len(row.arguments) for name, row in BUILTINS.items())
    assert set(ALIASES.values()) <= set(BUILTINS)
    assert {name for pair in GENERIC.values() for name in pair} <= set(BUILTINS)


@pytest.mark.parametrize("name, number", DIFFERENTIABLE)
def test_duals_agree_with_differences(name, number):
    row, point = BUILTINS[name], points(name)[number]
    for position, kind in enumerate(row.arguments):
        if kind == "r" and set(row.arguments) != {"i"}:
            arguments = list(point)
            arguments[position] = Dual(point[position], np.ones(1))
            result = call(name, *arguments)
            rate = result.rate[0] if isinstance(result, Dual) else 0.0
            step = 1e-5
            ends = [call(name, *(v + s * (i == position) for i, v in enumerate(point))) for s in (step, -step)]
            assert rate == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-8, abs=1e-8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("functions")


def all_in_one() -> tuple[Physics, list]:
    """One physics whose components are all functions at all their points; component i of u is used by no other."""
    lines, state = [], []
    for name, number in DIFFERENTIABLE:
        row, point = BUILTINS[name], points(name)[number]
        arguments = []
        for kind, value in zip(row.arguments, point, strict=True):
            arguments.append(f"u[{len(state)}]" if kind == "r" else str(value))
            if kind == "r":
                state.append(value)
        lines.append(f"f0[{len(lines)}] = {name}({', '.join(arguments)});")
    return Physics({"u": max(len(state), len(lines))}, "\n".join(lines), name="all"), state


@pytest.mark.parametrize("precision, factor", [("double", 200), ("single", 2000)])
def test_text_agrees_with_duals(folder, precision, factor):
    physics, state = all_in_one()
    compiled, interpreter = CompiledPhysics(physics, 2, folder, precision), physics.interpreter(2)
    u = np.array(state + [0.0] * (physics.num_components - len(state)))
    du = np.random.default_rng(1).uniform(0.5, 1, u.size)
    for functions in (lambda f: f.pw_residual(u, None, None, None, None, 0, [0, 0])[0],
                      lambda f: f.pw_jacobian(u, None, None, du, None, None, None, None, 0, 0, [0, 0])[0]):  # fmt: skip
        actual, expected = functions(compiled), functions(interpreter)
        for number, (name, _) in enumerate(DIFFERENTIABLE):
            scale = factor * np.finfo(compiled.real).eps * max(abs(expected[number]), 0.1)
            assert abs(actual[number] - expected[number]) <= scale, name


@pytest.mark.parametrize("name", [name for name, row in BUILTINS.items() if row.partials is None])
def test_the_others_are_refused(name):
    physics = physics_of(name, 0)
    with pytest.raises(PhysicsError, match=f"line 1: {name} of a value that depends on the solution"):
        physics.device_source(2)


# Derivatives at singular points: (text, u, du, expected). Along a zero direction the derivative is zero.
SINGULAR = [
    ("sqrt(u[0])", 0.0, 0.0, 0.0), ("sqrt(u[0])", 0.0, 1.0, np.inf), ("pow(u[0], 2)", 0.0, 1.0, 0.0), ("pow(u[0], 2.0)", 0.0, 1.0, 0.0),
    ("pow(u[0], 1)", 0.0, 1.0, 1.0), ("pow(u[0], 3)", 0.0, 1.0, 0.0), ("pow(u[0], 0)", 0.0, 1.0, 0.0), ("pow(u[0], 1.5)", 0.0, 1.0, 0.0),
    ("pow(u[0], 0.5)", 0.0, 0.0, 0.0), ("pow(u[0], 2)", -1.5, 1.0, -3.0), ("pow(u[0], 3)", -1.5, 1.0, 6.75), ("cbrt(u[0])", 0.0, 0.0, 0.0),
    ("pow(2.0, u[0])", 0.0, 1.0, np.log(2)), ("pow(0.0, 1.0 + u[0])", 0.5, 1.0, 0.0), ("pown(u[0], 0)", 0.0, 1.0, 0.0),
    ("hypot(u[0], 0.0 * u[0])", 0.0, 1.0, 0.0), ("atan2(u[0], 0.0)", 0.0, 1.0, 0.0), ("fabs(u[0])", 0.0, 1.0, 0.0),
    ("asin(u[0])", 1.0, 0.0, 0.0), ("rsqrt(u[0])", 0.0, 0.0, 0.0), ("log(u[0])", 0.0, 0.0, 0.0),
    ("sqrt(u[0] * u[0])", 0.0, 1.0, 0.0), ("pow(u[0], 9.0/4)", 0.0, 1.0, 0.0), ("pow(u[0], -3.0/2.0)", 0.0, 0.0, 0.0),
    ("pow(u[0], 0.25)", 0.0, 1.0, np.inf), ("pow(u[0], 5)", -2.0, 1.0, 80.0), ("pow(u[0], -1)", -2.0, 1.0, -0.25),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(SINGULAR)))
def test_singular_points(number, folder):
    text, u, du, expected = SINGULAR[number]
    physics = Physics({"u": 1}, f"f0[0] = {text};", name="singular")
    for functions in (physics.interpreter(2), CompiledPhysics(physics, 2, folder)):
        df0, _ = functions.pw_jacobian([u], None, None, [du], None, None, None, None, 0, 0, [0, 0])
        assert_close(df0, [expected]) if np.isfinite(expected) else np.testing.assert_equal(df0, [expected])


@pytest.mark.parametrize("exponent", ["3", "-1.0/2.0", "1.5", "(dim + 1)/4.0", "-(2*0.75)"])
def test_powers_known_in_quarters_need_no_pow(exponent):
    physics = Physics({"u": 1}, f"f0[0] = pow(1 + u[0]*u[0], {exponent});")
    source = physics.device_source(2)
    assert "quarter_power(" in source and " pow(" not in source and "d0_pow(" not in source
    residual = physics.interpreter(2).pw_residual([0.6], None, None, None, None, 0, [0, 0])[0]
    assert_close(residual, [1.36 ** eval(exponent, {"dim": 2})])


def test_petsc_names(folder):
    text = "f0[0] = PetscSqr(u[0]) + PetscSqrtReal(u[0]) * PetscMax(u[0], 0) + PetscPowReal(u[0], PETSC_PI) - PetscAbsScalar(u[0]) + sin(M_PI);"
    physics = Physics({"u": 1}, text)
    u = 0.7
    expected = u**2 + np.sqrt(u) * u + u**np.pi - u + np.sin(np.pi)
    for functions in (physics.interpreter(2), CompiledPhysics(physics, 2, folder)):
        assert_close(functions.pw_residual([u], None, None, None, None, 0, [0, 0])[0], [expected])


def test_value_of_a_dual():
    assert value_of(Dual(2.0, np.ones(1))) == 2.0 == value_of(2.0)


def test_integer_operators(folder):
    """As C computes them where the numbers are known before the program runs, in the interpreter and on the device."""
    pairs = [(i, j) for i in (-7, -6, 0, 6, 7) for j in (-3, -2, 2, 3)]
    operators = ["/", "%", "+", "-", "*", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "&&", "||"]
    known, run = "", f"PetscInt p[] = {{{', '.join(str(number) for pair in pairs for number in pair)}}};\n"
    for row, operator in enumerate(operators):
        at = row * len(pairs)
        known += "".join(
            f"f0[{at + n}] = (dim + {i - 2}) {operator} (dim + {j - 2});" for n, (i, j) in enumerate(pairs)
        )
        run += f"for (i = 0; i < {len(pairs)}; ++i) f0[{at} + i] = p[2 * i] {operator} p[2 * i + 1];\n"
    first, second = (Physics({"u": len(pairs) * len(operators)}, text) for text in (known, run))
    makers = first.interpreter(2), second.interpreter(2), CompiledPhysics(second, 2, folder)
    values = [made.pw_residual(None, None, None, None, None, 0, None)[0].reshape(-1, len(pairs)) for made in makers]
    for row, operator in enumerate(operators):
        assert values[0][row].tolist() == values[1][row].tolist() == values[2][row].tolist(), operator
    quotients = np.trunc([i / j for i, j in pairs])
    assert values[0][:2].tolist() == [
        quotients.tolist(),
        [i - j * q for (i, j), q in zip(pairs, quotients, strict=True)],
    ]
