"""Bad inputs to physics: name → (call of communicator and folder, pattern), a part of bad_input_table.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from bad_input_calls import clamped, physics, problem

import petsc_hdg as fe
from petsc_hdg.options import Options
from petsc_hdg.physics import CFile, library
from petsc_hdg.physics.library import gas


def flow(c, left, guess, end=0.0):
    """A gas from a guess, steady or in time, with a far field, and Dirichlet data on the left or the density there."""
    given = fe.Dirichlet("left", left if isinstance(left, list) else [left, 0.0, 0.0, 2.5])
    law = library.euler(
        2, gas.RATE if end else None, boundary=[given, gas.far_field("boundary", [1.0, 0.5, 0.0, 2.625])]
    )
    one = fe.Problem(fe.Mesh.box((3, 3), comm=c), law, Options(backend="hdg_gpu", degree=1, check_kernels=False))
    u = one.interpolate(guess)
    return one.solve_in_time(u, end, dt=0.1) if end else one.solve(u)


# The place is named.
BAD_PHYSICS = {
    "a gas without pressure on a boundary": (
        lambda c, f: flow(c, [1.0, 0.5, 0.0, 0.1], [1.0, 0.5, 0.0, 2.6]),
        r"^(SolveError: )?the pressure is -0.01 on boundary 'left' of cell \d+ of rank \d near \(0.1111, .* no values",
    ),
    "a gas without density in a guess": (
        lambda c, f: flow(c, 1.0, lambda x: np.array([1.0, 0, 0, 2.5]) - 2 * (x[..., :1] > 0.7) * [1.0, 0, 0, 0]),
        r"^(SolveError: )?the density is -1 (in|on a facet of) cell \d+ of rank \d near \(0\.[5-9]",
    ),
    "a gas without pressure at the start": (
        lambda c, f: flow(c, 1.0, lambda x: np.array([1.0, 0, 0, 2.5]) - 2.6 * (x[..., :1] > 0.7) * [0, 0, 0, 1], 1.0),
        r"failed: the pressure is -0.04 in cell \d+ of rank \d near \(0\.[789].*; the nonlinear solver",
    ),
    "positive quantities as texts": (lambda c, f: physics(positive={"u": "u[0]"}), "positive is .*dict of functions"),
    "unknown name": (lambda c, f: physics(f1="f1[0] = 1;\nf1[1] = gradu[0];"), r"poisson.*f1.*2.*gradu"),
    "missing semicolon": (lambda c, f: physics("f0[0] = 1\n"), r"poisson.*f0"),
    "unbalanced brace": (lambda c, f: physics("if (x[0] > 0) { f0[0] = 1;"), r"poisson.*f0"),
    "unknown function": (lambda c, f: physics("f0[0] = 1;\n\nf0[0] = sinus(x[0]);"), r"f0.*3.*sinus"),
    "wrong number of arguments": (lambda c, f: physics("f0[0] = pow(x[0]);"), r"f0.*pow"),
    "index outside u": (lambda c, f: physics("f0[0] = u[1];"), r"f0.*u\[1\]|f0.*1"),
    "index outside x": (lambda c, f: physics("f0[0] = x[5];"), r"f0.*x"),
    "index outside f1": (lambda c, f: physics(f1="for (d = 0; d <= dim; ++d) f1[d] = u_x[d];"), r"f1"),
    "unset variable": (lambda c, f: physics("PetscReal w;\nf0[0] = w;"), r"f0.*2.*w"),
    "writes to an input": (lambda c, f: physics("u[0] = 1; f0[0] = u[0];"), r"f0.*u"),
    "unknown constant": (lambda c, f: physics("f0[0] = kapa;", constants={"kappa": 1.0}), r"f0.*kapa"),
    "constant not a number": (lambda c, f: physics("f0[0] = k;", constants={"k": "one"}), "constant.*k"),
    "constant not finite": (lambda c, f: physics("f0[0] = k;", constants={"k": np.nan}), "constant.*k"),
    "unknown constant changed": (lambda c, f: problem(c).set_constants(kappa=2.0), "no constant 'kappa'"),
    "constant changed to NaN": (
        lambda c, f: problem(c, clamped(constants={"k": 1.0})).set_constants(k=float("nan")),
        "constant 'k' is nan; give a finite number",
    ),
    "constant changed to a word": (
        lambda c, f: problem(c, clamped(constants={"k": 1.0})).set_constants(k="one"),
        "constant 'k' is 'one'; give a number",
    ),
    "constant changed to a huge number": (
        lambda c, f: problem(c, clamped(constants={"k": 1.0})).set_constants(k=10**400),
        "constant 'k' is 10+; give a number",
    ),
    "no fields": (lambda c, f: fe.Physics({}), "no fields"),
    "no components": (lambda c, f: fe.Physics({"u": 0}), "0 components"),
    "fields as a list": (lambda c, f: fe.Physics(["u"]), "mapping"),
    "field name with a blank": (lambda c, f: fe.Physics({"my u": 1}), "cannot be named so"),
    "unknown space": (
        lambda c, f: physics(auxiliary={"k": fe.Auxiliary(1, "facet")}),
        "'facet'; the spaces are cell, nodal",
    ),
    "condition of unknown kind": (lambda c, f: physics(boundary=["left"]), "left|str"),
    "condition on unknown field": (
        lambda c, f: physics(boundary=[fe.Dirichlet("left", 0.0, field="p")]),
        "'p'",
    ),
    "condition on unknown component": (
        lambda c, f: physics(boundary=[fe.Dirichlet("left", 0.0, components=[3])]),
        "3",
    ),
    "exact where none is given": (lambda c, f: physics(boundary=[fe.Dirichlet("left", "exact")]), "exact"),
    "g never written": (lambda c, f: physics(boundary=[fe.Dirichlet("left", "PetscReal s = x[0];")]), r"g\[0\]|g"),
    "unknown Jacobian block": (lambda c, f: physics(jacobian={"g4": "g4[0] = 1;"}), "g4"),
    "missing C file": (lambda c, f: physics(Path(f) / "none.c"), "none.c"),
    "function not in the C file": (lambda c, f: physics(CFile(Path(__file__), "f0_heat")), "f0_heat|bad_input_physics"),
    "wrong dimension": (lambda c, f: physics().check(4), "4 dimensions; 1, 2 and 3"),
}
