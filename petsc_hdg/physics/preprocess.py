"""The small part of C's preprocessor that pointwise functions need, keeping every line where the user wrote it."""

from __future__ import annotations

import re

from petsc_hdg.physics.source import Source

_TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_DIRECTIVE = re.compile(r"\s*#\s*(\w*)\s*(.*)")
_MACRO = re.compile(r"([A-Za-z_]\w*)(\(?)(.*)")
_INCLUDES = re.compile(r'[<"](petsc\w*|math|stdlib|stdio|stdbool|tgmath|string)\.h[>"]')
_IDENTIFIER = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_PASSES = 20


def preprocess(source: Source, text: str, macros: dict[str, str]) -> str:
    """`text` without comments and directives, macros replaced; `macros` gains what the text defines."""
    text = _TOKENS.sub(_blank_comment, text.replace("\\\r\n", "\\\n"))
    lines, pending = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.endswith("\\"):
            raise source.error(number, "a line may not be continued with a backslash; write the definition on one line")
        directive = _DIRECTIVE.fullmatch(line)
        if directive:
            _obey(source, number, directive.group(1), directive.group(2).strip(), macros)
            lines.append("")
        else:
            lines.append(_expand(source, number, line, macros))
    return "\n".join(lines) + "\n" * pending


def _blank_comment(match: re.Match) -> str:
    text = match.group()
    if text.startswith(("//", "/*")):
        return re.sub(r"[^\n]", " ", text)
    return re.sub(r"[(){}\[\];]", " ", text)  # brackets in a text are no brackets of C


def _obey(source: Source, line: int, word: str, rest: str, macros: dict[str, str]) -> None:
    if word == "include":
        if not _INCLUDES.fullmatch(rest):
            raise source.error(line, f"#include {rest} cannot be followed; put the functions into `helpers`")
    elif word == "define":
        macro = _MACRO.fullmatch(rest)
        if not macro or macro.group(2):
            raise source.error(line, f"#define {rest} takes arguments; write a static inline function instead")
        macros[macro.group(1)] = macro.group(3).strip()
    elif word == "undef":
        macros.pop(rest, None)
    elif word not in ("pragma", ""):
        raise source.error(
            line, f"#{word} is not read here; only #define of constants and #include of PETSc's headers are"
        )


def _expand(source: Source, number: int, line: str, macros: dict[str, str]) -> str:
    for _ in range(_PASSES):
        new = _IDENTIFIER.sub(lambda match: macros.get(match.group(), match.group()), line)
        if new == line:
            return line
        line = new
    raise source.error(number, "a #define refers to itself")
