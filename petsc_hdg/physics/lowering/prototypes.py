"""Types in declarations of functions: what pycparser's nodes of parameters and results say."""

from __future__ import annotations

from pycparser import c_ast

from petsc_hdg.physics.lowering.expressions import scalar_type
from petsc_hdg.physics.text.parse import line_of
from petsc_hdg.physics.text.source import Source

_VOID = ("void", "PetscErrorCode")


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
