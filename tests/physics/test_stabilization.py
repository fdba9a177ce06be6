"""The stabilization of a physics: its text and interpreter agree, every way of giving one, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from agreement import assert_close, assert_text_agrees, random_state
from compiled_physics import CompiledPhysics
from wrong_physics import FLUX, WHOLE, assert_one_clear_sentence

from petsc_hdg.physics import BoundaryFlux, CFile, Dirichlet, Physics, Robin, Symbols, library

HELPERS = "PetscReal speed(const PetscReal n[], PetscInt d) { return d > 1 ? n[1] : n[0]; }"
BODY = "for (c = 0; c < Nc; ++c) tau[c] = 1 + kappa * fabs(speed(n, dim)) + a[0] * x[0] + c;\ntau[1] += t + a_x[1];"
SIGNATURE = (
    WHOLE.replace("f0_u", "my_tau")
    .replace("f0[]", "tau[]")
    .replace("x[], PetscInt num", "x[], const PetscReal n[], PetscInt num")
)


def physics(stabilization=None, **others) -> Physics:
    """Two fields of 2 + 1 components with everything around a stabilization."""
    given = {
        "auxiliary": {"k": 1},
        "constants": {"kappa": 2.5},
        "helpers": HELPERS,
        "boundary": [Robin("a", "f0[0] = u[0];", field="v"), Dirichlet("b", "exact", field="v")],
        "exact": {"v": "u[0] = x[0]; u[1] = t;"},
        "name": "mine",
    } | others
    return Physics({"v": 2, "p": 1}, {"p": "f0[0] = u[2];"}, stabilization=stabilization, **given)


def values(functions, s: dict) -> np.ndarray:
    return functions.pw_stabilization(s["a"], s["a_x"], s["t"], s["x"], s["n"])


def of_body(s: dict, dim: int) -> np.ndarray:
    """BODY, in numpy."""
    tau = 1 + 2.5 * abs(s["n"][1 if dim > 1 else 0]) + s["a"][0] * s["x"][0] + np.arange(3)
    return tau + [0, s["t"] + s["a_x"].ravel()[1], 0]


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("dim", [2, 3])
def test_text_and_interpreter(dim, precision, tmp_path):
    made = physics(BODY)
    compiled, interpreter = CompiledPhysics(made, dim, tmp_path, precision), made.interpreter(dim)
    for seed in range(3):
        s = random_state(made, dim, seed)
        expected = of_body(s, dim)
        assert_close(values(interpreter, s), expected)
        assert_close(values(compiled, s), expected, real=compiled.real)
        assert_text_agrees(compiled, interpreter, s, real=compiled.real)


WAYS = {
    "body": ("tau[0] = 1 + fabs(n[0]);\ntau[1] = tau[2] = tau[0];", {}),
    "expression": ("1 + fabs(n[0])", {}),
    "expression in lines": ("1\n  + // the speed\n fabs(n[0])  // along x\n", {}),
    "expression of PETSc's functions": ("1.0 + PetscAbsReal(n[0])", {}),
    "whole function": (SIGNATURE + "  for (int c = 0; c < 3; ++c) tau[c] = 1 + fabs(n[0]);\n}", {}),
    "sympy expression": (1 + sympy.Abs(Symbols(2, {"u": 1}).n[0]), {}),
    "sympy expressions": ([1 + sympy.Abs(Symbols(2, {"u": 1}).n[0])] * 3, {}),
    "constant called tau": ("tau - 2 + fabs(n[0])", {"tau": 3.0}),
    "helper": ("1 + fabs(speed(n, 1))", {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_give_one(way, tmp_path):
    given, constants = WAYS[way]
    made = physics(given, constants=constants)
    s = random_state(made, 2)
    expected = np.full(3, 1 + abs(s["n"][0]))
    assert_close(values(made.interpreter(2), s), expected)
    assert_close(values(CompiledPhysics(made, 2, tmp_path), s), expected)


STATES = {
    "components": "for (c = 0; c < Nc; ++c) tau[c] = 1 + u[0] * u[2] * fabs(speed(n, dim)) + v[1] * kappa + c;",
    "matrix": "for (c = 0; c < Nc * Nc; ++c) S[c] = sqrt(1 + u[c % 3] * u[0]) + c * a[0] * x[0];",
    "sympy matrix": sympy.Matrix(3, 3, lambda i, j: i + j * Symbols(2, {"u": 3}).value("u")[i] ** 2),
}


@pytest.mark.parametrize("way", STATES)
def test_of_the_trace(way, tmp_path):
    """Text and interpreter agree, and the derivative is that of differences; the physics is a conservation law."""
    made = physics(STATES[way])
    compiled, interpreter, s = CompiledPhysics(made, 2, tmp_path), made.interpreter(2), random_state(made, 2)
    data = s["a"], s["a_x"], s["t"], s["x"], s["n"]
    value, slopes = (
        interpreter.pw_stabilization(*data, None, s["u"]),
        interpreter.pw_stabilization_jacobian(s["u"], *data),
    )
    assert value.shape == ((3,) if way == "components" else (3, 3)) == slopes.shape[:-1]
    assert_close(compiled.pw_stabilization(*data, None, s["u"]), value)
    assert_close(compiled.pw_stabilization_jacobian(*data, None, s["u"], s["du"]), slopes @ s["du"])
    h = 1e-6
    moved = [interpreter.pw_stabilization(*data, None, s["u"] + step * s["du"]) for step in (h, -h)]
    assert_close((moved[0] - moved[1]) / (2 * h), slopes @ s["du"], factor=1e7)
    assert made.is_conservation_law and made.stabilizes_by_state and not made.is_linear


def test_boundary_flux(tmp_path):
    """Text and interpreter agree with numpy, and the derivative with differences."""
    flux = (
        "for (c = 0; c < Nc; ++c) b[c] = u[c] * u_in[c] + f_hat[c] * f_hat[0] + u_x[c * dim] * n[0] + a[0] * x[1] * t;"
    )
    made = physics(boundary=[BoundaryFlux("a", flux), Robin("a", "f0[0] = u[0];", field="v")])
    compiled, interpreter, s = CompiledPhysics(made, 2, tmp_path), made.interpreter(2), random_state(made, 2)
    rng, data = np.random.default_rng(1), (s["a"], s["a_x"], s["t"], s["x"], s["n"])
    state, rates = [s["u"], s["u_x"], *rng.random((2, 3))], [s["du"], s["du_x"], *rng.random((2, 3))]

    def value(step=0.0, functions=interpreter):
        return functions.pw_boundary_flux(
            0, *(one + step * rate for one, rate in zip(state, rates, strict=True)), *data
        )

    u, u_x, u_in, f_hat = state
    assert_close(value(), u * u_in + f_hat * f_hat[0] + u_x[:, 0] * s["n"][0] + s["a"][0] * s["x"][1] * s["t"])
    assert_close(value(functions=compiled), value())
    columns = {name: r.reshape(-1, 1) for name, r in zip(("u", "u_x", "u_in", "f_hat"), rates, strict=True)}
    slope = interpreter.pw_boundary_flux_jacobian(0, *state, columns, *data)[:, 0]
    assert_close(compiled.pw_boundary_flux_jacobian(0, *state, *rates, *data), slope)
    assert_close((value(1e-6) - value(-1e-6)) / 2e-6, slope, factor=1e7)
    assert_text_agrees(compiled, interpreter, s)
    assert made.is_conservation_law and not made.is_linear


@pytest.mark.parametrize(
    "given, expected", [(2, [2, 2, 2]), (0.5, [0.5] * 3), ("4", [4] * 3), ([1, 2, 3.5], [1, 2, 3.5])]
)
def test_numbers(given, expected):
    assert physics(given).interpreter(2).pw_stabilization(None, None, 0, None, None).tolist() == expected


def test_constants_change_without_a_new_text():
    made = physics("1 + kappa")
    other = made.with_constants(kappa=4.0)
    assert (other.digest, other.device_source(2)) == (made.digest, made.device_source(2))
    assert other.interpreter(2).pw_stabilization(None, None, 0, None, None).tolist() == [5, 5, 5]


def test_file(tmp_path):
    (tmp_path / "tau.c").write_text(SIGNATURE + "  tau[0] = tau[1] = tau[2] = x[0];\n}")
    made = physics(CFile(tmp_path / "tau.c", "my_tau"))
    assert made.interpreter(2).pw_stabilization(None, None, 0, [0.25, 0], None).tolist() == [0.25] * 3


def test_without_one_the_text_has_none():
    made = physics()
    assert not made.has_stabilization and "stabilization" not in made.device_source(2)
    text, body = physics(BODY).device_source(2), made.device_source(2)
    assert made.has_jacobian is False and text.count("pw_stabilization(const real *a, const real *a_x, real t, ") == 1
    assert body.split('#line 1 "pointwise functions"')[1] in text


def test_another_stabilization():
    made = physics(BODY, constants={"kappa": 2.5})
    moved = made.with_constants(kappa=1.0)
    other = moved.with_stabilization("7")
    assert other.has_stabilization and other.constants == {"kappa": 1.0}
    assert other.interpreter(2).pw_stabilization(None, None, 0, None, None).tolist() == [7, 7, 7]
    assert other.digest == physics("7").digest and other.device_source(3) == physics("7").device_source(3)
    bare = other.with_stabilization(None)
    assert not bare.has_stabilization and bare.digest == physics().digest
    assert bare.device_source(2) == physics().device_source(2)
    assert made.has_stabilization and made.digest == physics(BODY).digest
    assert len({physics(given).digest for given in (None, 1, 2, BODY, "1", "n[0]")}) == 6


def test_it_changes_nothing_else():
    made = library.poisson(kappa=2.0)
    other = made.with_stabilization("1 + x[0] * t")
    assert other.is_linear and other.constant_jacobian(2) and not other.uses_time_derivative
    assert other.name == made.name and other.natural == made.natural


def test_line_directives_lead_to_the_users_line():
    text = physics("\n\ntau[0] = 1;\ntau[1] = tau[2] = exp(x[0]);").device_source(2)
    assert '#line 4 "physics: mine.stabilization"' in text


BAD = {
    "zero": (0, "stabilization: is 0; give a number above 0"),
    "negative": (-1.5, "stabilization: is -1.5; give a number above 0"),
    "not finite": (float("nan"), "stabilization: is nan; give a number above 0"),
    "negative text": ("-1", "stabilization: tau[0] is -1.0; a stabilization must be a number above 0"),
    "negative constant": ("-kappa", "tau[0] is -2.5; a stabilization must be a number above 0"),
    "one component of zero": ("tau[0] = tau[1] = 1; tau[2] = 0;", "tau[2] is 0.0; a stabilization must be"),
    "division by zero": ("1.0 / 0", "tau[0] is inf; a stabilization must be"),
    "not all components": ("tau[0] = 1;\ntau[1] = 1;", "tau[2] is never assigned, and the stabilization needs every"),
    "too many components": ("tau[0] = 1;\ntau[3] = 1;", "stabilization, line 2: index 3 is outside tau, which has 3"),
    "rate": ("1 + fabs(u_t[0])", "'u_t' cannot be used here: a stabilization may depend on u, x, n, t, auxiliary"),
    "part of a matrix": ("for (c = 0; c < 8; ++c) S[c] = 1;", "S[8] is never assigned, and the stabilization needs"),
    "matrix and components": ("S[0] = 1; tau[0] = 1;", "unknown name 'tau'"),
    "gradient": ("tau[0] =\nu_x[0];", "stabilization, line 2: 'u_x' cannot be used here: a stabilization may"),
    "unknown name": (
        "tau[0] = 1;\ntau[1] = kapa;",
        "stabilization, line 2: unknown name 'kapa'; did you mean 'kappa'?",
    ),
    "unknown name in an expression": (
        "1 + w",
        "stabilization: unknown name 'w' (known here: Nc, Nf, NfAux, PETSC_PI, a,",
    ),
    "a gradient in an expression": ("1 + v_x[0][0]", "a stabilization may depend on u, x, n, t, auxi"),
    "tau in an expression": ("tau + 1", "stabilization: unknown name 'tau'"),
    "half an expression": ("1 +", "stabilization: '1 +' is not a complete expression of C"),
    "statement": ("return 1", "stabilization: 'return 1' is not a complete expression of C"),
    "two expressions": ("1, 2", "stabilization: a comma between expressions is not supported"),
    "nonsense": ("1 2", "stabilization: cannot be read as C at column 3, near '2'"),
    "nonsense on line 2": ("1 +\n2 3", "stabilization, line 2: cannot be read as C at column 3, near '3'"),
    "open bracket": ("1 + (2", "stabilization: '(' is never closed"),
    "closed bracket": ("1) + (2", "stabilization: ')' closes nothing that is open"),
    "integer division": ("1/2", "1/2 is a division of integers in C; write 1.0/2"),
    "missing semicolon": ("tau[0] = 1\ntau[1] = 2;", "stabilization, line 1: a ';' seems to be missing"),
    "body of one assignment without semicolon": ("tau[0] = 1", "is a ';' missing?"),
    "empty": (" ", "stabilization: the text is empty"),
    "index": ("x[2]", "stabilization: index 2 is outside x, which has 2 element(s) in 2D"),
    "auxiliary": ("a[1]", "stabilization: index 1 is outside a, which has 1 element(s) in 2D"),
    "flag": (True, "stabilization: is a bool; give C text"),
    "number of expressions": ([1, 2], "stabilization: has 2 expression(s)"),
    "signature": ("void f(PetscReal s) { s = 1; }", "'f' has 1 arguments, PETSc's signature of this function has 19"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("later", [False, True])
def test_refused(name, later):
    given, message = BAD[name]
    do = (lambda: physics().with_stabilization(given)) if later else (lambda: physics(given))
    assert_one_clear_sentence(lambda: do().check_stabilization(2), message)
    assert_one_clear_sentence(lambda: do().check(2), message)


def test_other_functions_know_no_tau():
    assert_one_clear_sentence(lambda: Physics({"u": 1}, "f0[0] = tau[0];", FLUX, stabilization=1), "unknown name 'tau'")
