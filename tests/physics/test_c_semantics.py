"""Numbers, types and macros mean what C says, or are refused with their line."""

from __future__ import annotations

import time

import pytest

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics import Physics

_SUFFIX = "which is not supported; leave out the suffix"
_DOUBLED = "\n".join(f"#define a{n + 1} (a{n} + a{n})" for n in range(30))
_CHAINED = "\n".join(f"#define a{n + 1} a{n}" for n in range(40))

VALUES = {
    "010": 8,
    "-017 + 0x1F": 16,
    "0x1p-2": 0.25,
    "0X1P3 + 0XaL": 18,
    "2147483647": 2**31 - 1,
    "12L": 12,
    "1e2": 100,
    ".5 + 5.": 5.5,
}

REFUSED = {
    "unsigned": ("unsigned n = 1;\nf0[0] = n;", "line 1: the type of 'n' is not supported"),
    "size_t": ("f0[0] = 0;\nfor (size_t i = 2; i - 3 > 0; --i) f0[0] = 1;", "line 2: the type of 'i' is not supported"),
    "short": ("short n = 70000;\nf0[0] = n;", "line 1: the type of 'n' is not supported"),
    "float": ("float v = 0.1;\nf0[0] = v;", "line 1: the type of 'v' is not supported"),
    "long double": ("long double v = 0.1;\nf0[0] = v;", "line 1: the type of 'v' is not supported"),
    "(float)": ("\nf0[0] = (float)x[0];", "line 2: a cast to float is not supported; cast to PetscReal"),
    "(unsigned)": ("f0[0] = (unsigned)-1;", "line 1: a cast to unsigned is not supported"),
    "0.1f": ("f0[0] = 0.1f;", f"line 1: 0.1f is of single precision, {_SUFFIX}"),
    "0.1L": ("f0[0] = 0.1L;", f"line 1: 0.1L is of another precision, {_SUFFIX}"),
    "1u": ("f0[0] = -1 < 1u;", f"line 1: 1u is unsigned, {_SUFFIX}"),
    "09": ("f0[0] = 09;", "line 1"),
    "4294967296": ("f0[0] = 4294967296;", "does not fit into a PetscInt of 32 bits; write 4294967296.0"),
    "sinf": ("f0[0] = sinf(x[0]);", "line 1: sinf computes in another precision than PetscReal; use sin"),
    "doubled": (f"#define a0 u[0]\n{_DOUBLED}\nf0[0] = a30;", "line 32: a #define makes this line longer than"),
    "circle": ("#define a b\n#define b a\nf0[0] = a;", "line 3: a #define refers to itself"),
}


def value(text: str) -> float:
    """f0 of a text at u = 1."""
    return Physics({"u": 1}, text).interpreter(1).pw_residual([1.0], [0.0], [[0.0]], None, None, 0.0, [0.3])[0][0]


@pytest.mark.parametrize("number", VALUES)
def test_a_number_is_what_c_says(number):
    assert value(f"f0[0] = {number};") == VALUES[number]


@pytest.mark.parametrize("case", REFUSED)
def test_what_means_something_else_in_c_is_refused(case):
    text, says = REFUSED[case]
    start = time.process_time()
    with pytest.raises(PhysicsError) as caught:
        value(text)
    assert says in str(caught.value) and time.process_time() - start < 5


def test_a_long_chain_of_macros_is_followed():
    assert value(f"#define a0 (u[0] + 2)\n{_CHAINED}\nf0[0] = a40;") == 3


def test_abs_of_integers_is_signed_on_the_device():
    text = Physics({"u": 1}, "PetscInt i = (PetscInt)x[0];\nf0[0] = (abs(i) - 7) / 2;").device_source(1)
    assert "((int)abs(i_)) - 7" in text
