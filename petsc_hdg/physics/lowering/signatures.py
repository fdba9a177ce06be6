"""The argument lists of PETSc's pointwise functions: which names a body may use, and what each position of a whole
function means.

Source: PetscPointFn, PetscBdPointFn, PetscPointJacFn, PetscBdPointJacFn and PetscSimplePointFn of PETSc's manual.
"""

from __future__ import annotations

from dataclasses import dataclass

from pycparser import c_ast

from petsc_hdg.physics.lowering.expressions import scalar_type
from petsc_hdg.physics.text.parse import line_of
from petsc_hdg.physics.text.source import Source
from petsc_hdg.physics.tree.ir import INT, REAL, Symbol

_INTS = ("dim", "Nf", "NfAux", "numConstants", "Nc")
_INT_ARRAYS = ("uOff", "uOff_x", "aOff", "aOff_x")
_REALS = ("t", "u_tShift")

# What no PETSc pointwise function here can have, and why.
UNAVAILABLE = {
    "a_t": "auxiliary fields have no time derivative here",
    "ctx": "the context is a pointer to host memory; use named constants instead",
}

_STATE = ("dim", "Nf", "NfAux", "uOff", "uOff_x", "u", "u_t", "u_x", "aOff", "aOff_x", "a", "a_t", "a_x", "t")
_END = ("x", "numConstants", "constants")
_BOUNDARY_END = ("x", "n", "numConstants", "constants")
_VOID = ("void", "PetscErrorCode")


@dataclass(frozen=True)
class Signature:
    """Names that a pointwise function may read and write.

    output     name of the array it writes
    positions  the meanings of a whole function's arguments, one tuple for each accepted signature, the output last
    but for
               the boundary-value signature (dim, time, x, Nc, u, ctx)
    readable   names a body may read
    reason     why state is not among them, for messages
    """

    output: str
    positions: tuple
    readable: frozenset
    reason: str = ""

    def meanings(self, count: int) -> tuple | None:
        """The meaning of each argument of a whole function with `count` arguments; None if no signature has so many."""
        return next((names for names in self.positions if len(names) == count), None)


def symbol(name: str) -> Symbol:
    """The input called `name`."""
    kind = INT if name in _INTS + _INT_ARRAYS else REAL
    return Symbol(name, kind, () if name in _INTS + _REALS else (None,), const=True)


def _point(output: str, boundary: bool = False, jacobian: bool = False) -> Signature:
    end = _BOUNDARY_END if boundary else _END
    names = _STATE + (("u_tShift",) if jacobian else ()) + end
    return Signature(output, ((*names, output),), frozenset(names) - {"a_t"})


def _data(output: str, reason: str, others: tuple[str, ...] = ()) -> Signature:
    readable = ("dim", "t", "x", "Nc", "numConstants", "constants", *others)
    return Signature(output, (("dim", "t", "x", "Nc", output, "ctx"),), frozenset(readable), reason)


F0, F1 = _point("f0"), _point("f1")
ROBIN, ROBIN_F1 = _point("f0", boundary=True), _point("f1", boundary=True)
JACOBIANS = {name: _point(name, jacobian=True) for name in ("g0", "g1", "g2", "g3")}
DIRICHLET = _data(
    "g", "Dirichlet data may depend on x, t, auxiliary fields and constants alone", ("a", "NfAux", "aOff")
)
EXACT = _data("u", "an exact solution may depend on x, t and constants alone")

_flux_names = frozenset(
    {"dim", "t", "x", "n", "Nc", "Nf", "NfAux", "aOff", "aOff_x", "a", "a_x", "numConstants", "constants"}
)
NEUMANN = Signature(
    "g",
    ((*_STATE, *_BOUNDARY_END, "g"), ("dim", "t", "x", "Nc", "g", "ctx")),
    _flux_names,
    "a Neumann flux may not depend on the solution; use Robin for one that does",
)

# An objective is integrated over cells or over a boundary, of one state: there is no u_t. A whole function for
# boundaries may be one for cells.
OBJECTIVE = Signature(
    "obj",
    ((*_STATE, *_END, "obj"),),
    frozenset((*_STATE, *_END)) - {"a_t", "u_t"},
    "integrands and derived fields are of u, u_x, a, a_x, x, t and constants alone, over a boundary of n too",
)
BOUNDARY_OBJECTIVE = Signature(
    "obj",
    ((*_STATE, *_BOUNDARY_END, "obj"), (*_STATE, *_END, "obj")),
    frozenset((*_STATE, *_BOUNDARY_END)) - {"a_t", "u_t"},
    "integrands and derived fields over a boundary are of u, u_x, a, a_x, x, n, t and constants alone",
)

# A whole function for the stabilization has the arguments of PETSc's boundary functions. u is the trace.
STABILIZATION, STABILIZATION_MATRIX = (
    Signature(
        output,
        ((*_STATE, *_BOUNDARY_END, output),),
        _flux_names | {"u", "uOff"},
        "a stabilization may depend on u, x, n, t, auxiliary fields and constants alone",
    )
    for output in ("tau", "S")
)

# The numerical flux at a boundary: u is the trace, u_in the value in the cell, f_hat the numerical flux f̂·n.
BOUNDARY_FLUX = Signature(
    "b",
    ((*_STATE, *_BOUNDARY_END, "u_in", "f_hat", "b"),),
    _flux_names | {"u", "u_x", "uOff", "uOff_x", "u_in", "f_hat"},
    "a boundary flux may depend on u, u_in, u_x, f_hat, x, n, t, auxiliary fields and constants alone",
)


def type_words(node) -> list[str] | None:
    """The words of the type that a pointer points to, None for what is no plain type."""
    return getattr(getattr(node.type, "type", None), "names", None)


def inner_quals(parameter) -> list:
    """Qualifiers of what a parameter or variable is at its root: const of const PetscReal *x."""
    inner = parameter.type
    while not isinstance(inner, c_ast.TypeDecl):
        inner = inner.type
    return inner.quals


def result_type(source: Source, node) -> str | None:
    """int or real for what a helper function returns, None for nothing."""
    words = type_words(node.decl.type)
    if words is None:
        raise source.error(line_of(node), f"'{node.decl.name}' must return a number or nothing")
    if len(words) == 1 and words[0] in _VOID:
        return None
    kind = scalar_type(words)
    if kind is None:
        raise source.error(line_of(node), f"'{node.decl.name}' must return PetscReal, PetscScalar, PetscInt or nothing")
    return kind
