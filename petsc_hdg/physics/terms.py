"""The pointwise functions of a physics, checked: what they are terms of, and their form in one dimension."""

from __future__ import annotations

from dataclasses import dataclass

from petsc_hdg.physics.layout import Field, setting
from petsc_hdg.physics.tree.derivative import differentiate
from petsc_hdg.physics.tree.ir import Program
from petsc_hdg.physics.tree.specialise import Setting, specialise

STATE = frozenset({"u", "u_t", "u_x"})
FACET_STATE = STATE | {"u_in", "f_hat"}  # what a boundary flux reads of a solution
_SIDED = frozenset({"n", "u_t", "u_x", "a", "a_x"})


@dataclass(frozen=True)
class Term:
    """One pointwise function.

    program  checked text
    kind     f0, f1, g (a condition), b (a boundary flux), u (exact), tau, S (stabilization of components, or a matrix),
             obj (to integrate), or g0 … g3
    field    field it tests; one of its own for the stabilization, boundary fluxes and what is integrated
    trial    field a hand-written Jacobian, or a matrix of stabilization, acts on
    """

    program: Program
    kind: str
    field: Field
    trial: Field | None = None

    def size(self, dim: int) -> int:
        """Number of values the function writes."""
        per_component = {"f1": dim, "g1": dim, "g2": dim, "g3": dim * dim}.get(self.kind, 1)
        return self.field.components * (self.trial.components if self.trial else 1) * per_component


@dataclass(frozen=True)
class Condition:
    """A boundary condition with its term, of kind f1 where it multiplies gradients of test functions. `kind` is
    Dirichlet, Neumann, Robin or BoundaryFlux.

    label       name of the boundary
    field       the Field it is about
    components  numbers of the components of the field it constrains (Dirichlet)
    side        name of the region whose cells see the facets; None: facets are exterior, or see the same from both
    place       its number in the physics' list, whose first Dirichlet condition or boundary flux on a facet holds
    suits       what a boundary flux expects of a solution, and what to do otherwise, see BoundaryFlux
    """

    kind: str
    label: str
    field: Field
    term: Term
    components: tuple[int, ...]
    side: str | None = None
    place: int = 0
    suits: tuple[str, str] | None = None

    @property
    def may_be_inside(self) -> bool:
        """True if a facet inside a mesh gives it one value: that of its side, or the same from both."""
        has_sides = self.term.kind in ("f1", "b") or not self.term.program.inputs.isdisjoint(_SIDED)
        return self.side is not None or not has_sides


@dataclass(frozen=True)
class Terms:
    """Everything the user wrote, checked: terms of the residual, the hand-written Jacobian, conditions, exact
    solution, stabilization.
    """

    residual: tuple[Term, ...]
    jacobian: tuple[Term, ...] | None
    dirichlet: tuple[Condition, ...]
    natural: tuple[Condition, ...]
    exact: tuple[Term, ...]
    stabilization: Term | None = None

    def all(self) -> tuple[Term, ...]:
        """Every term."""
        conditions = tuple(condition.term for condition in self.dirichlet + self.natural)
        last = () if self.stabilization is None else (self.stabilization,)
        return self.residual + (self.jacobian or ()) + conditions + self.exact + last


@dataclass(frozen=True)
class Form:
    """A term in one dimension: its program with numbers put in, and its derivative (None: zero, or not asked)."""

    term: Term
    setting: Setting
    program: Program
    derivative: Program | None


def form(
    term: Term, dim: int, fields: tuple, auxiliary: tuple, constants: int, active: frozenset = frozenset()
) -> Form:
    """`term` in `dim` dimensions with its derivative along `active` inputs."""
    output, source = next(iter(term.program.main.outputs)), term.program.source
    if source.entries not in (0, term.size(dim)):
        raise source.error(None, f"is a list of {source.entries} entries; in {dim}D it has {term.size(dim)}")
    known = setting(dim, fields, auxiliary, constants, {output: term.size(dim)}, term.field.components)
    program = specialise(term.program, known)
    derivative = differentiate(program, active, known.sizes) if active else None
    return Form(term, known, program, derivative)
