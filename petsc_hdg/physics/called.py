"""Calls of a physics' own functions, and of their derivatives, in a text that is made from them."""

from __future__ import annotations

from dataclasses import replace

from petsc_hdg.physics.device_text import trimmed
from petsc_hdg.physics.terms import Term, form
from petsc_hdg.physics.tree import ir


class Called:
    """Functions of a physics in `dim` dimensions that a text calls, by name, as `lower` asks for helpers."""

    def __init__(self, physics, dim: int):
        self.physics, self.dim = physics, dim
        self.functions: dict = {}

    def call(self, term: Term, tag: str = "", active: frozenset = frozenset(), **places: str) -> str:
        """A call of a term, or with a tag of its derivative along `active`, with the places of its arguments where they
        are not called as its parameters are; nothing where it is zero."""
        physics = self.physics
        made = form(term, self.dim, physics.fields, physics.auxiliary, len(physics.constants), active)
        program = made.derivative if tag else made.program
        if not program:
            return ""
        main = trimmed(program.main)
        self.functions |= {f.name: f for f in (_renamed(g, f"{tag}s_") for g in (*program.helpers, main))}
        names = dict.fromkeys(main.outputs, "d" * bool(tag) + term.kind)  # expressions write to others
        given = (names.get(p.name, p.name) for p in main.parameters)
        return f"{tag}s_{main.name}({', '.join(places.get(name, name) for name in given)});"

    def has(self, name: str) -> bool:
        return name in self.functions

    def names(self) -> list[str]:
        return []

    def get(self, name: str, *_) -> ir.Function:
        return self.functions[name]

    def all(self) -> dict[str, ir.Function]:
        return self.functions


def _renamed(function: ir.Function, prefix: str) -> ir.Function:
    """A function, and what it calls, with other names: in a derivative the names of its own derivative are taken."""

    def symbol(given: ir.Symbol) -> ir.Symbol:
        chosen = given.choice and tuple(map(symbol, given.choice))
        return replace(given, name=f"{given.name}s_", choice=chosen)

    def node(given):
        given = ir.rebuild(given, node)
        if isinstance(given, (ir.Name, ir.Element, ir.Ref)):
            return replace(given, name=f"{given.name}s_")
        if isinstance(given, (ir.Declare, ir.Alias)):
            return replace(given, symbol=symbol(given.symbol))
        return replace(given, function=prefix + given.function) if isinstance(given, ir.HelperCall) else given

    return replace(
        function,
        name=prefix + function.name,
        parameters=tuple(map(symbol, function.parameters)),
        body=tuple(map(node, function.body)),
        outputs=frozenset(f"{name}s_" for name in function.outputs),
    )
