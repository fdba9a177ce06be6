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


def test_a_helper_that_cannot_tell_is_refused():
    helper = "static void f(PetscReal *v)\n{\n  while (v[0] > 1) v[0] /= 2;\n}"
    with pytest.raises(PhysicsError, match="helpers, line 3: a loop without a limit is possible in a helper"):
        Physics({"u": 1}, "PetscReal v = u[0]; f(&v); f0[0] = v;", helpers=helper)


def test_a_loop_is_counted_on_the_device(tmp_path):
    newton = "static PetscReal f(PetscReal v)\n{\n  while (v > 1) v -= v > 5 ? 0.0 : 0.5;\n  return v;\n}"
    text = "PetscReal v = u[0];\nwhile (1) { v -= x[0]; if (v < 0) break; }\n"
    fields = {"f0": {"u": text + "f0[0] = v + u[0]; f0[1] = 1.0;", "w": "f0[0] = f(u[2]);"}, "helpers": newton}
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


# text of f0 of two components, and the values of x at which it leaves an array
GUARDED = {
    "a table": ("const PetscReal c[3] = {1, 2, 4}; f0[0] = c[(PetscInt)(4 * x[0])] * u[0];", (0.9, -0.5)),
    "a search": (
        "const PetscReal c[3] = {0.1, 0.2, 0.4}; PetscInt i = 0; while (c[i] < x[0]) ++i; f0[0] = u[0] + i;",
        (0.9,),
    ),
    "a write": ("f0[(PetscInt)(4 * x[0])] = u[0] * u[0];", (0.9, -0.5)),
    "a helper's array": ("f0[0] = f(&u[(PetscInt)(4 * x[0])]);", (0.9, -0.5)),
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
    helpers = "static PetscReal f(const PetscReal *v)\n{\n  return v[0] * v[0];\n}"
    physics = Physics({"u": 2}, text, helpers=helpers)
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
