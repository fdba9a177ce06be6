"""Wrong arguments of a physics and of its conditions: each is one clear sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import sympy
from wrong_physics import FLUX, WHOLE, assert_one_clear_sentence, boundary, given, text

from petsc_hdg.physics import Auxiliary, Dirichlet, Field, Neumann, Physics, Robin, Symbols

s = Symbols(2, {"u": 1})

# name -> (what to do, what the message says)
BAD = {
    # whole functions
    "wrong signature": (
        text("void f0(PetscInt dim, PetscScalar f0[]) {\n f0[0] = 1.0; }"),
        "'f0' has 2 arguments, PETSc's signature of this function has 18",
    ),
    "arguments swapped": (
        text(WHOLE.replace("PetscReal t, const PetscReal x[]", "const PetscReal x[], PetscReal t") + "f0[0] = 1.0; }"),
        "argument 'x' stands where PETSc's signature has t",
    ),
    "typo in a whole function": (text(WHOLE + "  f0[0] = y[0];\n}"), "f0, line 3: unknown name 'y'"),
    "time derivative of given fields": (
        text(WHOLE + "  f0[0] = a_t[0];\n}"),
        "'a_t' cannot be used here: auxiliary fields have no time derivative",
    ),
    "which function": (
        text(WHOLE + "f0[0] = 1.0; }\n" + WHOLE.replace("f0_u", "f0_v") + "f0[0] = 2.0; }"),
        "which of the functions f0_u, f0_v is meant?",
    ),
    # what is given
    "empty text": (text("  /* nothing */ // at all\n"), "f0: the text is empty; leave the function out"),
    "no text": (text(3 + 4j), "f0: is a complex; give C text"),
    "missing file": (
        text(Path("/nowhere/f0.c")),
        "f0: the file /nowhere/f0.c cannot be read (No such file or directory)",
    ),
    "no functions": (given({"u": 1}), "has neither f0 nor f1"),
    "no fields": (given({}, "f0[0] = 1.0;"), "has no fields; give at least one"),
    "fields as a list": (given(["u"], "f0[0] = 1.0;"), "fields are given as a list; give a mapping"),
    "no components": (given({"u": 0}, "f0[0] = 1.0;"), "field 'u' has 0 components"),
    "odd field name": (given({"u-v": 1}, "f0[0] = 1.0;"), "field 'u-v' cannot be named so"),
    "odd space": (
        text("f0[0] = 1.0;", auxiliary={"k": Auxiliary(1, "face")}),
        "auxiliary field 'k' has space 'face'; the spaces are cell, nodal",
    ),
    "unknown field": (given({"u": 1, "p": 1}, {"q": "f0[0] = 1.0;"}), "f0: there is no field 'q' (fields: u, p)"),
    "one text for two fields": (
        given({"u": 1, "p": 1}, "f0[0] = 1.0;"),
        "has several fields, so f0 must be a mapping with keys among 'u', 'p'",
    ),
    "field named in messages": (
        given({"u": 1, "p": 1}, {"p": "f0[0] = q;"}),
        "physics 'physics', f0[p], line 1: unknown name 'q'",
    ),
    "reserved constant": (
        text("f0[0] = 1.0;", constants={"u": 1.0}),
        "a constant cannot be called 'u', which has a meaning",
    ),
    "constant with a space": (text("f0[0] = 1.0;", constants={"a b": 1.0}), "a constant cannot be called 'a b'"),
    "constant of text": (text("f0[0] = 1.0;", constants={"k": "one"}), "constant 'k' is 'one'; give a number"),
    "infinite constant": (
        text("f0[0] = 1.0;", constants={"k": float("nan")}),
        "constant 'k' is nan; give a finite number",
    ),
    "sympy with too many": (text([s.x[0], s.x[1]]), "f0: has 2 expression(s), the field has 1 component(s)"),
    "sympy flux of a wrong size": (
        given({"u": 2}, None, [[1, 2], [3, 4], [5, 6.0]]),
        "f1: is a list of 6 entries; in 2D it has 4",
    ),
    "flux of one direction": (given({"u": 1}, None, ["u_x[0]"]), "f1: is a list of 1 entries; in 2D it has 2"),
    "flux of space in a plane": (
        given({"u": 2}, None, [["u_x[0]", "u_x[1]", 0], ["u_x[2]", "u_x[3]", 0]]),
        "f1: is a list of 6 entries; in 2D it has 4",
    ),
    "sympy unknown symbol": (text(sympy.Symbol("foo") * 2), "f0: unknown name 'foo'"),
    "sympy unknown function": (text(sympy.Function("foo")(s.x[0])), "f0: holds foo(x[0]), which C cannot express"),
    "complex sympy": (text(sympy.I * s.x[0]), "f0: holds I*x[0], which is not a real number"),
    "statements in a list": (text(["f0[0] = 1;"]), "f0: holds 'f0[0] = 1;'; it is one expression in C, or a number"),
    "none in a list": (text(["u[0]", None]), "f0: holds None; beside texts give numbers"),
    "list of too many": (text(["u[0]", "1"]), "f0: is a list of 2 entries; give 1, or one expression for all"),
    "empty text in a list": (text([" "]), "f0: the text is empty"),
    "true as sympy": (text([True]), "f0: holds True, which is no expression"),
    "Jacobian block": (
        text("f0[0] = u[0];", jacobian={"g4": "g4[0] = 1.0;"}),
        "jacobian: there is no block 'g4'; the blocks are g0, g1, g2, g3",
    ),
    "Jacobian text": (text("f0[0] = u[0];", jacobian={"g0": "\ng0[1] = 1.0;"}), "g0, line 2: index 1 is outside g0"),
    "Jacobian field": (
        text("f0[0] = u[0];", jacobian={("u", "v"): {"g0": "g0[0] = 1.0;"}}),
        "jacobian: there is no field 'v' (fields: u)",
    ),
    # boundary conditions
    "state in Dirichlet data": (
        boundary(Dirichlet("left", "g[0] = u[0];")),
        "Dirichlet condition on 'left', line 1: 'u' cannot be used here: Dirichlet data may depend on x, t",
    ),
    "state in a flux": (
        boundary(Neumann("left", "g[0] = u[0];")),
        "'u' cannot be used here: a Neumann flux may not depend on the solution; use Robin",
    ),
    "normal in Dirichlet data": (boundary(Dirichlet("left", "g[0] = n[0];")), "'n' cannot be used here"),
    "Dirichlet for an unknown field": (
        boundary(Dirichlet("left", "g[0] = 0.0;", field="v")),
        "Dirichlet condition on 'left': there is no field 'v'",
    ),
    "Dirichlet without a field": (
        given({"u": 1, "p": 1}, {"p": "f0[0] = 1.0;"}, boundary=Dirichlet("left", 0.0)),
        "say which field it is for",
    ),
    "Dirichlet without an exact solution": (
        boundary(Dirichlet("left", "exact")),
        "g is \"exact\", but no exact solution of 'u' is given",
    ),
    "unknown component": (
        boundary(Dirichlet("left", "g[0] = 0.0;", components=(1,))),
        "component 1 does not exist; field 'u' has components 0 to 0",
    ),
    "component not given": (
        given({"u": Field(2)}, "f0[0] = u[0];", boundary=Dirichlet("left", "g[0] = 0.0;")),
        "g[1] is never assigned, and component 1 is constrained",
    ),
    "no condition": (
        boundary(("left", 0.0)),
        "boundary condition 0 is a tuple; give Dirichlet(…), Neumann(…) or Robin(…)",
    ),
    "label as a number": (
        boundary(Robin(3, "f0[0] = u[0];")),
        "a Robin condition has label 3; give the name of a boundary",
    ),
    "no label": (
        boundary(Dirichlet([], 0.0)),
        "a Dirichlet condition has label []; give the name of a boundary, or a list",
    ),
    "Robin typo": (
        boundary(Robin("right", "f0[0] = 1.0;\nf0[0] += uu[0];")),
        "Robin condition on 'right', line 2: unknown name 'uu'",
    ),
    "Robin without terms": (
        boundary(Robin("right")),
        "Robin condition on 'right': it has neither f0 nor f1; give at least one of them",
    ),
    "Robin typo in f1": (
        boundary(Robin("right", "f0[0] = 1.0;", f1="f1[0] = nn[0];")),
        "Robin condition on 'right', f1, line 1: unknown name 'nn'",
    ),
    "exact with state": (
        text("f0[0] = u[0];", exact="u[0] = u_x[0];"),
        "exact, line 1: 'u_x' cannot be used here: an exact solution may depend on x, t",
    ),
    "four dimensions": (
        lambda: Physics({"u": 1}, None, FLUX).device_source(4),
        "was asked for in 4 dimensions; 1, 2 and 3 are possible",
    ),
    "changed constant": (
        lambda: Physics({"u": 1}, None, FLUX).with_constants(k=2),
        "has no constant 'k'; its constants are: none",
    ),
    "name with a quote": (text("f0[0] = 1.0;", name='a"b'), "a physics cannot be called"),
}


@pytest.mark.parametrize("case", BAD)
def test_one_clear_sentence(case):
    assert_one_clear_sentence(*BAD[case])
