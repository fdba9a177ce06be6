"""What a Physics says about itself: fields, digest, constants, linearity, line directives; and sympy input."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
import sympy
from agreement import assert_close, assert_text_agrees, random_state, residual
from compiled_physics import CompiledPhysics

from petsc_hdg.physics import Auxiliary, Dirichlet, Field, Physics, Robin, Symbols, library, manufactured
from petsc_hdg.physics.symbols import divergence

FLUX = "for (PetscInt d = 0; d < dim; ++d) f1[d] = u_x[d];"


def test_fields_and_offsets():
    physics = Physics(
        {"v": Field(3), "p": Field(1, degree_offset=-1)},
        {"p": "f0[0] = u[3];"},
        auxiliary={"k": 2, "m": Auxiliary(1, "nodal")},
    )
    assert [(f.name, f.components, f.offset, f.degree_offset) for f in physics.fields] == [
        ("v", 3, 0, 0),
        ("p", 1, 3, -1),
    ]
    assert [(a.name, a.components, a.offset, a.space) for a in physics.auxiliary] == [
        ("k", 2, 0, "cell"),
        ("m", 1, 2, "nodal"),
    ]
    assert (physics.num_components, physics.num_auxiliary) == (4, 3)


def test_constants_change_without_a_new_text():
    physics = library.poisson(kappa=2.0)
    other = physics.with_constants(kappa=3.0)
    assert other.digest == physics.digest and other.device_source(2) == physics.device_source(2)
    assert (physics.constants["kappa"], other.constants["kappa"]) == (2.0, 3.0)
    state = ([0.0], None, [[1.0, 0.0]], None, None, 0, [0, 0])
    assert_close(physics.interpreter(2).pw_residual(*state)[1], [[2, 0]])
    assert_close(other.interpreter(2).pw_residual(*state)[1], [[3, 0]])
    assert_close(physics.interpreter(2).pw_residual(*state, [5.0])[1], [[5, 0]])


def test_digest_tells_physics_apart():
    variants = [
        Physics({"u": 1}, None, FLUX),
        Physics({"u": 2}, None, FLUX),
        Physics({"v": 1}, None, FLUX),
        Physics({"u": 1}, "f0[0] = 1.0;", FLUX),
        Physics({"u": 1}, None, FLUX, constants={"k": 1.0}),
        Physics({"u": 1}, None, FLUX, auxiliary={"k": 1}),
        Physics({"u": 1}, None, FLUX, helpers="PetscReal f(PetscReal s) { return s; }"),
        Physics({"u": 1}, None, FLUX, boundary=Dirichlet("left", 0.0)),
        Physics({"u": 1}, None, FLUX, boundary=Dirichlet("right", 0.0)),
        Physics({"u": 1}, None, FLUX, jacobian={"g3": "g3[0] = 1.0;"}),
    ]
    assert len({physics.digest for physics in variants}) == len(variants)
    assert Physics({"u": 1}, None, FLUX).digest == variants[0].digest


def test_text_is_the_same_in_every_process():
    script = "from petsc_hdg.physics import library as l; import hashlib; p = l.neo_hookean(3); "
    script += "print(p.digest, hashlib.sha256(p.device_source(3).encode()).hexdigest())"
    runs = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in "12"
    }
    assert len(runs) == 1


@pytest.mark.parametrize(
    "f0, linear, transient",
    [
        ("f0[0] = u[0] * x[0] + exp(t) - u_t[0];", True, True),
        ("f0[0] = u[0] * u[0];", False, False),
        ("PetscReal s = 2.0 * u[0]; f0[0] = s / 3.0;", True, False),
        ("f0[0] = u[0] > 0 ? u[0] : 0.0;", False, False),
        ("if (x[0] > 0.5) f0[0] = u[0]; else f0[0] = 2 * u[0];", True, False),
        ("if (u_t[0] > 0.5) f0[0] = u[0];", False, True),
        ("f0[0] = 1.0 / (1.0 + u[0]);", False, False),
        ("f0[0] = sin(x[0]);", True, False),
        ("PetscReal v[1]; twice(u, v); f0[0] = v[0];", True, False),
        ("f0[0] = u[0] > 1 ? 1.0 : 0.0;", False, False),
        ("if (u_t[0] > 0.5) f0[0] = 1;", False, True),
        ("f0[0] = floor(3 * u[0]) + u[0];", False, False),
        ("PetscInt n = (PetscInt)(3 * u[0]); f0[0] = n;", False, False),
        ("f0[0] = x[0] > 1 ? floor(x[0]) * u[0] : u[0];", True, False),
        ("f0[0] = sided(u[0]);", False, False),
        ("f0[0] = sided(x[0]) * u[0];", True, False),
    ],
)
def test_linear_and_transient(f0, linear, transient):
    helpers = (
        "void twice(const PetscReal *a, PetscReal *b) { b[0] = 2.0 * a[0]; }"
        "PetscReal sided(PetscReal a) { if (a < 0) return -1.0; return 1.0; }"
    )
    physics = Physics({"u": 1}, f0, FLUX, helpers=helpers)
    assert (physics.is_linear, physics.uses_time_derivative) == (linear, transient)


def test_a_constant_jacobian_by_hand_makes_nothing_linear():
    assert not Physics({"u": 1}, "f0[0] = u[0]*u[0];", FLUX, jacobian={"g0": "g0[0] = 6;"}).is_linear
    assert Physics({"u": 1}, "f0[0] = 6*u[0];", FLUX, jacobian={"g0": "g0[0] = 6;"}).is_linear
    no_derivative = "f0[0] = nextafter(u[0], 1.0);"
    assert not Physics({"u": 1}, no_derivative, FLUX, jacobian={"g0": "g0[0] = 1;"}).is_linear


def test_boundary_terms_count_for_linearity():
    assert library.poisson(boundary=Robin("a", "f0[0] = 3.0 * u[0];")).is_linear
    assert not library.poisson(boundary=Robin("a", "f0[0] = u[0] * u[0];")).is_linear


def test_line_directives_lead_to_the_users_line(tmp_path):
    physics = Physics({"u": 1}, "\n\nf0[0] = u[0];\n\nf0[0] += sin(u[0]);", FLUX, name="mine")
    text = physics.device_source(2).replace("sin(", "no_such_function(", 1)
    (tmp_path / "p.c").write_text("typedef double real;\n" + text)
    command = ["gcc", "-std=c99", "-Werror", "-c", str(tmp_path / "p.c"), "-o", str(tmp_path / "p.o")]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert re.search(r"physics: mine\.f0:5:\d+: error: .*no_such_function", said)


def test_sympy_poisson(tmp_path):
    s = Symbols(2, {"u": 1}, auxiliary={"k": 1}, constants=("c",))
    u, grad = s.value("u"), s.grad("u")
    physics = Physics(
        {"u": 1},
        s.rate("u")
        + s.constant("c") * sympy.sin(s.x[0]) * u**2
        + sympy.Piecewise((u, u > sympy.Rational(1, 2)), (0, True)),
        s.given("k") * grad / sympy.sqrt(1 + grad.dot(grad)) + s.grad_given("k") * sympy.Abs(u) * s.t,
        auxiliary={"k": 1},
        constants={"c": 1.5},
        boundary=Robin("right", u * s.n[0] ** 3),
        exact=sympy.Max(s.x[0], s.x[1]) ** 2,
    )
    compiled, interpreter = CompiledPhysics(physics, 2, tmp_path), physics.interpreter(2)
    for seed in range(3):
        q = random_state(physics, 2, seed)
        assert_text_agrees(compiled, interpreter, q)
        g = q["u_x"][0]
        f0 = q["u_t"] + 1.5 * np.sin(q["x"][0]) * q["u"] ** 2 + np.where(q["u"] > 0.5, q["u"], 0)
        f1 = q["a"] * g / np.sqrt(1 + g @ g) + q["a_x"][0] * q["u"] * 0.3
        assert_close(residual(interpreter, q), np.concatenate([f0, f1]))


def test_sympy_numbers(tmp_path):
    s = Symbols(2, {"u": 1})
    physics = Physics({"u": 1}, sympy.pi * s.x[0] + sympy.E + sympy.GoldenRatio, s.grad("u"))
    interpreter, q = physics.interpreter(2), random_state(physics, 2)
    assert_close(residual(interpreter, q)[0], np.pi * q["x"][0] + np.e + (1 + 5**0.5) / 2)
    assert_text_agrees(CompiledPhysics(physics, 2, tmp_path), interpreter, q)


def test_sympy_vector(tmp_path):
    s = Symbols(3, {"p": 1, "v": 3})
    flux = (s.grad("v") + s.grad("v").T) / 2 - s.value("p") * sympy.eye(3)
    physics = Physics({"p": 1, "v": 3}, {"p": s.grad("v").trace()}, {"v": flux})
    interpreter, q = physics.interpreter(3), random_state(physics, 3)
    f0, f1 = interpreter.pw_residual(q["u"], None, q["u_x"], None, None, 0, [0, 0, 0])
    strain = (q["u_x"][1:] + q["u_x"][1:].T) / 2
    assert_close(f1[1:], strain - q["u"][0] * np.eye(3))
    assert_close(f0, [np.trace(strain), 0, 0, 0])
    assert_text_agrees(CompiledPhysics(physics, 3, tmp_path), interpreter, q)


def test_numbers_as_text():
    physics = Physics({"v": 2}, [1, 2.5], np.eye(2), boundary=[Dirichlet("a", 3), Dirichlet("b", [1, -2.0])])
    f0, f1 = physics.interpreter(2).pw_residual([0, 0], None, None, None, None, 0, [0, 0])
    assert f0.tolist() == [1, 2.5] and f1.tolist() == [[1, 0], [0, 1]]
    data = [physics.interpreter(2).pw_dirichlet(c, None, 0, [0, 0]).tolist() for c in (0, 1)]
    assert data == [[3, 3], [1, -2]]


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_manufactured_source_makes_the_strong_form_vanish(dim):
    s = Symbols(dim, {"u": 1})
    exact = sympy.sin(sum((i + 1) * x for i, x in enumerate(s.x))) + s.x[0] ** 3
    flux = lambda u, grad: (1 + u**2) * grad  # noqa: E731
    reaction = lambda u, grad: u**3  # noqa: E731
    source = manufactured(s.x, exact, flux, reaction)
    gradient = sympy.Matrix([sympy.diff(exact, x) for x in s.x])
    rest = exact**3 + source - divergence(flux(exact, gradient), s.x)
    assert sympy.simplify(rest) == 0
    physics = Physics({"u": 1}, s.value("u") ** 3 + source, flux(s.value("u"), s.grad("u")), exact=exact)
    assert physics.has_exact and "pw_exact" in physics.device_source(dim)


def test_manufactured_vector():
    x = Symbols(2, {"u": 2}).x
    exact = sympy.Matrix([x[0] ** 2 * x[1], x[1] ** 3])
    assert manufactured(x, exact, lambda u, grad: grad) == sympy.Matrix([2 * x[1], 6 * x[1]])


def test_numbers_of_components_need_no_sympy(monkeypatch):
    monkeypatch.setitem(sys.modules, "petsc_hdg.physics.symbolic", None)
    conditions = [Dirichlet("left", [0, -0.5]), Dirichlet("right", 2)]
    physics = Physics({"u": 2}, f1="for (d = 0; d < 4; ++d) f1[d] = u_x[d];", boundary=conditions)
    assert "g[1] = (-0.5);" in physics.device_source(2)
