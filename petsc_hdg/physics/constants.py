"""Named constants: one value everywhere, or one for each of several boundaries."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.lowering import names
from petsc_hdg.value_checks import shown

ON = " on "  # "h on left" is the constant h where a text is about the boundary "left"
_NAME = re.compile(rf"(ctx->)?[A-Za-z]\w*(\[\d+\])?({ON}.+)?\Z", re.DOTALL)  # or a member of a context, or its element


def check_constants(physics: str, given, above: Mapping[str, float]) -> dict[str, float]:
    """Named constants as finite floats, those in `above` larger than their numbers there; those of boundaries, which
    numbers in texts do not count, come last."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise PhysicsError(
            f"physics '{physics}': constants are given as a {type(given).__name__}; give a mapping of names to numbers"
        )
    checked = {}
    for name, value in _by_name(physics, given):
        if not isinstance(name, str) or not _NAME.match(name):
            raise PhysicsError(
                f"physics '{physics}': a constant cannot be called '{name}'; use letters, digits and underscores"
            )
        if name.partition(ON)[0] in names.RESERVED:
            name = name.partition(ON)[0]
            message = f"a constant cannot be called '{name}', which has a meaning in a physics; rename it, or give a "
            message += f"member of the context as 'ctx->{name}'"
            raise PhysicsError(f"physics '{physics}': {message}")
        try:
            checked[name] = float(value)
        except (TypeError, ValueError, OverflowError):
            raise PhysicsError(f"physics '{physics}': constant '{name}' is {value!r}; give a number") from None
        if not math.isfinite(checked[name]):
            raise PhysicsError(f"physics '{physics}': constant '{name}' is {value}; give a finite number")
        if not checked[name] > (bound := above.get(name.partition(ON)[0], -math.inf)):
            raise PhysicsError(f"physics '{physics}': constant '{name}' is {value}; give a number above {bound:g}")
    return dict(sorted(checked.items(), key=lambda entry: ON in entry[0]))


def _by_name(physics: str, given: Mapping) -> Iterable[tuple[object, object]]:
    """Names and values, with a mapping of boundaries to values spelt out."""
    for name, value in given.items():
        if not isinstance(value, Mapping):
            yield name, value
            continue
        if not value or not all(isinstance(label, str) and label for label in value):
            raise PhysicsError(
                f"physics '{physics}': constant '{name}' is {shown(dict(value))}; give a number, or a dict of names of "
                "boundaries to numbers"
            )
        for label, number in value.items():
            yield f"{name}{ON}{label}", number


def spread(known: Iterable[str], given: Mapping) -> dict:
    """Changes of constants, with a number for one that has values by boundary as the value on each of them."""
    found: dict = {}
    for name, value in given.items():
        is_plain = name in known or isinstance(value, Mapping)
        places = [] if is_plain else [one for one in known if one.startswith(f"{name}{ON}")]
        found |= dict.fromkeys(places, value) or {name: value}
    return found


def boundaries(known: Iterable[str]) -> list[str]:
    """Names of the boundaries that constants have values on."""
    return list(dict.fromkeys(name.partition(ON)[2] for name in known if ON in name))


def numbers(known: Iterable[str], label: str | None = None) -> dict[str, int]:
    """Numbers of the constants by the names that a text about the boundary `label` (None: about none) calls them."""
    every = {name: number for number, name in enumerate(known)}
    split = [(*name.partition(ON)[::2], number) for name, number in every.items()]
    return every | {name: number for name, place, number in split if label and place == label}
