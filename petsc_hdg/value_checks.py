"""Plain values that users give, checked where they come in; each function is local and raises `kind`."""

from __future__ import annotations

import os
import re
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .errors import OptionError, PetscHdgError

if TYPE_CHECKING:
    from mpi4py import MPI
    from petsc4py import PETSc

FilePath: TypeAlias = str | os.PathLike[str]
Comm: TypeAlias = "PETSc.Comm | MPI.Comm | None"
ADDRESS = re.compile(" at 0x[0-9a-f]+")


def shown(value) -> str:
    """A value in one short line, the same on all ranks."""
    value = value.item() if isinstance(value, np.generic) else value
    return f"{' '.join(ADDRESS.sub('', repr(value)).split()):.80}"


def plural(count, noun: str, several: str = "", text=str) -> str:
    """A number of things in words: "1 rank", "3 ranks"; `several` where that is not the noun with an s, `text` writes
    the number."""
    return f"{text(count)} {noun if count == 1 else several or noun + 's'}"


def number(what: str, value, kind: type[PetscHdgError] = OptionError) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not abs(value) <= np.finfo(float).max:
        raise kind(f"{what} is given as {shown(value)}; give a finite number.")
    return float(value)


def whole_number(what: str, value, least: int, most: int, kind: type[PetscHdgError] = OptionError) -> int:
    """A whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value <= most:
        raise kind(f"{what} is given as {shown(value)}; give a whole number, {least} to {most}.")
    return int(value)


def truth(what: str, value, kind: type[PetscHdgError] = OptionError) -> bool:
    """True or false."""
    if not isinstance(value, bool | np.bool_ | Integral) or value not in (0, 1):
        raise kind(f"{what} is given as {shown(value)}; give True or False.")
    return bool(value)


def text(what: str, value, kind: type[PetscHdgError] = OptionError) -> str:
    """A text; None is none."""
    if not isinstance(value, str | None):
        raise kind(f"{what} is given as {shown(value)}; give a text.")
    return value or ""


def path(what: str, value, kind: type[PetscHdgError] = OptionError) -> Path:
    """The path of a file."""
    if not isinstance(value, str | os.PathLike):
        raise kind(f"{what} is given as {shown(value)}; give the path of a file.")
    return Path(value)


def function(what: str, value, kind: type[PetscHdgError] = OptionError):
    """A function, or None."""
    if value is not None and not callable(value):
        raise kind(f"{what} is given as {shown(value)}; give a function, or leave it out.")
    return value


def array(what: str, value, kind: type[PetscHdgError]) -> np.ndarray:
    """What is given as an array, of whatever type."""
    try:
        return np.asarray(value)
    except ValueError:
        raise kind(f"{what} are given as rows of different lengths; give numbers or an array of them.") from None


def reals(what: str, value, kind: type[PetscHdgError]) -> np.ndarray:
    """Real numbers as an array of floats of any shape, finite or not."""
    try:
        array = np.asarray(value)
        if np.iscomplexobj(array):
            if np.any(array.imag):  # numpy would leave it out
                raise TypeError("some are complex")
            array = array.real
        return array.astype(float, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise kind(f"{what} is not made of numbers ({error}); give numbers or an array of them.") from None
