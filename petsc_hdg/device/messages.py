"""Compiler messages traced back to the text they are about: the user's own line, or one of our files."""

from __future__ import annotations

import re
from dataclasses import dataclass

# clang: "file:line:column: error: text", PoCL: "error: file:line:column: text", NVIDIA: "<kernel>:line:…" as clang
_MESSAGE = re.compile(
    r"^\s*(?:error: )?<?(?P<file>[^<>\n]*?)>?:(?P<line>\d+):(?P<column>\d+): (?:(?:fatal )?error: )?(?P<text>.*)$",
    re.MULTILINE,
)
_DIRECTIVE = re.compile(r'#line (\d+)(?: "(.*)")?')
_USER = "physics: "


@dataclass(frozen=True)
class Message:
    """An error of the compiler: where, what, and the line it is about."""

    file: str
    line: int
    column: int
    text: str
    quoted: str

    @property
    def is_users(self) -> bool:
        """True if the text is the user's physics."""
        return self.file.startswith(_USER)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.text}\n    {self.quoted}"


def located_lines(source: str) -> list[tuple[str, int, str]]:
    """(file, line, text) of each line of a program, by its #line directives."""
    located, name, number = [], "program", 1
    for text in source.splitlines():
        directive = _DIRECTIVE.match(text)
        located.append((name, number, text))
        number += 1
        if directive:
            number = int(directive[1])
            name = directive[2] if directive[2] is not None else name
    return located


def errors(log: str, source: str) -> list[Message]:
    """The errors in a build log, in their order.

    A compiler that leaves out the #line directives (NVIDIA's) counts the lines of the whole program.
    """
    located = located_lines(source)
    names = {name for name, _, _ in located}
    by_place = {(name, number): text for name, number, text in located if not _DIRECTIVE.match(text)}
    messages = []
    for match in _MESSAGE.finditer(log):
        if "error: " not in match[0]:
            continue
        name, number = match["file"], int(match["line"])
        if name not in names and number <= len(located):
            name, number, _ = located[number - 1]
        quoted = by_place.get((name, number), "").strip()
        messages.append(Message(name, number, int(match["column"]), match["text"], quoted))
    return messages
