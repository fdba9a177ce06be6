"""PETSc's own options, as far as this package follows them: numbers, truths, and defaults for a while."""

from __future__ import annotations

from contextlib import contextmanager

from ..errors import OptionError
from .fields import truth


def given_numbers(prefix: str, name: str, default: tuple, least: float | None = None) -> tuple:
    """What PETSc's option `name` says: as many numbers as `default`, of its types, none below `least`.

    Raises OptionError.
    """
    from petsc4py import PETSc

    database = PETSc.Options(prefix)
    if not database.hasName(name):
        return default
    text = database.getString(name, "")
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
    from petsc4py import PETSc

    database = PETSc.Options(prefix)
    if not database.hasName(name):
        return default
    text = database.getString(name, "")
    value = truth(text)
    if value is None:
        raise OptionError(f"-{prefix}{name} is '{text}'; it takes true or false.")
    return value


def given_text(prefix: str, name: str, default: str) -> str:
    """What PETSc's option `name` says, word for word."""
    from petsc4py import PETSc

    return PETSc.Options(prefix).getString(name, default)


def is_given(prefix: str, name: str) -> bool:
    """Whether the user gives PETSc's option `name`."""
    from petsc4py import PETSc

    return PETSc.Options(prefix).hasName(name)


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
