"""From what the user gave to a Physics, to checked terms."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from itertools import chain
from numbers import Integral, Real
from pathlib import Path

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.constants import boundaries, numbers
from petsc_hdg.physics.layout import BoundaryFlux, Dirichlet, Field, Neumann, Robin
from petsc_hdg.physics.lowering import signatures
from petsc_hdg.physics.lowering.lower import lower, shared_helpers
from petsc_hdg.physics.lowering.names import parts_of
from petsc_hdg.physics.terms import Condition, Term, Terms
from petsc_hdg.physics.text.source import CFile, is_expression, make_source, numbered
from petsc_hdg.value_checks import plural

UPWIND = "upwind"  # the stabilization that `upwinded` makes
_BLOCKS = ("g0", "g1", "g2", "g3")
_MATRIX = re.compile(r"\bS\s*\[[^]]*\]\s*[-+*/]?=")  # an assignment to an entry of a stabilization


class Reader:
    """Reads everything a user gave. `texts` collects what distinguishes one physics from another."""

    def __init__(self, physics: str, fields: tuple[Field, ...], auxiliary: tuple, constants: tuple[str, ...], helpers):
        self.physics, self.fields, self.parts = physics, fields, parts_of(fields, auxiliary)
        self.auxiliary = {field.name: field for field in auxiliary}
        self._names, self.constants = constants, numbers(constants)
        self.diffuses = False  # whether f1 reads gradients
        self.texts: list = []
        self.macros: dict[str, str] = {}
        empty = helpers is None or helpers == ""
        source = None if empty else make_source(physics, "helpers", helpers, "", 0, ())
        self.helpers = shared_helpers(source, self.macros)
        if source:
            self.texts.append(("helpers", source.text))

    def read(self, f0, f1, boundary, jacobian, exact, stabilization=None) -> Terms:
        """All terms."""
        residual = self.of_fields("f0", f0, signatures.F0) + self.of_fields("f1", f1, signatures.F1)
        if not residual:
            raise PhysicsError(f"physics '{self.physics}' has neither f0 nor f1; give at least one of them")
        self.diffuses = any(term.kind == "f1" and "u_x" in term.program.inputs for term in residual)
        exact_terms = self.of_fields("exact", exact, signatures.EXACT, "u")
        self._exact_given = self._by_field("exact", exact)
        if isinstance(boundary, (BoundaryFlux, Dirichlet, Neumann, Robin)):
            boundary = (boundary,)
        conditions = [
            replace(found, place=place)
            for place, entry in enumerate(chain.from_iterable(map(_of_each_label, boundary or ())))
            for found in self.about(getattr(entry, "label", None))._conditions(place, entry)
        ]
        known = dict.fromkeys(condition.label for condition in conditions)
        for label in boundaries(self._names):
            if label not in known:
                raise self._error(
                    f"a constant has a value on '{label}', which no condition is on; give values on boundaries of "
                    f"conditions ({', '.join(known) or 'none'})"
                )
        dirichlet = tuple(condition for condition in conditions if condition.kind == "Dirichlet")
        natural = tuple(condition for condition in conditions if condition.kind != "Dirichlet")
        blocks = self._jacobian(jacobian)
        return Terms(residual, blocks, dirichlet, natural, exact_terms, self.stabilization(stabilization))

    def _error(self, message: str, what: str = "") -> PhysicsError:
        """An error that names the physics, and what of it is meant."""
        return PhysicsError(f"physics '{self.physics}'{f', {what}' if what else ''}: {message}")

    def about(self, label: str | None) -> Reader:
        """The reader of texts about a boundary (None: about none), in which constants have their values there."""
        other = copy(self)
        other.constants = numbers(self._names, label)
        return other

    def stabilization(self, given) -> Term | None:
        """The stabilization of all components: a text that assigns to tau[c], or to S[c * Nc + d], or one value for all
        components. None of none, and of upwinding."""
        if given is None:
            return None
        if isinstance(given, str) and given.strip() == UPWIND:
            self.texts.append(("stabilization", UPWIND))
            return None  # it is made in a dimension
        every = self._every("tau")
        is_matrix = getattr(given, "shape", None) == (every.components, every.components) != (1, 1)
        if is_matrix or (isinstance(given, str) and _MATRIX.search(given)):
            args = given, signatures.STABILIZATION_MATRIX, every, (every.components**2,), every
            return self._term("stabilization", "stabilization", "S", *args)
        if isinstance(given, Real) and not isinstance(given, bool) and not 0 < given < math.inf:
            raise self._error(f"is {given}; give a number above 0, or an expression", "stabilization")
        if hasattr(given, "free_symbols") and not hasattr(given, "shape"):
            given = [given] * every.components
        args = given, signatures.STABILIZATION, every, (every.components,)
        return self._term("stabilization", "stabilization", "tau", *args)

    def _every(self, name: str) -> Field:
        """All components of all fields as one."""
        return Field(sum(f.components for f in self.fields), name=name)

    def objective(self, given, most: int, over: str | None = None, what: str = "integrand") -> Term:
        """A function over cells or over a boundary; statements may assign up to `most` components."""
        components, signature = 1, signatures.BOUNDARY_OBJECTIVE if over is not None else signatures.OBJECTIVE
        if isinstance(given, (str, Path, CFile)):
            components = 1 if is_expression(given) else most
        elif hasattr(given, "free_symbols") and not hasattr(given, "shape"):
            given = [given]
        elif hasattr(given, "__len__"):
            components = len(given)
        every = Field(components, name=signature.output)
        return self.about(over)._term(what, "objective", "obj", given, signature, every, (components,))

    def _term(
        self, slot: str, key: str, kind: str, given, signature, field: Field, shape: tuple, trial: Field | None = None
    ) -> Term:
        taken = {*self.constants, *self.parts}
        if is_expression(given):  # its output has a name that no constant can have
            self._check_expression(slot, kind, numbered(given, taken), field)
            signature = replace(signature, output=f"_{signature.output}")
        source = make_source(self.physics, slot, given, signature.output, field.components, shape, taken)
        self.texts.append((slot, kind, field.name, source.text, source.function))
        program = lower(source, signature, self.helpers, self.macros, self.constants, key, self.parts)
        return Term(program, kind, field, trial)

    def _check_expression(self, slot: str, kind: str, given: tuple[str, str, str], field: Field) -> None:
        """Raise PhysicsError for a block of the Jacobian, and where f0 or f1 takes one entry of the state for all.

        given: as `numbered` returns it.
        """
        text = given[0]
        if kind in _BLOCKS:
            raise self._error(f"is an expression; assign to {kind}[…]", slot)
        state = "|".join(["u", *(re.escape(one.name) for one in self.fields)])
        of_one = {
            "c, the number of the component": kind in ("f0", "f1") and field.components > 1 and "(_x|_t)?",
            "d, the number of the direction": kind == "f1" and "_x",
        }
        for (missing, suffix), number in zip(of_one.items(), given[1:], strict=True):
            if suffix and re.search(rf"\b({state}){suffix}\b", text) and not re.search(rf"\b{number}\b", text):
                message = f"without {missing}; use u[c], u_x[c*dim + d], or assign to each {kind}[…]"
                raise self._error(f"is an expression {message}", slot)

    def _slot(self, kind: str, field: Field) -> str:
        return kind if len(self.fields) == 1 else f"{kind}[{field.name}]"

    def _by_field(self, what: str, given) -> dict[str, object]:
        """Split what is given by field."""
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            if len(self.fields) > 1:
                names = ", ".join(f"'{field.name}'" for field in self.fields)
                raise PhysicsError(
                    f"physics '{self.physics}' has several fields, so {what} must be a mapping with keys among {names}"
                )
            given = {self.fields[0].name: given}
        for name in given:
            self._field(what, name)
        return {name: value for name, value in given.items() if value is not None}

    def _field(self, what: str, name) -> Field:
        for field in self.fields:
            if field.name == name:
                return field
        if name is None and len(self.fields) == 1:
            return self.fields[0]
        known = [field.name for field in self.fields]
        if name is None:
            raise self._error(f"say which field it is for, field= one of {', '.join(known)}", what)
        close = difflib.get_close_matches(str(name), known, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        raise self._error(f"there is no field '{name}'{hint} (fields: {', '.join(known)})", what)

    def of_fields(self, what: str, given, signature, kind: str = "") -> tuple[Term, ...]:
        """The terms of what is given by field; kind: theirs, `what` by default."""
        texts, kind, terms = self._by_field(what, given), kind or what, []
        for field in self.fields:
            if field.name in texts:
                shape = (field.components, None) if kind == "f1" else (field.components,)
                key, args = f"{what}_{field.name}", (texts[field.name], signature, field, shape)
                terms.append(self._term(self._slot(what, field), key, kind, *args))
        return tuple(terms)

    def _jacobian(self, given) -> tuple[Term, ...] | None:
        if given is None:
            return None
        what = "jacobian"
        if not isinstance(given, Mapping):
            raise self._error(f"is a {type(given).__name__}; give a mapping of g0, g1, g2, g3 to texts", what)
        if len(self.fields) == 1 and all(isinstance(key, str) for key in given):
            given = {(self.fields[0].name, self.fields[0].name): given}
        terms = []
        for pair, blocks in given.items():
            if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(blocks, Mapping):
                raise self._error(
                    f"'{pair}' is no pair of fields; give {{(test field, trial field): {{'g3': text}}}}", what
                )
            test, trial = (self._field(what, name) for name in pair)
            for kind, text in blocks.items():
                if kind not in _BLOCKS:
                    raise self._error(f"there is no block '{kind}'; the blocks are {', '.join(_BLOCKS)}", what)
                slot = kind if len(self.fields) == 1 else f"{kind}[{test.name},{trial.name}]"
                key = f"{kind}_{test.name}_{trial.name}"
                shape = (test.components * trial.components, *(() if kind == "g0" else (None,)))
                terms.append(self._term(slot, key, kind, text, signatures.JACOBIANS[kind], test, shape, trial))
        return tuple(terms)

    def _conditions(self, number: int, entry) -> list[Condition]:
        """The condition of an entry; of a Robin condition those of f0 and of f1."""
        if not isinstance(entry, (Dirichlet, Neumann, Robin, BoundaryFlux)):
            given = type(entry).__name__
            raise self._error(f"boundary condition {number} is a {given}; give Dirichlet(…), Neumann(…) or Robin(…)")
        kind = type(entry).__name__
        if not isinstance(entry.label, str) or not entry.label:
            message = f"a {kind} condition has label {entry.label!r}; give the name of a boundary, or a list of names"
            raise self._error(message)
        side, what = getattr(entry, "side", None), f"{kind} condition on '{entry.label}'"
        if side is not None:
            if not isinstance(side, str) or not side:
                raise self._error(f"side is {side!r}; give the name of a region of cells, or None", what)
            what += f" from side '{side}'"
        if kind == "BoundaryFlux":
            if entry.diffusive and not self.diffuses:
                raise self._error(f"f1 reads no gradient, and {entry.diffusive}", what)
            every = self._every("b")
            term = self._term(what, f"flux{number}", "b", entry.b, signatures.BOUNDARY_FLUX, every, (every.components,))
            return [Condition(kind, entry.label, every, term, tuple(range(every.components)), suits=entry.suits)]
        field = self._field(what, entry.field)
        key, components = f"{kind.lower()}{number}", self._components(what, field, entry)
        if kind == "Robin":
            return self._robin(what, key, entry, field, components)
        given, signature = entry.g, signatures.DIRICHLET if kind == "Dirichlet" else signatures.NEUMANN
        if kind == "Dirichlet" and isinstance(given, str) and given.strip() == "exact":
            given, signature = self._exact_of(what, field), signatures.EXACT
        elif isinstance(given, str) and given.strip() in self.auxiliary:
            given = self._copy_of(what, self.auxiliary[given.strip()], field, components)
        term = self._term(what, key, "g", given, signature, field, (field.components,))
        return [Condition(kind, entry.label, field, term, components, side)]

    def _robin(self, what: str, key: str, entry, field: Field, components: tuple[int, ...]) -> list[Condition]:
        if entry.f0 is None and entry.f1 is None:
            raise self._error("it has neither f0 nor f1; give at least one of them", what)
        parts = [
            ("f0", what, key, entry.f0, signatures.ROBIN, (field.components,)),
            ("f1", f"{what}, f1", f"{key}_f1", entry.f1, signatures.ROBIN_F1, (field.components, None)),
        ]
        return [
            Condition("Robin", entry.label, field, term, components, entry.side)
            for kind, slot, name, given, signature, shape in parts
            if given is not None
            for term in [self._term(slot, name, kind, given, signature, field, shape)]
        ]

    def _copy_of(self, what: str, auxiliary, field: Field, components: tuple[int, ...]) -> str:
        """A text that writes the components of an auxiliary field to the constrained ones, or to all of the field."""
        if auxiliary.components not in (len(components), field.components):
            count = plural(auxiliary.components, "component")
            message = f"g is the auxiliary field '{auxiliary.name}' of {count}, and there are {len(components)} to give"
            raise self._error(f"{message}; write a text", what)
        places = components if auxiliary.components == len(components) else range(field.components)
        name = auxiliary.name
        return " ".join(
            f"g[{place}] = {name if auxiliary.components == 1 else f'{name}[{c}]'};" for c, place in enumerate(places)
        )

    def _exact_of(self, what: str, field: Field):
        given = self._exact_given.get(field.name)
        if given is None:
            raise self._error(f"g is \"exact\", but no exact solution of '{field.name}' is given", what)
        return given

    def _components(self, what: str, field: Field, entry) -> tuple[int, ...]:
        chosen = getattr(entry, "components", None)
        if chosen is None:
            return tuple(range(field.components))
        chosen = tuple(chosen) if isinstance(chosen, Iterable) else (chosen,)
        for component in chosen:
            if not isinstance(component, Integral) or not 0 <= component < field.components:
                known = f"field '{field.name}' has components 0 to {field.components - 1}"
                raise self._error(f"component {component!r} does not exist; {known}", what)
        return tuple(map(int, chosen))


def _of_each_label(entry) -> list:
    """A condition on several boundaries as one on each."""
    labels = getattr(entry, "label", None)
    several = labels and isinstance(labels, (list, tuple))
    return [replace(entry, label=label) for label in labels] if several else [entry]
