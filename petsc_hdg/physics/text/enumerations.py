"""Enumerations of the user's text become constants: pointwise functions number their fields and constants so."""

from __future__ import annotations

import re

_ENUMERATION = re.compile(r"(?:\btypedef\s+)?\benum\b\s*\w*\s*\{([^{}]*)\}\s*\w*\s*;")
_ENUMERATOR = re.compile(r"(\s*)([A-Za-z_]\w*)\s*(?:=([^,]*))?\s*\Z")


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
