"""Texts that nest deep, or are long: read, differentiated, interpreted and written as text in seconds."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from agreement import assert_close, assert_text_agrees, random_state, residual
from compiled_physics import CompiledPhysics

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics import Physics, Symbols

_TERMS = " + ".join(f"{number} * u[0]" for number in range(300))
_SUM = 300 * 299 / 2
_CONDITIONS = " && ".join(f"u[0] < {number}" for number in range(1, 300))
_LOOP = "\nPetscInt i = 0;\nwhile (i < 7 + 0 * ({})) {{ i += 1; if (i == 3) continue; s += u[0]; }}\nf0[0] = s;"

# name -> (text of f0, f0 / u[0] below 1)
DEEP = {
    "a sum": (f"f0[0] = {_TERMS};", _SUM),
    "a product": ("f0[0] = u[0]" + " * (1.0 + 0.001 * x[0])" * 300 + ";", None),
    "parentheses": ("f0[0] = " + "(" * 1000 + "u[0]" + ")" * 1000 + ";", 1),
    "signs": ("f0[0] = " + "- " * 1001 + "u[0];", -1),
    "nested sums": ("f0[0] = " + "(u[0] + " * 1000 + "u[0]" + ")" * 1000 + ";", 1001),
    "nested calls": ("f0[0] = " + "sin(" * 300 + "u[0]" + ")" * 300 + ";", None),
    "a branch that is not taken": (f"f0[0] = x[0] < 5 ? {_TERMS} : u[99 + (PetscInt)({_TERMS})];", _SUM),
    "a condition": (f"f0[0] = u[0];\nif (x[0] > 5 && {_TERMS} > u[99 + (PetscInt)x[0]]) f0[0] = 0;", 1),
    "conditions": (f"f0[0] = 0;\nif ({_CONDITIONS}) f0[0] = u[0];", 1),
    "the head of a loop": (
        "PetscReal s = 0;" + _LOOP.format(" + ".join(f"(u[0] > {number})" for number in range(100))),
        6,
    ),
    "statements": ("PetscReal s = 0;\n" + "s += u[0];\n" * 1000 + "f0[0] = s;", 1000),
}


@pytest.fixture(scope="module")
def deep() -> Physics:
    """All texts of DEEP, one field each."""
    fields = {f"u{number}": 1 for number in range(len(DEEP))}
    texts = (text.replace("u[0]", f"u[{number}]") for number, (text, _) in enumerate(DEEP.values()))
    return Physics(fields, dict(zip(fields, texts, strict=True)))


def test_deep_texts_are_what_they_say(deep):
    state = random_state(deep, 2)
    found = residual(deep.interpreter(2), state)[: len(DEEP)]
    expected = [found[n] if factor is None else factor * state["u"][n] for n, (_, factor) in enumerate(DEEP.values())]
    assert_close(found, expected)


@pytest.mark.full
def test_deep_texts_and_derivatives_compile(deep, tmp_path):
    compiled = CompiledPhysics(deep, 2, tmp_path)
    assert_text_agrees(compiled, deep.interpreter(2), random_state(deep, 2))


def test_a_long_sympy_sum():
    x = Symbols(1, {"u": 1}).x
    physics = Physics({"u": 1}, sum(sympy.sin(number * x[0]) for number in range(1, 301)))
    value = physics.interpreter(1).pw_residual([0.0], [0.0], [[0.0]], None, None, 0.0, [0.3])[0]
    np.testing.assert_allclose(value, np.sin(0.3 * np.arange(1, 301)).sum(), rtol=1e-12)


@pytest.mark.full
def test_thousands_of_terms():
    text = "f0[0] = " + " + ".join(f"{number} * u[0]" for number in range(3_000)) + ";"
    physics = Physics({"u": 1}, text)
    assert max(map(len, physics.device_source(1).splitlines())) < 1000
    assert physics.interpreter(1).pw_residual([2.0], [0.0], [[0.0]], None, None, 0.0, [0.3])[0] == 2 * 4_498_500


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("f0[0] = " + "(" * 100_000 + "u[0]" + ")" * 100_000 + ";", "nests too deep to be read"),
        ("if (x[0] > 0) " * 200 + "f0[0] = u[0];", "line 1: more than 100 blocks"),
        ("do { f0[0] = u[0]; }\nwhile (" + " + ".join(["(u[0] > 5)"] * 100) + ");", "the head of this loop"),
    ],
    ids=("parentheses", "blocks", "do while"),
)
def test_what_is_too_deep_is_refused(text, says):
    with pytest.raises(PhysicsError, match=says):
        Physics({"u": 1}, text)


def test_loops_that_are_nested_too_deep():
    text = "for (PetscInt i = 0; i < 1; ++i) " * 21 + "f0[0] = u[0];"
    with pytest.raises(PhysicsError, match="more than 20 loops are nested"):
        Physics({"u": 1}, text).check(2)


def test_names_of_another_language():
    loop = "for (PetscInt is = 0; is < 2; ++is) None *= lambda;"
    text = f"PetscReal None = 2, lambda = 3, get = u[0];\n{loop}\nf0[0] = None * get;"
    value = Physics({"u": 1}, text).interpreter(1).pw_residual([2.0], None, None, None, None, 0.0, None)[0]
    assert value == 36


def test_locals_of_one_name_stay_apart():
    text = "PetscReal v_2 = 1, s = 0;\n{ PetscReal v = 2; s += v; }\n{ PetscReal v = 3; s += v; }\nf0[0] = s + v_2;"
    value = Physics({"u": 1}, text).interpreter(1).pw_residual([2.0], [0.0], [[0.0]], None, None, 0.0, [0.3])[0]
    assert value == 6
