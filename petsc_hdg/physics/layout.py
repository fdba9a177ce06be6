"""Fields of a physics and their places in the arrays of all components."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.tree.specialise import Setting

_IDENTIFIER = re.compile(r"[A-Za-z]\w*\Z")
SPACES = ("cell", "nodal")


@dataclass(frozen=True)
class Field:
    """A field to solve for.

    components     numbers at a point
    degree_offset  its polynomial degree less that of the discretization (-1 for a Taylor-Hood pressure)
    name, offset   set by Physics: its name and the number of its first component
    """

    components: int = 1
    degree_offset: int = 0
    name: str = ""
    offset: int = 0


@dataclass(frozen=True)
class Auxiliary:
    """A given field: `space` is "cell" (one value a cell) or "nodal" (in the solution's space)."""

    components: int = 1
    space: str = "cell"
    name: str = ""
    offset: int = 0


def make_fields(physics: str, given: Any, kind: type) -> tuple:
    """Fields of class `kind` from a mapping of names to them or to their number of components."""
    word = "field" if kind is Field else "auxiliary field"
    if not isinstance(given, Mapping):
        if isinstance(given, tuple) and not given:
            return ()
        kind_given = type(given).__name__
        raise PhysicsError(
            f"physics '{physics}': {word}s are given as a {kind_given}; give a mapping of names, e.g. {{'u': 1}}"
        )
    found, offset = [], 0
    for name, entry in given.items():
        field = kind(components=entry) if isinstance(entry, int) and not isinstance(entry, bool) else entry
        _check(physics, word, name, field, kind)
        found.append(replace(field, name=name, offset=offset))
        offset += field.components
    return tuple(found)


def _check(physics: str, word: str, name: object, field: Any, kind: Any) -> None:
    start = f"physics '{physics}': {word} '{name}'"
    if not isinstance(name, str) or not _IDENTIFIER.match(name):
        raise PhysicsError(
            f"{start} cannot be named so; a name has letters, digits and underscores and begins with a letter"
        )
    if not isinstance(field, kind):
        raise PhysicsError(
            f"{start} is a {type(field).__name__}; give its number of components or a {kind.__name__}(…)"
        )
    if not isinstance(field.components, int) or isinstance(field.components, bool) or field.components < 1:
        raise PhysicsError(f"{start} has {field.components} components; it needs an integer of at least 1")
    if kind is Auxiliary and field.space not in SPACES:
        raise PhysicsError(f"{start} has space '{field.space}'; the spaces are {', '.join(SPACES)}")


def setting(
    dim: int, fields: tuple, auxiliary: tuple, constants: int, outputs: Mapping[str, int], components: int
) -> Setting:
    """The numbers of a physics in `dim` dimensions; `outputs` gives the size of what is written, `components` is Nc."""
    u_offsets = (0, *accumulate(field.components for field in fields))
    a_offsets = (0, *accumulate(field.components for field in auxiliary))
    num_u, num_a = u_offsets[-1], a_offsets[-1]
    ints = {"dim": dim, "Nf": len(fields), "NfAux": len(auxiliary), "numConstants": constants, "Nc": components}
    arrays = {
        "uOff": u_offsets,
        "uOff_x": tuple(offset * dim for offset in u_offsets),
        "aOff": a_offsets,
        "aOff_x": tuple(offset * dim for offset in a_offsets),
    }
    sizes = {
        "u": num_u,
        "u_t": num_u,
        "u_x": num_u * dim,
        "a": num_a,
        "a_x": num_a * dim,
        "x": dim,
        "n": dim,
        "constants": constants,
        "u_in": num_u,
        "f_hat": num_u,
    }
    return Setting(ints, arrays, sizes | dict(outputs))
