"""Fields of a dataclass as options: what a value may be, and how its text is read."""

from __future__ import annotations

import os
from dataclasses import field
from numbers import Integral, Real

import numpy as np

from ..errors import OptionError
from ..value_checks import shown

SCHEME_PREFIXES = ("hdg_", "sipg_", "poly_", "cg_")
_TRUE = ("1", "true", "yes", "on", "")
_FALSE = ("0", "false", "no", "off")
# Of each type of default what is accepted, and in words.
KINDS = {
    bool: (bool | np.bool_, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str | os.PathLike, "a text"),
}


def option(default, help, choices=None, minimum=None, maximum=None, check=None):
    """A dataclass field that carries what the database parser and `-help` need.

    minimum, maximum  range of a number; whole numbers may have these values, others lie between them
    check             function of a value that says what is wrong with it, or None
    """
    data = {"help": help, "choices": choices, "minimum": minimum, "maximum": maximum, "check": check}
    return field(default=default, metadata=data)


def option_name(f) -> str:
    """Name of a field's option, without the object's prefix."""
    return f.name if f.name.startswith(SCHEME_PREFIXES) else f"fe_{f.name}"


def truth(text: str) -> bool | None:
    """What a text says as PETSc takes it: an option without a value is true. None for any other text."""
    return True if text.lower() in _TRUE else False if text.lower() in _FALSE else None


def is_number(text) -> bool:
    """Whether an option's text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def parse(f, prefix: str, text: str):
    """The value of a field that a text gives. Raises OptionError."""
    name = f"-{prefix}{option_name(f)}"
    if isinstance(f.default, bool):
        value = truth(text)
        if value is None:
            raise OptionError(f"{name} {text}: give true or false")
        return value
    for kind, words in ((int, "a whole number"), (float, "a number")):
        if isinstance(f.default, kind):
            try:
                return kind(text)
            except ValueError:
                raise OptionError(f"{name} {text}: give {words}") from None
    return text


def check(f, prefix: str, value) -> None:
    """Raise OptionError for a value outside what a field accepts."""
    name = f"-{prefix}{option_name(f)} {value if isinstance(value, str) else shown(value)}"
    kind = next(kind for kind in KINDS if isinstance(f.default, kind))
    accepted, words = KINDS[kind]
    if not isinstance(value, accepted) or (kind is not bool and isinstance(value, bool)):
        raise OptionError(f"{name}: give {words}")
    choices, low, high, check = (f.metadata[key] for key in ("choices", "minimum", "maximum", "check"))
    if choices and value not in choices:
        raise OptionError(f"{name}: not known; valid are {', '.join(choices)}")
    if isinstance(f.default, float) and not low < value < high:
        raise OptionError(f"{name}: give a number between {low} and {high}")
    if isinstance(f.default, int) and low is not None and not low <= value <= high:
        raise OptionError(f"{name}: give a whole number from {low} to {high}")
    fault = check(value) if check else None
    if fault:
        raise OptionError(f"{name}: {fault}")
