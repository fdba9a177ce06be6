"""Arguments of kernels as data: their C prototype is generated, and launches bind them by name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from petsc_hdg.errors import DeviceError

_TYPE = r"(?P<type>(?:local )?(?:const )?\w+ (?:\*(?:restrict )?)?)"
_LINE = re.compile(_TYPE + r"(?P<name>\w+)(?: (?P<shape>\[.*?\]))?(?:: (?P<role>.+))?")


@dataclass(frozen=True)
class Argument:
    """One argument of a kernel.

    name    in the kernel and in launches
    type    as in C up to the name: "int ", "const real *", "real *restrict "; "local real2 *" is in local memory,
            other pointers are in global memory
    shape   of an array, slowest axis first, or ""
    role    what it is
    """

    name: str
    type: str
    shape: str = ""
    role: str = ""

    @property
    def declaration(self) -> str:
        """The argument in a prototype of OpenCL C."""
        if "*" not in self.type:
            return f"{self.type}{self.name}"
        space, kind = ("__local", self.type[6:]) if self.type.startswith("local ") else ("__global", self.type)
        return f"{space} {kind}{self.name}"


def signature(text: str) -> tuple[Argument, ...]:
    """Arguments from lines such as `int stride; const real *aux [NAUX, stride]: auxiliary rows`. Raises DeviceError."""
    found = []
    for line in filter(None, map(str.strip, text.replace(";", "\n").splitlines())):
        match = _LINE.fullmatch(line)
        if match is None:
            raise DeviceError(f"'{line}' is no argument of a kernel: write `type name [shape]: role`")
        found.append(Argument(**{key: value or "" for key, value in match.groupdict().items()}))
    return tuple(found)


def prototype(arguments: tuple[Argument, ...]) -> str:
    """The list of arguments in OpenCL C. Raises DeviceError for names that occur twice."""
    names = [argument.name for argument in arguments]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DeviceError(f"a kernel has two arguments of the name {', '.join(twice)}")
    return ", ".join(argument.declaration for argument in arguments)
