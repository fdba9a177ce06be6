"""Vectors that PETSc hands to callbacks, compared with what is worked on: a vector of another size would be written
beyond its end."""

from __future__ import annotations

from ..errors import SolveError
from ..value_checks import plural


def require_sizes(who: str, wanted: tuple[int, int], vectors, remedy: str) -> None:
    """Raise SolveError unless vectors (or None) have the sizes wanted, this rank's and that of all ranks. Local."""
    for vector in vectors:
        if vector is None or (found := vector.getSizes()) == wanted:
            continue
        here = "" if found[1] != wanted[1] else f" ({wanted[0]} and {found[0]} of them on this rank)"
        raise SolveError(
            f"{who} has vectors of {plural(wanted[1], 'entry', 'entries')}, and one of {found[1]} was "
            f"given{here}: {remedy}"
        )
