"""One function of a C file, with what it needs of the file: the rest may be C that a physics cannot have."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z_]\w*")
_TYPE = re.compile(r"\s*(typedef\b|(struct|union|enum)\b[^()=;]*\{)")
_TYPE_NAME = re.compile(r"([A-Za-z_]\w*)\s*;\s*$")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*(?:\(|\[|=|;)")


def extract(text: str, function: str) -> str | None:
    """Preprocessed `text` with all but `function` and what it mentions made blank; None if it is not there."""
    pieces = _pieces(text)
    named = {name: piece for piece in pieces if (name := _name(text[slice(*piece)])) is not None}
    if function not in named:
        return None
    needed, stack = set(), [function]
    while stack:
        name = stack.pop()
        if name not in needed:
            needed.add(name)
            stack += [word for word in _WORD.findall(text[slice(*named[name])]) if word in named]
    kept = {named[name] for name in needed}
    parts = [text[slice(*piece)] if piece in kept else re.sub(r"[^\n]", " ", text[slice(*piece)]) for piece in pieces]
    return "".join(parts)


def function_names(text: str) -> list[str]:
    """Names of the functions that preprocessed `text` defines."""
    whole = [text[slice(*piece)] for piece in _pieces(text)]
    return [name for part in whole if "{" in part and "=" not in part.split("{")[0] and (name := _name(part))]


def is_never_changed(text: str, name: str) -> bool:
    """True if nothing in a C file's `text` writes to the variable `name` outside all functions, but its declaration."""
    writes = rf"&\s*{name}\b|(\+\+|--)\s*{name}\b|\b{name}\b(\s*\[[^]]*\])*\s*(=(?!=)|[-+*/%&|^]=|\+\+|--)"
    is_array = re.search(rf"\b{name}\s*\[", text)
    is_passed = is_array and re.search(rf"\b{name}\b(?!\s*\[)", text)
    return len(re.findall(writes, text)) == 1 and not is_passed


def _pieces(text: str) -> list[tuple[int, int]]:
    """(start, end) of each declaration or function at file scope; together they are the whole text."""
    pieces, start, depth, body = [], 0, 0, False
    for position, character in enumerate(text):
        if character == "{":
            body = body or (depth == 0 and text[start:position].rstrip().endswith(")"))
            depth += 1
        elif character == "}":
            depth -= 1
        if depth == 0 and (character == ";" or (character == "}" and body)):
            pieces.append((start, position + 1))
            start, body = position + 1, False
    return [*pieces, (start, len(text))]


def _name(piece: str) -> str | None:
    """Name that a piece defines: of a function with a body, a constant or a type; None for others."""
    if _TYPE.match(piece):
        named = _TYPE_NAME.search(piece)  # not its members
        return named.group(1) if named else None
    match = _NAME.search(piece.split("{")[0] if "(" in piece.split("{")[0] else piece)
    prototype = "{" not in piece and "=" not in piece
    return None if match is None or prototype else match.group(1)
