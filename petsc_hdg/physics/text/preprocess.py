"""The small part of C's preprocessor that pointwise functions need, keeping every line where the user wrote it."""

from __future__ import annotations

import re

from petsc_hdg.physics.text.conditionals import WORDS, Conditionals, Unreadable
from petsc_hdg.physics.text.macros import Endless, Template, expand
from petsc_hdg.physics.text.source import Source

_TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_CONTINUED = re.compile(r"^(?:[^\n]*\\\n)+[^\n]*", re.MULTILINE)
_DIRECTIVE = re.compile(r"\s*#\s*(\w*)\s*(.*)")
_MACRO = re.compile(r"([A-Za-z_]\w*)(\(?)(.*)")
_INCLUDES = re.compile(r'<[\w./+-]+>|"(petsc[\w/]*|math|stdlib|stdio|stdbool|tgmath|string)\.h"')
_STRUCTURE = re.compile(r"\b(?:(typedef)\s+)?struct\b\s*(\w*)\s*\{[^{}]*\}\s*(\w*)\s*;")
_ENUMERATION = re.compile(r"(?:\btypedef\s+)?\benum\b\s*\w*\s*\{([^{}]*)\}\s*\w*\s*;")
_ENUMERATOR = re.compile(r"(\s*)([A-Za-z_]\w*)\s*(?:=([^,]*))?\s*\Z")


def preprocess(source: Source, text: str, macros: dict[str, str | Template], refused: dict[str, Exception]) -> str:
    """`text` without comments and directives, macros replaced and enumerations spelt out as constants.

    macros   gains what the text defines
    refused  gains errors, by name, of what the text defines but a physics cannot have: raise that of a name in use
    """
    text = _TOKENS.sub(_blank_comment, _CONTINUED.sub(_splice, text.replace("\r\n", "\n")))
    lines, conditions, begun = [], Conditionals(macros), 0
    for number, line in enumerate(text.split("\n"), 1):
        directive = _DIRECTIVE.fullmatch(line)
        if directive and directive.group(1) in WORDS:
            begun = begun if conditions.open else number
            try:
                conditions.obey(directive.group(1), directive.group(2).strip())
            except Unreadable as error:
                raise source.error(number, f"{error}; conditions are of defined(), integers and #define") from error
        elif directive and conditions.stand:
            _obey(source, number, directive.group(1), directive.group(2).strip(), macros, refused)
        stands = conditions.stand and not directive
        lines.append(_expand(source, number, line, macros) if stands else "")
    if conditions.open:
        raise source.error(begun, "a condition begins here that no #endif ends")
    return forget_members(spell_out("\n".join(lines)))


def _splice(match: re.Match) -> str:
    """Lines continued with a backslash as one, then as many empty ones: what follows keeps its numbers."""
    text = match.group()
    return text.replace("\\\n", "") + "\n" * text.count("\\\n")


def _blank_comment(match: re.Match) -> str:
    text = match.group()
    if text.startswith(("//", "/*")):
        return re.sub(r"[^\n]", " ", text)
    return re.sub(r"[(){}\[\];]", " ", text)  # brackets in a text are no brackets of C


def _obey(
    source: Source, line: int, word: str, rest: str, macros: dict[str, str | Template], refused: dict[str, Exception]
) -> None:
    if word == "include":
        if not _INCLUDES.fullmatch(rest):
            raise source.error(line, f"#include {rest} cannot be followed; put the functions into `helpers`")
    elif word == "define":
        macro = _MACRO.fullmatch(rest)
        if not macro:
            raise source.error(line, f"#define {rest} has no name")
        name, takes_arguments, rest_of_it = macro.groups()
        refused.pop(name, None)
        if not takes_arguments:
            macros[name] = rest_of_it.strip()
            return
        # Raised where the name is left over in the text in use, as all calls that can be read are replaced.
        rule = "takes arguments: it must be a formula without #, and each use be one line with all of them"
        refused[name] = source.error(line, f"#define {rest} {rule}; write a static inline function instead")
        template = Template.read(name, "(" + rest_of_it)
        macros.pop(name, None)
        if template:
            macros[name] = template
    elif word == "undef":
        macros.pop(rest, None)
        refused.pop(rest, None)
    elif word not in ("pragma", ""):
        raise source.error(
            line, f"#{word} is not read here; #define of constants, #if and #include of PETSc's headers are"
        )


def _expand(source: Source, number: int, line: str, macros: dict[str, str | Template]) -> str:
    try:
        return expand(line, macros)
    except Endless as error:
        raise source.error(number, f"a #define {error}") from None


def forget_members(text: str) -> str:
    """Preprocessed `text` with `typedef struct { … } T;` as `typedef struct T_ T;`; all lines keep their numbers."""
    return _STRUCTURE.sub(_name_alone, text)


def _name_alone(match: re.Match) -> str:
    typedef, tag, name = match.groups()
    if bool(typedef) != bool(name) or not (tag or name):
        return match.group()
    short = f"typedef struct {tag or name + '_'} {name};" if typedef else f"struct {tag};"
    return short + "\n" * match.group().count("\n")


def spell_out(text: str) -> str:
    """Preprocessed `text` with `enum { A, B = 4 };` as `static const int A = 0; …`; all lines keep their numbers."""
    return _ENUMERATION.sub(_constants, text)


def _constants(match: re.Match) -> str:
    entries = match.group(1).split(",")
    if not entries[-1].strip():
        entries.pop()
    parts, value = [match.string[match.start() : match.start(1)].count("\n") * "\n"], "0"
    for entry in entries:
        found = _ENUMERATOR.match(entry)
        if not found:
            return match.group()
        given = (found.group(3) or value).strip()
        parts.append(f"{found.group(1)}static const int {found.group(2)} = {given};")
        value = str(int(given) + 1) if given.isdecimal() else f"{found.group(2)} + 1"
    text = "".join(parts)
    return text + "\n" * (match.group().count("\n") - text.count("\n"))
