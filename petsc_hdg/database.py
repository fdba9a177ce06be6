"""PETSc's own options, as far as this package follows them: numbers, truths, and defaults for a while; fields of a
dataclass as options.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import field
from numbers import Integral, Real

import numpy as np

from .errors import OptionError
from .value_checks import shown

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


def given_numbers(prefix: str, name: str, default: tuple, least: float | None = None) -> tuple:
    """What PETSc's option `name` says: as many numbers as `default`, of its types, none below `least`.

    Raises OptionError.
    """
    text = _said(prefix, name)
    if text is None:
        return default
    try:
        values = tuple(type(number)(part) for number, part in zip(default, text.split(","), strict=True))
    except ValueError:
        values = ()
    if not values or (least is not None and not all(value >= least for value in values)):
        kind = "whole number" if isinstance(default[0], int) else "number"
        wanted = f"{len(default)} {kind}s with commas and no blanks" if len(default) > 1 else f"one {kind}"
        bound = f", not below {least:g}" if least is not None else ""
        raise OptionError(f"-{prefix}{name} is '{text}'; it takes {wanted}{bound}.")
    return values


def given_truth(prefix: str, name: str, default: bool) -> bool:
    """What PETSc's option `name` says, true or false. Raises OptionError."""
    text = _said(prefix, name)
    value = default if text is None else truth(text)
    if value is None:
        raise OptionError(f"-{prefix}{name} is '{text}'; it takes true or false.")
    return value


def given_text(prefix: str, name: str, default: str) -> str:
    """What PETSc's option `name` says, word for word."""
    text = _said(prefix, name)
    return default if text is None else text


def is_given(prefix: str, name: str) -> bool:
    """Whether the user gives PETSc's option `name`."""
    return _said(prefix, name) is not None


def _said(prefix: str, name: str) -> str | None:
    """The text of PETSc's option `name`, None where it is not given."""
    from petsc4py import PETSc

    database = PETSc.Options(prefix)
    return database.getString(name, "") if database.hasName(name) else None


def any_given(prefix: str, part: str) -> bool:
    """Whether an option is given whose name begins with a prefix and has this part behind it."""
    from petsc4py import PETSc

    return any(name.startswith(prefix) and part in name[len(prefix) :] for name in PETSc.Options().getAll())


@contextmanager
def defaults_in_database(prefix: str, options: dict[str, str], unless: str):
    """PETSc options under a prefix for the time of the block, those that the user does not give himself.

    unless: name of an option that, if the user gives it, leaves the database as it is.
    """
    from petsc4py import PETSc

    database = PETSc.Options(prefix)
    added = [] if database.hasName(unless) else [name for name in options if not database.hasName(name)]
    for name in added:
        database[name] = options[name]
    try:
        yield
    finally:
        for name in added:
            database.delValue(name)


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
        by_field = "; fe.Field(components, degree_offset=-1) is a field of lower degree" * isinstance(value, Mapping)
        raise OptionError(f"{name}: give {words}{by_field if f.name == 'degree' else ''}")
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
