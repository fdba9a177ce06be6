"""A kernel as pure data: its text, its sizes and its launch shape, without a device."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

import numpy as np

from petsc_hdg.codegen.library import kernel_text, needed_names
from petsc_hdg.codegen.preamble import REAL_BYTES, preamble_text, table_bytes
from petsc_hdg.codegen.signature import Argument, prototype
from petsc_hdg.errors import DeviceError

_COMMON = "common.clh"
_PETSC = "petsc.clh"
_DIGESTS: dict[tuple, str] = {}  # of programs without tables, whose texts take long to lay end to end


@dataclass(frozen=True)
class Launch:
    """Shape of a launch: `items` work-items do `cells` cells, or facets, rows, patches.

    row     argument with the length of a row of padded cells, all of which are gone through; "": the cells alone
    """

    cells: int = 1
    items: int = 1
    row: str = ""

    def work_items(self, count: int) -> int:
        """Work-items for `count` cells."""
        return -(-count // self.cells) * self.items


@dataclass(frozen=True, eq=False)
class KernelSpec:
    """One kernel of a program.

    The program is common.clh, petsc.clh and the physics, then the macros and tables, then the source files: the
    user's text stands before the macros, so that a variable in it cannot collide with one of them.
    Specs that differ in `name`, in how they are launched and in `table_buffer` alone share one program, compiled once.

    name        kernel function in the program
    sources     file names in kernels_cl, laid end to end
    macros      name -> number or text
    tables      name -> array, flat and row-major in the program (`__constant real` or `__constant int`)
    physics     text of `Physics.device_source`, or ""
    precision   "double" or "single"
    local_size  work-items of a work-group
    local_bytes local memory of a work-group
    arguments   of the kernel; its file takes them as the macro ARGUMENTS
    launch      how work-items share the cells
    rows        of the result [rows, stride], where only the spec tells
    is_optimized  whether the compiler is to optimize
    table_buffer  tables too large for constant memory laid end to end, for the argument `tables`; empty: none
    """

    name: str
    sources: tuple[str, ...]
    macros: Mapping[str, int | float | str] = field(default_factory=dict)
    tables: Mapping[str, np.ndarray] = field(default_factory=dict)
    physics: str = ""
    precision: str = "double"
    local_size: int = 64
    local_bytes: int = 0
    arguments: tuple[Argument, ...] = ()
    launch: Launch = Launch()
    rows: int = 0
    is_optimized: bool = True
    table_buffer: np.ndarray = field(default_factory=partial(np.zeros, 0))

    @property
    def real_bytes(self) -> int:
        """Bytes of one `real`."""
        return REAL_BYTES[self.precision]

    @property
    def constant_bytes(self) -> int:
        """Bytes of constant memory the tables take."""
        return table_bytes(self.tables, self.precision)

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of the program text and the precision it is built with."""
        if self.tables:
            return _digest(self.program_source())
        key = self.sources, repr(self.macros), self.arguments, self.physics, self.precision  # 1 and 1.0 are other texts
        if key not in _DIGESTS:
            _DIGESTS[key] = _digest(self.program_source())
        return _DIGESTS[key]

    def program_source(self) -> str:
        """The whole program; raises DeviceError if a source needs a name that nothing provides."""
        return self._source

    @cached_property
    def _source(self) -> str:
        parts = [f"#define REAL_BYTES {self.real_bytes}\n", _located(_COMMON, kernel_text(_COMMON))]
        macros = {"ARGUMENTS": prototype(self.arguments), **self.macros} if self.arguments else self.macros
        provided = {"REAL_BYTES", *_names(kernel_text(_COMMON)), *macros, *self.tables}
        if self.physics:
            parts += [_located(_PETSC, kernel_text(_PETSC)), _located("physics", self.physics)]
            provided |= _names(kernel_text(_PETSC)) | _names(self.physics)
        parts.append(_located("sizes", preamble_text(macros, self.tables, self.precision)))
        for source in self.sources:
            text = kernel_text(source)
            self._check_needs(source, text, provided)
            parts.append(_located(source, text))
            provided |= _names(text)
        return "".join(parts)

    def _check_needs(self, source: str, text: str, provided: set[str]) -> None:
        needs = needed_names(text)
        if needs is None:
            raise DeviceError(
                f"kernel file {source} has no '// needs:' line in its header comment; write '// needs: none' if so"
            )
        missing = [name for name in needs if name not in provided]
        if missing:
            raise DeviceError(
                f"kernel '{self.name}': {source} needs {', '.join(missing)}, which the spec does not provide"
            )


def in_roles(file: str, *roles: str) -> tuple[str, ...]:
    """Sources that lay a kernel file once for each role, "residual" and "action" if none is given; others: "matrix",
    "transposed"."""
    roles = roles or ("residual", "action")
    return tuple(source for role in roles for source in ("role.clh", f"role_{role}.clh", file))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=256)
def _names(text: str) -> frozenset[str]:
    """Identifiers in a text outside of its comments."""
    return frozenset(re.findall(r"[A-Za-z_]\w*", re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)))


def _located(name: str, text: str) -> str:
    """`text` under a #line directive, so that compiler messages name `name` and its own line numbers."""
    return f'#line 1 "{name}"\n{text}' + ("" if text.endswith("\n") else "\n")
