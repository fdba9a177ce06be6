"""Wrong C: each is one clear sentence that names the physics, the function and the line."""

from __future__ import annotations

import pytest
from wrong_physics import assert_one_clear_sentence, helper, text

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics import Physics

# name -> (what to do, what the message says)
BAD = {
    # typing errors
    "unknown name": (
        text("f0[0] = 1.0;\n\nf0[0] += gradu[0];"),
        "f0, line 3: unknown name 'gradu' (known here: Nf, NfAux, PETSC_PI, a,",
    ),
    "close name": (
        text("PetscReal square = u[0];\nf0[0] = sqare;"),
        "line 2: unknown name 'sqare'; did you mean 'square'?",
    ),
    "close constant": (text("f0[0] = kapa;", constants={"kappa": 1.0}), "did you mean 'kappa'?"),
    "missing semicolon": (
        text("PetscReal r = u[0];\nr = r + 1.0\nf0[0] = r;"),
        "line 2: a ';' seems to be missing at the end of 'r = r + 1.0'",
    ),
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
    "integer variable": (
        text("PetscInt r = 0.5 * u[0];\nf0[0] = r;"),
        "'r' is an integer and would cut off a real value",
    ),
    "equals in a condition": (
        text("if (u[0] = 1.0) f0[0] = 1.0;"),
        "line 1: '=' changes a variable inside an expression",
    ),
    "array as a number": (text("f0[0] = u_x * 2.0;"), "line 1: 'u_x' is an array; write u_x[i]"),
    "number as an array": (text("f0[0] = t[0];"), "'t' is one number and has no elements"),
    "real index": (text("f0[0] = u[0.0];"), "an index must be an integer, this one is real"),
    "real remainder": (text("f0[0] = u[0] % 2;"), "'%' needs integers; use pow or fmod"),
    "written input": (text("f0[0] = 1.0;\nu[0] = 1.0;"), "line 2: 'u' is an input or const and cannot be written"),
    "written const": (
        text("const PetscReal r = 1.0; r = 2.0; f0[0] = r;"),
        "'r' is an input or const and cannot be written",
    ),
    "written constant": (
        text("kappa = 1.0;", constants={"kappa": 1.0}),
        "line 1: 'kappa' is an input or const and cannot be written",
    ),
    "wrong output": (text("f1[0] = 1.0;"), "line 1: 'f1' cannot be used here: this text assigns to f0"),
    "no output": (text("PetscReal r = u[0];"), "nothing is assigned to f0; write f0[0] = …;"),
    "expression alone": (text("sin(x[0]);"), "line 1: the value of sin is not used"),
    "bare expression": (text("u[0] + 1.0;"), "line 1: this statement has no effect"),
    "declared twice": (text("PetscReal r;\nPetscInt r;\nf0[0] = r;"), "line 2: 'r' is declared twice"),
    # sizes
    "index outside": (
        text("f0[0] = 1.0;\nf0[1] = 1.0;"),
        "f0, line 2: index 1 is outside f0, which has 1 element(s) in 2D",
    ),
    "index outside in a loop": (
        text("for (PetscInt d = 0; d <= dim; ++d) f0[0] += u_x[d];"),
        "line 1: index 2 is outside u_x, which has 2 element(s)",
    ),
    "index outside a local": (text("PetscReal r[2];\nr[2] = 1.0; f0[0] = r[2];"), "line 2: index 2 is outside r"),
    "index outside a row": (
        text("PetscReal r[2][2];\nr[0][2] = 1.0; f0[0] = r[1][0];"),
        "line 2: index 2 is outside r",
    ),
    "no auxiliary": (text("f0[0] = a[0];"), "a[0] is read, but the physics has no auxiliary fields; add them"),
    "a field called a": (
        text("f0[0] = a_x[0];"),
        "give a field that is called 'a', as PETSc's array of them, another",
    ),
    "an object's gradient": (
        text("f0[0] = u.grad;"),
        "line 1: a member of a structure is not supported, but for those of the context: the gradient",
    ),
    "numpy's sine": (text("f0[0] = np.sin(u[0]);"), "and functions have C's names, such as sin"),
    "a derivative": (text("f0[0] = u.dx(0);"), "the gradient of a field u is u_x[d], of component c u_x[c*dim + d]"),
    "a gradient": (text("f0[0] = grad(u);"), "grad is not offered: write sums of u_x[c*dim + d], or u_x[d]"),
    "pi": (text("f0[0] = sin(pi*x[0]);"), "unknown name 'pi'; did you mean 'PETSC_PI'?"),
    "y": (text("f0[0] = y;"), "unknown name 'y'; did you mean 'x[1]'?"),
    "no constants": (text("f0[0] = constants[0];"), "constants[0] is read, but the physics has no constants"),
    "unset variable": (text("PetscReal r;\nf0[0] = r;"), "line 2: 'r' is read before it is set"),
    "unset element": (text("PetscReal r[2];\nr[0] = 1.0;\nf0[0] = r[1];"), "line 3: 'r[1]' is read before it is set"),
    "unknown size": (
        text("PetscReal r[(PetscInt)t]; f0[0] = 1.0;"),
        "the size of 'r' must be a positive number known from dim",
    ),
    "too many values": (
        text("PetscReal r[2] = {1, 2, 3};\nf0[0] = r[0];"),
        "line 1: 'r' has 2 elements and is given 3 values",
    ),
    # what C has and a physics has not
    "goto": (text("goto end;\nend: f0[0] = 1.0;"), "line 1: goto is not supported"),
    "structure": (text("struct { double a; } q;\nf0[0] = 1.0;"), "line 1: "),
    "member": (text("f0[0] = 1.0;\nf0[0] = u->x;"), "line 2: a member of a structure is not supported"),
    "pointer arithmetic": (text("f0[0] = *(u + 1);"), "pointer arithmetic is not supported; write p[i]"),
    "pointer moved": (text("const PetscReal *p = u;\np++;\nf0[0] = *p;"), "line 2: 'p' is an array"),
    "chosen pointer written": (
        text("PetscReal b[2], c[2];\nPetscReal *p = u[0] > 0 ? b : c;\np[0] = 1.0;"),
        "line 3: the pointer 'p' is chosen by ?: and is only read",
    ),
    "chosen pointer passed": (
        text("const PetscReal *p = u[0] > 0 ? u : u_x;\nf0[0] = DMPlex_NormD_Internal(1, p);"),
        "line 2: the pointer 'p' is chosen by ?: and only its elements are read",
    ),
    "unset pointer": (text("PetscReal *p;\nf0[0] = 1.0;"), "line 1: the pointer 'p' must be set where it is declared"),
    "static": (
        text("static PetscReal r = 0.0; r += 1; f0[0] = r;"),
        "'r' is static: a pointwise function cannot remember",
    ),
    "increment inside": (text("PetscInt i = 0;\nf0[i++] = 1.0;"), "line 2: ++ changes a variable inside an expression"),
    "sizeof": (text("f0[0] = sizeof(u);"), "sizeof is not supported"),
    "text": (text('f0[0] = "one";'), 'line 1: the text "one" is not supported'),
    "switch falls through": (
        text("switch (dim) {\ncase 2: f0[0] = 1.0;\ncase 3: f0[0] = 2.0; break; }"),
        "line 2: each case of a switch must end in break",
    ),
    "break inside a case": (
        text("switch (dim) {\ncase 2: if (t > 0) break; f0[0] = 1.0; break; }"),
        "line 2: a break inside an if of a case is not supported",
    ),
    "macro with arguments": (
        text("\n#define SQR(q) ((q)*(q))\nf0[0] = SQR(u[0], 2);"),
        "line 2: #define SQR(q) ((q)*(q)) takes arguments: it must be a formula",
    ),
    "condition with a call": (
        text("#if FAST(3)\nf0[0] = 1.0;\n#endif"),
        "line 1: the condition 'FAST(3)' cannot be read; conditions are of defined(), integers and #define",
    ),
    "condition of the unknown": (text("#if dim == 2\nf0[0] = 1.0;\n#endif"), "line 1: 'dim' is no #define"),
    "condition divides by 0": (text("#if 1/0\n#endif\nf0[0] = 1.0;"), "line 1: the condition '1/0' cannot be read"),
    "condition of itself": (text("#define N N+1\n\n#if N\n#endif\nf0[0] = 1.0;"), "line 3: a #define refers to itself"),
    "condition without end": (text("f0[0] = 1.0;\n#ifdef A\n#if B\n#endif"), "line 2: a condition begins here that no"),
    "end without condition": (text("f0[0] = 1.0;\n#endif"), "line 2: #endif stands without #if"),
    "else without condition": (text("f0[0] = 1.0;\n#else"), "line 2: #else stands without #if"),
    "directive": (text("#warning old\nf0[0] = 1.0;"), "line 1: #warning is not read here"),
    "after a continued line": (text("f0[0] = \\\n1.0;\nq = 2.0;"), "line 3: "),
    "foreign include": (text('#include "mine.h"\nf0[0] = 1.0;'), 'line 1: #include "mine.h" cannot be followed'),
    "not differentiable": (
        text("f0[0] = 1.0;\nf0[0] += logb(u[0]);"),
        "line 2: logb of a value that depends on the solution cannot be differentiated",
    ),
    "recursion": (
        helper("PetscReal f(PetscReal s) {\n return f(s); }"),
        "helpers, line 2: 'f' calls itself; recursion is not possible",
    ),
    "helper with state": (
        helper("PetscReal f(PetscReal s) { return s * u[0]; }"),
        "'u' cannot be used here: a helper function sees only its own arguments",
    ),
    "helper typo": (
        helper("\nPetscReal f(PetscReal s) {\n  return s * s }"),
        "helpers, line 3: a ';' seems to be missing before the '}' at column 16",
    ),
    "helper arguments": (
        helper("PetscReal f(PetscReal s, PetscReal r) { return s; }"),
        "f0, line 1: f takes 2 argument(s), here it has 1",
    ),
    "helper writes input": (
        helper("void f(PetscReal *s) { *s = 1.0; }", "f(u);\nf0[0] = 1.0;"),
        "line 1: 'u' is an input or const, and the helper function writes to it",
    ),
    "helper of nothing": (helper("void f(PetscReal s) { s = 1.0; }"), "'f' returns nothing; call it as a statement"),
    "helper of both": (
        helper("PetscReal f(PetscReal s, PetscReal *r) { *r = s; return s; }", "PetscReal r; f0[0] = f(u[0], &r) + r;"),
        "'f' both returns a value and writes",
    ),
    "number for an array": (
        helper("PetscReal f(PetscReal *s) { return s[0]; }", "f0[0] = f(t);"),
        "an array is needed here: its name, &name[i] or &name",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_one_clear_sentence(case):
    assert_one_clear_sentence(*BAD[case])


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
