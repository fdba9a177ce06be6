"""The user's text of one pointwise function, from whatever it was given as: text, file, numbers or sympy."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path

from petsc_hdg.errors import PhysicsError

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STATEMENT = re.compile(r"[;{]|(?<![=<>!])=(?!=)")  # =, but not ==, <=, >= and !=


@dataclass(frozen=True)
class CFile:
    """One function of a C file that holds several: `CFile("ex12.c", "f1_u")`. The others may serve as its helpers.

    Several names are called in turn, as PetscWeakForm does: each finds in f0 or f1 what those before it left there.
    """

    path: str | Path
    function: str | Sequence[str]


def is_expression(given) -> bool:
    """Return True if `given` is a text of one expression in C, such as "kappa*u_x[d]", and not of statements."""
    return isinstance(given, str) and not _STATEMENT.search(_COMMENT.sub("", given))


def has_text(given) -> bool:
    """Return True for a text, and for a list or a tuple, also of others, that holds one."""
    return isinstance(given, str) or (isinstance(given, (list, tuple)) and any(map(has_text, given)))


@dataclass(frozen=True)
class Source:
    """Text of one pointwise function.

    physics   name of the physics
    slot      what it is: f1, f0[pressure], g of Dirichlet 'wall'
    text      C, as the user wrote it
    file      where it was read from, or ""
    function  name of the function to take, or ""
    written   whether the user wrote the text (it comes from expressions otherwise, and its lines mean nothing to the
    user)
    opening   what stands before the text where it is an expression, to make statements of it
    closing   what stands after it
    entries   number of entries of a flux in a list, one of each component and direction; 0 of other texts
    """

    physics: str
    slot: str
    text: str
    file: str = ""
    function: str = ""
    written: bool = True
    opening: str = ""
    closing: str = ""
    entries: int = 0

    @property
    def where(self) -> str:
        """The start of every message about this text."""
        return f"physics '{self.physics}', {self.slot}" + (f" ({self.file})" if self.file else "")

    def error(self, line: int | None, message: str) -> PhysicsError:
        """An error that names this text and, where known, a line of it."""
        one_line = bool(self.opening) and "\n" not in self.text
        place = f", line {line}" if line and self.written and not one_line else ""
        return PhysicsError(f"{self.where}{place}: {message}")


def make_source(
    physics: str, slot: str, given, output: str, components: int, shape: tuple, taken=frozenset()
) -> Source:
    """The Source of `given`; numbers and expressions become assignments to `output`, which has `shape` [component, …].

    An expression in C may use the numbers c of the component and d of the direction, see `numbered`.
    """
    source = Source(physics, slot, "")
    if isinstance(given, CFile):
        text, names = _read(source, Path(given.path)), given.function
        if not isinstance(names, str):
            text, names = _in_turn(text, tuple(names))
        return Source(physics, slot, text, str(given.path), names)
    if has_text(given) and not isinstance(given, str):
        lines = _listed(source, given, output, components, shape)
        return Source(physics, slot, "\n".join(lines), written=False, entries=len(lines) * (len(shape) == 2))
    if is_expression(given):
        text, c, d = numbered(_checked(source, given), taken)
        loops, entry = f"for ({c} = 0; {c} < {components}; ++{c}) ", c
        if len(shape) == 2:
            loops, entry = f"{loops}for ({d} = 0; {d} < dim; ++{d}) ", f"{c}*dim + {d}"
        return Source(physics, slot, text, opening=f"{loops}{output}[{entry}] = (", closing="\n);")
    if isinstance(given, Path):
        return Source(physics, slot, _read(source, given), str(given))
    if isinstance(given, str):
        return Source(physics, slot, _checked(source, given))
    if _is_number(given) or (
        isinstance(given, (list, tuple)) and shape == (len(given),) and all(map(_is_finite, given))
    ):
        entries = [given] * components if _is_number(given) else given
        lines = [f"{output}[{number}] = {float(entry)!r};" for number, entry in enumerate(entries)]
        return Source(physics, slot, "\n".join(lines), written=False)
    is_sequence = isinstance(given, Sequence) or hasattr(given, "__array__")
    is_symbolic = hasattr(given, "free_symbols") or (is_sequence and not isinstance(given, (bytes, Mapping)))
    if is_symbolic or (callable(given) and len(shape) == 1):
        from petsc_hdg.physics.symbolic import array_code, expressions  # loads sympy, which takes a while

        found = given if is_symbolic else expressions(source, given, components)
        text, entries = array_code(source, found, output, shape)
        return Source(physics, slot, text, written=False, entries=entries * (len(shape) == 2))
    raise source.error(
        None,
        f"is a {type(given).__name__}; give C text, a pathlib.Path of a C file, numbers, sympy expressions, or a "
        "function of x or of x and t",
    )


def _listed(source: Source, given, output: str, components: int, shape: tuple) -> list[str]:
    """Assignments to `output` of expressions in C and numbers in a list, or in a list per component."""
    rows = given if len(shape) == 2 and components > 1 else [given]
    entries = [entry for row in rows for entry in (row if isinstance(row, (list, tuple)) else [row])]
    wrong = [entry for entry in entries if not (is_expression(entry) or _is_finite(entry))]
    if wrong:
        what = (
            "; it is one expression in C, or a number" if isinstance(wrong[0], str) else "; beside texts give numbers"
        )
        raise source.error(None, f"holds {wrong[0]!r}{what}")
    count = len(entries)
    if count % components or count // components not in ((1,) if len(shape) == 1 else (1, 2, 3)):
        wanted = f"{components}" + " × dim" * (len(shape) == 2)
        raise source.error(None, f"is a list of {count} entries; give {wanted}, or one expression for all")
    texts = [_checked(source, entry) if isinstance(entry, str) else repr(float(entry)) for entry in entries]
    return [f"{output}[{number}] = ({text}\n);" for number, text in enumerate(texts)]


def numbered(text: str, taken) -> tuple[str, str, str]:
    """An expression, and the names in it of the numbers of the component and the direction: c and d. Those of these
    names that are `taken` mean the numbers within [ ] alone, and are called c_ and d_ there."""
    names = [f"{name}_" if name in taken else name for name in "cd"]
    for name in {"c", "d"}.intersection(taken):
        text = _renamed_in_brackets(text, name)
    return text, *names


def _renamed_in_brackets(text: str, name: str) -> str:
    """C text whose `name` is called `name_` within [ ]."""
    depth = 0

    def renamed(found) -> str:
        nonlocal depth
        depth += {"[": 1, "]": -1}.get(found[0], 0)
        return f"{name}_" if found[0] == name and depth else found[0]

    return re.sub(rf"//[^\n]*|/\*.*?\*/|[][]|\b{name}\b", renamed, text, flags=re.DOTALL)


def _in_turn(text: str, names: tuple[str, ...]) -> tuple[str, str]:
    """A C file's `text` with one more function, which calls `names` in turn, and its name."""
    found = [re.search(rf"\b{name}\s*\(([^(){{}};]*)\)\s*\{{", text) for name in names]
    if len(names) == 1 or None in found:
        return text, names[found.index(None) if None in found else 0]
    parameters, whole = found[0].group(1), "_then_".join(names)
    given = ", ".join(re.findall(r"(\w+)\s*(?:\[[^]]*\]\s*)*(?:,|\Z)", parameters.strip()))
    calls = " ".join(f"{name}({given});" for name in names)
    return f"{text}\nstatic void {whole}({parameters}) {{ {calls} }}\n", whole


def _is_number(given) -> bool:
    return isinstance(given, Real) and not isinstance(given, bool)


def _is_finite(given) -> bool:
    return _is_number(given) and math.isfinite(given)


def _read(source: Source, path: Path) -> str:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise source.error(None, f"the file {path} cannot be read ({reason}); give the path of a C file") from error
    return _checked(source, text)


def _checked(source: Source, text: str) -> str:
    if not _COMMENT.sub("", text).strip():
        raise source.error(None, "the text is empty; leave the function out (None) if it is zero")
    return text
