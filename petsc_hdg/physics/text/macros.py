"""Macros of the user's text: constants, and those with arguments, put in where the text names them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_IDENTIFIER = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_PARAMETERS = re.compile(r"\(\s*([\w\s,]*?)\s*\)(.*)")
_MOST_PASSES = 20  # besides one for each macro
_LONGEST = 1_000_000  # characters of a line


class Endless(Exception):
    """A macro that names itself, or makes a line too long to read."""


@dataclass(frozen=True)
class Template:
    """Replacement text of a macro with arguments. `text` names `parameters`."""

    parameters: tuple[str, ...]
    text: str

    @staticmethod
    def read(name: str, text: str) -> Template | None:
        """Macro `name` from what follows its name, "(a, b) a * b"; None if it is more than a formula."""
        found = _PARAMETERS.fullmatch(text)
        if not found or "#" in found.group(2) or re.search(rf"\b{name}\b", found.group(2)):
            return None
        parameters = tuple(word.strip() for word in found.group(1).split(",")) if found.group(1) else ()
        return Template(parameters, found.group(2).strip())

    def apply(self, arguments: list[str]) -> str | None:
        """The text for `arguments`, None if they are too many or too few."""
        if len(arguments) != len(self.parameters):
            return None
        values = dict(zip(self.parameters, arguments, strict=True))
        return _IDENTIFIER.sub(lambda match: values.get(match.group(), match.group()), self.text)


def expand(given: str, macros: dict[str, str | Template]) -> str:
    """The line `given` with its macros replaced.

    Macros with arguments stay where their call does not fit or does not end. Endless is raised for what cannot be
    replaced.
    """
    line = given
    for _ in range(_MOST_PASSES + len(macros)):
        new = _once(line, macros)
        if new == line:
            return line
        if len(new) > max(_LONGEST, 2 * len(given)):
            raise Endless(f"makes this line longer than {_LONGEST} characters")
        line = new
    raise Endless("refers to itself")


def _once(line: str, macros: dict[str, str | Template]) -> str:
    parts, done = [], 0
    for match in _IDENTIFIER.finditer(line):
        macro = macros.get(match.group())
        if macro is None or match.start() < done:
            continue
        text, end = macro, match.end()
        if isinstance(macro, Template):
            arguments, end = _arguments(line, end)
            text = None if arguments is None else macro.apply(arguments)
        if text is not None:
            parts += [line[done : match.start()], text]
            done = end
    return "".join(parts) + line[done:]


def _arguments(line: str, start: int) -> tuple[list[str] | None, int]:
    """The arguments of a call whose name ends at `start`, and where the call ends; None if there is no whole call."""
    opening = re.compile(r"\s*\(").match(line, start)
    if not opening:
        return None, start
    arguments, depth, begun = [], 1, opening.end()
    for position in range(begun, len(line)):
        character = line[position]
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 or (depth == 1 and character == ","):
            arguments.append(line[begun:position].strip())
            begun = position + 1
        if depth == 0:
            return [] if arguments == [""] else arguments, begun
    return None, start
