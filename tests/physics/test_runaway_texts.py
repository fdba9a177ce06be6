"""Loops that do not end and indices far outside arrays: refused before a device runs, or counted on it."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_physics import CompiledPhysics

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics import Physics
from petsc_hdg.physics.objective import Objective

_ENDLESS = "this loop did not end after 100000 turns"

# name -> (text of f0, what the message says)
REFUSED = {
    "while (1)": ("f0[0] = 0;\nwhile (1) f0[0] += u[0];", f"line 2: {_ENDLESS}"),
    "for (;;)": ("for (;;) f0[0] = 1;", f"line 1: {_ENDLESS}"),
    "a condition that holds": ("f0[0] = 0;\nwhile (f0[0] < 1) f0[0] *= 2;", f"line 2: {_ENDLESS}"),
    "a counter that is set back": ("f0[0] = 0;\nfor (PetscInt i = 0; i < 3; ++i) i = 0;", f"line 2: {_ENDLESS}"),
    "an index without limit": ("f0[0] = u[(PetscInt)(1e9 * x[0])];", "line 1: index .* is outside u"),
    "a write without limit": ("f0[(PetscInt)(1e9 * x[0])] = 1;", "line 1: index .* is outside f0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_a_device_runs(case):
    text, says = REFUSED[case]
    with pytest.raises(PhysicsError, match=says):
        Physics({"u": 1}, text).device_source(2)


def test_an_integrand_that_does_not_end_is_refused():
    physics = Physics({"u": 1}, "f0[0] = u[0];")
    with pytest.raises(PhysicsError, match=_ENDLESS):
        Objective(physics, "obj[0] = 0; while (1) obj[0] += 1;", 2)


def test_a_loop_is_counted_on_the_device(tmp_path):
    newton = "static void f(PetscReal *v)\n{\n  while (v[0] > 1) v[0] -= v[0] > 5 ? 0.0 : 0.5;\n}"
    text = "PetscReal v = u[0];\nwhile (1) { v -= x[0]; if (v < 0) break; }\n"
    fields = {
        "f0": {"u": text + "f0[0] = v + u[0]; f0[1] = 1.0;", "w": "PetscReal v = u[2]; f(&v); f0[0] = v;"},
        "helpers": newton,
    }
    physics = Physics({"u": 2, "w": 1}, **fields)
    compiled, interpreter = CompiledPhysics(physics, 1, tmp_path), physics.interpreter(1)
    zero = np.zeros((3, 1))

    def value(functions, u, x):
        return functions.pw_residual(np.array(u), zero[:, 0], zero, None, None, 0.0, np.array([x]))[0]

    good = [2.0, 0.0, 3.0]
    np.testing.assert_allclose(value(compiled, good, 0.75), value(interpreter, good, 0.75))
    assert np.isnan(value(compiled, [2.0, 0.0, 3.0], 0.0)).tolist() == [True, True, False]
    assert np.isnan(value(compiled, [2.0, 0.0, 6.0], 1.0)).tolist() == [False, False, True]
    with pytest.raises(PhysicsError, match=_ENDLESS):
        value(interpreter, good, 0.0)


HELPERS = """
static PetscReal f(const PetscReal *v)
{
  return v[0] * v[0];
}
static PetscReal table(PetscReal at)
{
  const PetscReal c[3] = {1, 2, 4};
  return c[(PetscInt)at];
}
static PetscReal entry(const PetscReal v[], PetscReal at)
{
  return v[(PetscInt)at];
}
static PetscReal next(const PetscReal v[], PetscReal at)
{
  return entry(v + 1, at);
}
static PetscInt place(const PetscReal v[], PetscReal least)
{
  PetscInt i = 0;
  while (v[i] < least) ++i;
  return i;
}
static void put(PetscReal v[], PetscReal at, PetscReal value)
{
  v[(PetscInt)at] = value;
}
static PetscReal trace(PetscInt n, const PetscReal v[])
{
  if (n == 2) return v[1];
  else return v[3 % n + 4];
}
static PetscReal total(PetscInt dim, const PetscReal v[])
{
  PetscReal sum = 0;
  for (PetscInt d = 0; d < dim; ++d) sum += v[d];
  return sum;
}
"""
# text of f0 of two components, and the values of x at which it leaves an array
GUARDED = {
    "a table": ("const PetscReal c[3] = {1, 2, 4}; f0[0] = c[(PetscInt)(4 * x[0])] * u[0];", (0.9, -0.5)),
    "a search": (
        "const PetscReal c[3] = {0.1, 0.2, 0.4}; PetscInt i = 0; while (c[i] < x[0]) ++i; f0[0] = u[0] + i;",
        (0.9,),
    ),
    "a write": ("f0[(PetscInt)(4 * x[0])] = u[0] * u[0];", (0.9, -0.5)),
    "a helper's array": ("f0[0] = f(&u[(PetscInt)(4 * x[0])]);", (0.9, -0.5)),
    "a helper's own array": ("f0[0] = u[0] * table(4 * x[0]);", (0.9, -0.5)),
    "a helper's argument": ("f0[0] = entry(u, 4 * x[0]);", (0.6, -0.5)),
    "arguments of two sizes": (
        "const PetscReal c[4] = {1, 2, 3, 4}; f0[0] = entry(u, x[0]) * entry(c, 20 * x[0]);",
        (0.3, -0.1),
    ),
    "a helper's helper": ("f0[0] = u[0]; f0[1] = u[0] * next(u, 4 * x[0]);", (0.3, -0.3)),
    "a helper of integers": (
        "f0[0] = u[place(u, x[0] > 0.1 && x[0] < 0.18 ? 18 * x[0] : -2) % 2];",
        (0.17,),
    ),
    "a helper that writes": ("put(f0, 4 * x[0], u[0]);", (0.6, -0.3)),
    "a pointer that moves on": (
        "PetscInt k = (PetscInt)(4 * x[0]); const PetscScalar *p = &u[k]; k = 1; f0[0] = p[k];",
        (0.3, -0.3),
    ),
    "a helper's branch": ("f0[0] = trace(2, u);", ()),
    "a helper's count": ("f0[0] = total(1, u) + total(dim, u + 1);", ()),
    "integers": ("const PetscInt c[2] = {1, 0}; if (c[(PetscInt)(4 * x[0])]) f0[0] = u[0];", (0.9, -0.5)),
    "a pointer": ("const PetscScalar *p = &u[1]; f0[0] = p[(PetscInt)(4 * x[0])];", (0.3, -0.9)),
    "a divisor": ("PetscInt k = (PetscInt)(40 * x[0]) - 6; f0[0] = u[0] * (7 / k + 7 % (k + 1));", (0.15, 0.13)),
    "a divisor in an assignment": ("PetscInt k = 7; k %= (PetscInt)(40 * x[0]) - 6; f0[0] = u[0] * k;", (0.15,)),
    "a shift": ("PetscInt k = (PetscInt)(40 * x[0]); f0[0] = u[0] * ((1 << k) + (-9 >> k));", ()),
    "a divisor above 0": ("PetscInt c = PetscMax(1, (PetscInt)x[0]); f0[0] = u[0] * (7 / c + 7 % (c + 1));", ()),
    "a clamped index": ("const PetscReal c[2] = {1, 2}; f0[0] = c[PetscMin(1, PetscMax(0, (PetscInt)x[0]))];", ()),
    "a count": ("for (PetscInt c = 0; c < 2; ++c) f0[1 - c] = u[c];", ()),
}


@pytest.mark.parametrize("case", GUARDED)
def test_accesses_stay_in_their_arrays_on_the_device(case, tmp_path):
    text, outside = GUARDED[case]
    physics = Physics({"u": 2}, text, helpers=HELPERS)
    assert ("NAN" in physics.device_source(1)) == bool(outside)
    compiled, interpreter = CompiledPhysics(physics, 1, tmp_path), physics.interpreter(1)
    zero = np.zeros((2, 1))
    for x in (0.15, *outside):
        arguments = (np.array([2.0, 3.0]), zero[:, 0], zero, None, None, 0.0, np.array([x]))
        value = compiled.pw_residual(*arguments)[0]
        if x in outside:
            assert np.isnan(value).any()
        else:
            np.testing.assert_allclose(value, interpreter.pw_residual(*arguments)[0])
