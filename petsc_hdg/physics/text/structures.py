"""Structures of the user's text are names alone: pointwise functions see a context's members as named constants."""

from __future__ import annotations

import re

_STRUCTURE = re.compile(r"\b(?:(typedef)\s+)?struct\b\s*(\w*)\s*\{[^{}]*\}\s*(\w*)\s*;")


def forget_members(text: str) -> str:
    """Preprocessed `text` with `typedef struct { … } T;` as `typedef struct T_ T;`; all lines keep their numbers."""
    return _STRUCTURE.sub(_name_alone, text)


def _name_alone(match: re.Match) -> str:
    typedef, tag, name = match.groups()
    if bool(typedef) != bool(name) or not (tag or name):
        return match.group()
    short = f"typedef struct {tag or name + '_'} {name};" if typedef else f"struct {tag};"
    return short + "\n" * match.group().count("\n")
