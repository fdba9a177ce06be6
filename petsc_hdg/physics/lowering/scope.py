"""Names that are visible at a place of the user's text."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping

from petsc_hdg.physics.text.source import Source
from petsc_hdg.physics.tree.ir import Symbol

_LISTED = 24


class Scope:
    """A stack of blocks of names, over the inputs of the function. Locals get names of their own: no two in a
    function are the same.

    A local `v` is called `v_`, a second one in another block `v_2_`; a derivative of `v_` ends in `_d`. So locals,
    inputs, derivatives, macros and the words of OpenCL C stay apart.
    """

    def __init__(self, source: Source, inputs: Iterable[Symbol], reasons: dict[str, str], late: Callable | None = None):
        self.source = source
        self.reasons = reasons
        self._late = late
        self._blocks: list[dict[str, Symbol]] = [{symbol.name: symbol for symbol in inputs}]
        self._counts: dict[str, int] = {}
        self._made: set[str] = set()
        self.symbols: dict[str, Symbol] = dict(self._blocks[0])
        self.allocated: dict = {}  # sizes of scratch memory, by the names of pointers
        self.parts: Mapping[str, tuple] = {}  # of the inputs, by the names of fields: see parts_of
        self.has_arguments = True  # the function names its inputs; else they have PETSc's names
        self.nulls: set[str] = set()  # names of pointers that are NULL
        self.contexts: set[str] = set()  # names of pointers to the user's context, or to structures behind it

    def push(self) -> None:
        """Enter a block."""
        self._blocks.append({})

    def pop(self) -> None:
        """Leave a block."""
        self._blocks.pop()

    def bind(self, name: str, symbol: Symbol) -> None:
        """Make `symbol` visible as `name`."""
        self._blocks[-1][name] = symbol
        self.symbols[symbol.name] = symbol

    def fresh(self, name: str) -> str:
        """A name for local `name` that nothing else in the function has."""
        made = f"{name}_"
        while made in self._made:
            count = self._counts[name] = self._counts.get(name, 1) + 1
            made = f"{name}_{count}_"
        self._made.add(made)
        return made

    def in_this_block(self, name: str) -> bool:
        """Return True if the innermost block declares `name`."""
        return name in self._blocks[-1]

    def find(self, name: str) -> Symbol | None:
        """The variable that `name` means, or None."""
        for block in reversed(self._blocks):
            if name in block:
                return block[name]
        found = self._late(name) if self._late else None
        if found is not None:
            self._blocks[0][name] = found
            self.symbols[found.name] = found
        return found

    def unknown(self, name: str, line: int, others: Iterable[str] = ()) -> Exception:
        """The error that `name` means nothing here, with close names first."""
        if name in self.reasons:
            return self.source.error(line, f"'{name}' cannot be used here: {self.reasons[name]}")
        others = list(others)
        places = [other.removeprefix(f"{name} on ") for other in others if other.startswith(f"{name} on ")]
        if places:
            message = f"'{name}' cannot be used here: it has values on {', '.join(places)}; use it in conditions there"
            return self.source.error(line, message)
        known = [known for block in reversed(self._blocks) for known in block] + others
        known = [known for known in dict.fromkeys(known) if not known.startswith("_") and " on " not in known]
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        listed = ", ".join(sorted(known)[:_LISTED]) + (", …" if len(known) > _LISTED else "")
        return self.source.error(line, f"unknown name '{name}'{hint} (known here: {listed})")
