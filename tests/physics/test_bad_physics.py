"""Wrong physics: each is one clear sentence that names the physics, the function and the line."""

from __future__ import annotations

from pathlib import Path

import pytest
import sympy

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics import Auxiliary, Dirichlet, Field, Neumann, Physics, Robin, Symbols

FLUX = "for (PetscInt d = 0; d < dim; ++d)\n  f1[d] = u_x[d];"
s = Symbols(2, {"u": 1})


def text(f0: str, **others):
    """A physics with this f0 in two dimensions."""
    return lambda: Physics({"u": 1}, f0, FLUX, **others).device_source(2)


def given(*arguments, **others):
    """A physics of these arguments in two dimensions."""
    return lambda: Physics(*arguments, **others).device_source(2)


def boundary(condition, **others):
    """Poisson with one boundary condition."""
    return lambda: Physics({"u": 1}, None, FLUX, boundary=[condition], **others).device_source(2)


def helper(helpers: str, f0: str = "f0[0] = f(u[0]);"):
    """A physics with a helper function."""
    return text(f0, helpers=helpers)


WHOLE = (
    "void f0_u(PetscInt dim, PetscInt Nf, PetscInt NfAux, const PetscInt uOff[], const PetscInt uOff_x[], const PetscScalar u[],"
    "const PetscScalar u_t[], const PetscScalar u_x[], const PetscInt aOff[], const PetscInt aOff_x[], const PetscScalar a[],"
    "const PetscScalar a_t[], const PetscScalar a_x[], PetscReal t, const PetscReal x[], PetscInt numConstants,"
    "const PetscScalar constants[], PetscScalar f0[])\n{\n"
)

# name -> (what to do, what the message says)
BAD = {
    # typing errors
    "unknown name": (text("f0[0] = 1.0;\n\nf0[0] += gradu[0];"), "f0, line 3: unknown name 'gradu' (known here: Nf, NfAux, PETSC_PI, a,"),
    "close name": (text("PetscReal square = u[0];\nf0[0] = sqare;"), "line 2: unknown name 'sqare'; did you mean 'square'?"),
    "close constant": (text("f0[0] = kapa;", constants={"kappa": 1.0}), "did you mean 'kappa'?"),
    "missing semicolon": (text("PetscReal r = u[0];\nr = r + 1.0\nf0[0] = r;"), "line 2: a ';' seems to be missing at the end of 'r = r + 1.0'"),
    "missing last semicolon": (text("f0[0] = 1.0;\nf0[0] = u[0]"), "line 2: the text ends before the statement does"),
    "unbalanced parenthesis": (text("f0[0] = 1.0;\nf0[0] = sin(u[0];"), "line 2: '(' is never closed"),
    "unbalanced brace": (text("if (u[0] > 0) {\n f0[0] = 1.0;"), "line 1: '{' is never closed"),
    "one brace too many": (text("f0[0] = 1.0;\n}"), "line 2: '}' closes nothing"),
    "unclosed index": (text("f0[0 = 1.0;"), "line 1: '[' is never closed"),
    "nonsense": (text("f0[0] = u[0] u[0];"), "line 1: cannot be read as C at column 14, near 'u'"),
    "Python": (text("f0[0] = u[0]**2;"), "line 1: C has no operator **; write pow(a, b)"),
    "unknown function": (text("\nf0[0] = sine(u[0]);"), "line 2: unknown function 'sine'; did you mean 'sin'?"),
    "unheard-of function": (text("f0[0] = bessel(u[0]);"), "unknown function 'bessel'; define it in `helpers`"),
    "pointer function": (text("f0[0] = modf(u[0]);"), "modf is not offered: it writes through a pointer"),
    "function without call": (text("f0[0] = sin;"), "'sin' is a function; call it with ( )"),
    "variable called": (text("f0[0] = u(0);"), "unknown function 'u'; it is a variable; write u[i]"),
    "wrong number of arguments": (text("f0[0] = pow(u[0]);"), "line 1: pow takes 2 argument(s), here it has 1"),
    "integer abs": (text("f0[0] = abs(u[0]);"), "argument 1 of abs must be an integer; use fabs or PetscAbsReal"),
    "integer division": (text("f0[0] = 1/2 * u[0];"), "1/2 is a division of integers in C; write 1.0/2"),
    "integer variable": (text("PetscInt r = 0.5 * u[0];\nf0[0] = r;"), "'r' is an integer and would cut off a real value"),
    "equals in a condition": (text("if (u[0] = 1.0) f0[0] = 1.0;"), "line 1: '=' changes a variable inside an expression"),
    "array as a number": (text("f0[0] = u * 2.0;"), "line 1: 'u' is an array; write u[i]"),
    "number as an array": (text("f0[0] = t[0];"), "'t' is one number and has no elements"),
    "real index": (text("f0[0] = u[0.0];"), "an index must be an integer, this one is real"),
    "real remainder": (text("f0[0] = u[0] % 2;"), "'%' needs integers; use pow or fmod"),
    "written input": (text("f0[0] = 1.0;\nu[0] = 1.0;"), "line 2: 'u' is an input or const and cannot be written"),
    "written const": (text("const PetscReal r = 1.0; r = 2.0; f0[0] = r;"), "'r' is an input or const and cannot be written"),
    "written constant": (text("kappa = 1.0;", constants={"kappa": 1.0}), "line 1: 'kappa' is an input or const and cannot be written"),
    "wrong output": (text("f1[0] = 1.0;"), "line 1: 'f1' cannot be used here: this text assigns to f0"),
    "no output": (text("PetscReal r = u[0];"), "nothing is assigned to f0; write f0[0] = …;"),
    "expression alone": (text("sin(x[0]);"), "line 1: the value of sin is not used"),
    "bare expression": (text("u[0] + 1.0;"), "line 1: this statement has no effect"),
    "declared twice": (text("PetscReal r;\nPetscInt r;\nf0[0] = r;"), "line 2: 'r' is declared twice"),
    # sizes
    "index outside": (text("f0[0] = 1.0;\nf0[1] = 1.0;"), "f0, line 2: index 1 is outside f0, which has 1 element(s) in 2D"),
    "index outside in a loop": (text("for (PetscInt d = 0; d <= dim; ++d) f0[0] += u_x[d];"), "line 1: index 2 is outside u_x, which has 2 element(s)"),
    "index outside a local": (text("PetscReal r[2];\nr[2] = 1.0; f0[0] = r[2];"), "line 2: index 2 is outside r"),
    "index outside a row": (text("PetscReal r[2][2];\nr[0][2] = 1.0; f0[0] = r[1][0];"), "line 2: index 2 is outside r"),
    "no auxiliary": (text("f0[0] = a[0];"), "a[0] is read, but the physics has no auxiliary fields"),
    "no constants": (text("f0[0] = constants[0];"), "constants[0] is read, but the physics has no constants"),
    "unset variable": (text("PetscReal r;\nf0[0] = r;"), "line 2: 'r' is read before it is set"),
    "unset element": (text("PetscReal r[2];\nr[0] = 1.0;\nf0[0] = r[1];"), "line 3: 'r' is read before it is set"),
    "unknown size": (text("PetscReal r[(PetscInt)t]; f0[0] = 1.0;"), "the size of 'r' must be a positive number known from dim"),
    "too many values": (text("PetscReal r[2] = {1, 2, 3};\nf0[0] = r[0];"), "line 1: 'r' has 2 elements and is given 3 values"),
    # what C has and a physics has not
    "goto": (text("goto end;\nend: f0[0] = 1.0;"), "line 1: goto is not supported"),
    "structure": (text("struct { double a; } q;\nf0[0] = 1.0;"), "line 1: "),
    "member": (text("f0[0] = 1.0;\nf0[0] = u->x;"), "line 2: a member of a structure is not supported"),
    "pointer arithmetic": (text("f0[0] = *(u + 1);"), "pointer arithmetic is not supported; write p[i]"),
    "pointer moved": (text("const PetscReal *p = u;\np++;\nf0[0] = *p;"), "line 2: 'p' is an array"),
    "unset pointer": (text("PetscReal *p;\nf0[0] = 1.0;"), "line 1: the pointer 'p' must be set where it is declared"),
    "static": (text("static PetscReal r = 0.0; r += 1; f0[0] = r;"), "'r' is static: a pointwise function cannot remember"),
    "increment inside": (text("PetscInt i = 0;\nf0[i++] = 1.0;"), "line 2: ++ changes a variable inside an expression"),
    "sizeof": (text("f0[0] = sizeof(u);"), "sizeof is not supported"),
    "text": (text('f0[0] = "one";'), "line 1: the text \"one\" is not supported"),
    "switch falls through": (text("switch (dim) {\ncase 2: f0[0] = 1.0;\ncase 3: f0[0] = 2.0; break; }"), "line 2: each case of a switch must end in break"),
    "macro with arguments": (text("\n#define SQR(q) ((q)*(q))\nf0[0] = SQR(u[0]);"), "line 2: #define SQR(q) ((q)*(q)) takes arguments"),
    "conditional compilation": (text("#ifdef FAST\nf0[0] = 1.0;\n#endif"), "line 1: #ifdef is not read here"),
    "foreign include": (text('#include "mine.h"\nf0[0] = 1.0;'), "line 1: #include \"mine.h\" cannot be followed"),
    "not differentiable": (text("f0[0] = 1.0;\nf0[0] += logb(u[0]);"), "line 2: logb of a value that depends on the solution cannot be differentiated"),
    "recursion": (helper("PetscReal f(PetscReal s) {\n return f(s); }"), "helpers, line 2: 'f' calls itself; recursion is not possible"),
    "helper with state": (helper("PetscReal f(PetscReal s) { return s * u[0]; }"), "'u' cannot be used here: a helper function sees only its own arguments"),
    "helper typo": (helper("\nPetscReal f(PetscReal s) {\n  return s * s }"), "helpers, line 3: a ';' seems to be missing before the '}' at column 16"),
    "helper arguments": (helper("PetscReal f(PetscReal s, PetscReal r) { return s; }"), "f0, line 1: f takes 2 argument(s), here it has 1"),
    "helper writes input": (helper("void f(PetscReal *s) { *s = 1.0; }", "f(u);\nf0[0] = 1.0;"), "line 1: 'u' is an input or const, and the helper function writes to it"),
    "helper of nothing": (helper("void f(PetscReal s) { s = 1.0; }"), "'f' returns nothing; call it as a statement"),
    "helper of both": (helper("PetscReal f(PetscReal s, PetscReal *r) { *r = s; return s; }", "PetscReal r; f0[0] = f(u[0], &r) + r;"), "'f' both returns a value and writes"),
    "number for an array": (helper("PetscReal f(PetscReal *s) { return s[0]; }", "f0[0] = f(t);"), "an array is needed here: its name, &name[i] or &name"),
    # whole functions
    "wrong signature": (text("void f0(PetscInt dim, PetscScalar f0[]) {\n f0[0] = 1.0; }"), "'f0' has 2 arguments, PETSc's signature of this function has 18"),
    "arguments swapped": (text(WHOLE.replace("PetscReal t, const PetscReal x[]", "const PetscReal x[], PetscReal t") + "f0[0] = 1.0; }"), "argument 'x' stands where PETSc's signature has t"),
    "typo in a whole function": (text(WHOLE + "  f0[0] = y[0];\n}"), "f0, line 3: unknown name 'y'"),
    "time derivative of given fields": (text(WHOLE + "  f0[0] = a_t[0];\n}"), "'a_t' cannot be used here: auxiliary fields have no time derivative"),
    "which function": (text(WHOLE + "f0[0] = 1.0; }\n" + WHOLE.replace("f0_u", "f0_v") + "f0[0] = 2.0; }"), "which of the functions f0_u, f0_v is meant?"),
    # what is given
    "empty text": (text("  /* nothing */ // at all\n"), "f0: the text is empty; leave the function out"),
    "no text": (text(3 + 4j), "f0: is a complex; give C text"),
    "missing file": (text(Path("/nowhere/f0.c")), "f0: the file /nowhere/f0.c cannot be read (No such file or directory)"),
    "no functions": (given({"u": 1}), "has neither f0 nor f1"),
    "no fields": (given({}, "f0[0] = 1.0;"), "has no fields; give at least one"),
    "fields as a list": (given(["u"], "f0[0] = 1.0;"), "fields are given as a list; give a mapping"),
    "no components": (given({"u": 0}, "f0[0] = 1.0;"), "field 'u' has 0 components"),
    "odd field name": (given({"u-v": 1}, "f0[0] = 1.0;"), "field 'u-v' cannot be named so"),
    "odd space": (text("f0[0] = 1.0;", auxiliary={"k": Auxiliary(1, "face")}), "auxiliary field 'k' has space 'face'; the spaces are cell, nodal"),
    "unknown field": (given({"u": 1, "p": 1}, {"q": "f0[0] = 1.0;"}), "f0: there is no field 'q' (fields: u, p)"),
    "one text for two fields": (given({"u": 1, "p": 1}, "f0[0] = 1.0;"), "has several fields, so f0 must be a mapping with keys among 'u', 'p'"),
    "field named in messages": (given({"u": 1, "p": 1}, {"p": "f0[0] = q;"}), "physics 'physics', f0[p], line 1: unknown name 'q'"),
    "reserved constant": (text("f0[0] = 1.0;", constants={"u": 1.0}), "a constant cannot be called 'u', which means something else"),
    "constant with a space": (text("f0[0] = 1.0;", constants={"a b": 1.0}), "a constant cannot be called 'a b'"),
    "constant of text": (text("f0[0] = 1.0;", constants={"k": "one"}), "constant 'k' is 'one'; give a number"),
    "infinite constant": (text("f0[0] = 1.0;", constants={"k": float("nan")}), "constant 'k' is nan; give a finite number"),
    "sympy with too many": (text([s.x[0], s.x[1]]), "f0: has 2 expression(s), the field has 1 component(s)"),
    "sympy flux of a wrong size": (given({"u": 2}, None, [[1, 2], [3, 4], [5, 6.0]]), "f1: index 4 is outside f1, which has 4 element(s) in 2D"),
    "sympy unknown symbol": (text(sympy.Symbol("foo") * 2), "f0: unknown name 'foo'"),
    "sympy unknown function": (text(sympy.Function("foo")(s.x[0])), "f0: holds foo(x[0]), which C cannot express"),
    "complex sympy": (text(sympy.I * s.x[0]), "f0: holds I*x[0], which is not a real number"),
    "true as sympy": (text([True]), "f0: holds True, which is no expression"),
    "Jacobian block": (text("f0[0] = u[0];", jacobian={"g4": "g4[0] = 1.0;"}), "jacobian: there is no block 'g4'; the blocks are g0, g1, g2, g3"),
    "Jacobian text": (text("f0[0] = u[0];", jacobian={"g0": "\ng0[1] = 1.0;"}), "g0, line 2: index 1 is outside g0"),
    "Jacobian field": (text("f0[0] = u[0];", jacobian={("u", "v"): {"g0": "g0[0] = 1.0;"}}), "jacobian: there is no field 'v' (fields: u)"),
    # boundary conditions
    "state in Dirichlet data": (boundary(Dirichlet("left", "g[0] = u[0];")), "Dirichlet condition on 'left', line 1: 'u' cannot be used here: Dirichlet data may depend on x, t"),
    "state in a flux": (boundary(Neumann("left", "g[0] = u[0];")), "'u' cannot be used here: a Neumann flux may not depend on the solution; use Robin"),
    "normal in Dirichlet data": (boundary(Dirichlet("left", "g[0] = n[0];")), "'n' cannot be used here"),
    "Dirichlet for an unknown field": (boundary(Dirichlet("left", "g[0] = 0.0;", field="v")), "Dirichlet condition on 'left': there is no field 'v'"),
    "Dirichlet without a field": (given({"u": 1, "p": 1}, {"p": "f0[0] = 1.0;"}, boundary=Dirichlet("left", 0.0)), "say which field it is for"),
    "Dirichlet without an exact solution": (boundary(Dirichlet("left", "exact")), "g is \"exact\", but no exact solution of 'u' is given"),
    "unknown component": (boundary(Dirichlet("left", "g[0] = 0.0;", components=(1,))), "component 1 does not exist; field 'u' has components 0 to 0"),
    "component not given": (given({"u": Field(2)}, "f0[0] = u[0];", boundary=Dirichlet("left", "g[0] = 0.0;")), "g[1] is never assigned, and component 1 is constrained"),
    "no condition": (boundary(("left", 0.0)), "boundary condition 0 is a tuple; give Dirichlet(…), Neumann(…) or Robin(…)"),
    "label as a number": (boundary(Robin(3, "f0[0] = u[0];")), "a Robin condition has label 3; give the name of a boundary"),
    "Robin typo": (boundary(Robin("right", "f0[0] = 1.0;\nf0[0] += uu[0];")), "Robin condition on 'right', line 2: unknown name 'uu'"),
    "exact with state": (text("f0[0] = u[0];", exact="u[0] = u_x[0];"), "exact, line 1: 'u_x' cannot be used here: an exact solution may depend on x, t"),
    "four dimensions": (lambda: Physics({"u": 1}, None, FLUX).device_source(4), "was asked for in 4 dimensions; 1, 2 and 3 are possible"),
    "changed constant": (lambda: Physics({"u": 1}, None, FLUX).with_constants(k=2), "has no constant 'k'; its constants are: none"),
    "name with a quote": (text("f0[0] = 1.0;", name='a"b'), "a physics cannot be called"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_one_clear_sentence(case):
    do, message = BAD[case]
    with pytest.raises(PhysicsError) as caught:
        do()
    said = str(caught.value)
    assert message in said
    assert "physics" in said and "\n" not in said and len(said) < 600


def test_a_physics_that_gives_nan_is_no_error():
    physics = Physics({"u": 1}, "f0[0] = log(-1.0 - u[0] * u[0]) / (u[0] - u[0]);")
    assert "pw_residual" in physics.device_source(2)


def test_errors_at_run_time_name_the_line():
    physics = Physics({"u": 1}, "PetscReal r[2] = {1.0, 2.0};\nf0[0] = r[(PetscInt)(u[0])];")
    with pytest.raises(PhysicsError, match="f0, line 2: index 5 is outside r, which has 2"):
        physics.interpreter(2).pw_residual([5.0], None, None, None, None, 0, [0, 0])


def test_a_wrong_shape_is_said():
    physics = Physics({"u": 2}, "f0[0] = u[0];")
    with pytest.raises(PhysicsError, match=r"u has shape \(3,\); this physics takes \(2,\)"):
        physics.interpreter(2).pw_residual([1.0, 2.0, 3.0], None, None, None, None, 0, [0, 0])
