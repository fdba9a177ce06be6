"""Device text compiled as C99 with gcc and called through ctypes: the text itself is tested, without a device."""

from __future__ import annotations

import ctypes
import hashlib
import re
import subprocess
from pathlib import Path

import numpy as np

_KERNELS = Path(__file__).resolve().parents[2] / "kernels_cl"
_FLAGS = ["-std=c99", "-O1", "-Wall", "-Werror", "-ffp-contract=off", "-shared", "-fPIC"]
_OUTPUTS = {
    "pw_residual": ("f0", "f1"),
    "pw_jacobian": ("df0", "df1"),
    "pw_boundary": ("f0", "f1"),
    "pw_boundary_jacobian": ("df0", "df1"),
    "pw_dirichlet": ("g",),
    "pw_exact": ("u", "u_x"),
    "pw_stabilization": ("tau",),
    "pw_stabilization_jacobian": ("dtau",),
    "pw_boundary_flux": ("b",),
    "pw_boundary_flux_jacobian": ("db",),
}
_HEAD = "#define REAL_BYTES {bytes}\ntypedef {real} real;\n#include <stdlib.h>\n#include <tgmath.h>\n#undef I\n"


class CompiledPhysics:
    """The pw_* functions of a physics as Python callables with the interpreter's arguments and results."""

    def __init__(self, physics, dim: int, folder: Path, precision: str = "double", flags: tuple = ()):
        self.physics, self.dim, self.flags = physics, dim, flags
        self.real = np.float64 if precision == "double" else np.float32
        text = physics.device_source(dim)
        exports = re.findall(r"^static inline void (pw_\w+)\((.*?)\) \{", text, re.MULTILINE)
        self.arguments = {name: [part.split() for part in arguments.split(", ")] for name, arguments in exports}
        lines = [_HEAD.format(bytes=np.dtype(self.real).itemsize, real="double" if precision == "double" else "float")]
        lines += [(_KERNELS / "petsc.clh").read_text(), text]
        for name, arguments in exports:
            call = ", ".join(part.split()[-1].lstrip("*") for part in arguments.split(", "))
            lines.append(f"void c_{name}({arguments}) {{ {name}({call}); }}")
        self.library = self._build("\n".join(lines), folder, precision)

    def _build(self, text: str, folder: Path, precision: str):
        stem = folder / f"p{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        stem.with_suffix(".c").write_text(text)
        single = ["-fsingle-precision-constant", "-Wdouble-promotion"] if precision == "single" else []
        command = [
            "gcc",
            *_FLAGS,
            *self.flags,
            *single,
            str(stem.with_suffix(".c")),
            "-o",
            str(stem.with_suffix(".so")),
            "-lm",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return ctypes.CDLL(str(stem.with_suffix(".so")))

    def __getattr__(self, name: str):
        if not name.startswith("pw_"):
            raise AttributeError(name)
        return lambda *values: self._call(name, *values)

    def _call(self, name: str, *values):
        function, outputs = getattr(self.library, f"c_{name}"), _OUTPUTS[name]
        arguments = self.arguments[name]
        values = list(values)
        values += [None] * (len(arguments) - len(outputs) - len(values))  # constants, and a trace
        given, keep = dict(zip([part[-1].lstrip("*") for part in arguments], values, strict=False)), []
        packed = [self._pack(part, given, outputs, keep) for part in arguments]
        function(*packed)
        results = [array for key, array in keep if key in outputs and id(array) in self._made]
        return results[0] if len(results) == 1 else tuple(results)

    def _pack(self, part: list[str], given: dict, outputs: tuple, keep: list):
        key, physics, dim = part[-1].lstrip("*"), self.physics, self.dim
        components = physics.num_components
        if part[-1][0] != "*":
            scalar = (
                ctypes.c_int if part[0] == "int" else (ctypes.c_double if self.real is np.float64 else ctypes.c_float)
            )
            return scalar(given[key])
        if part[0] != "const":
            matrix = {"tau": components} if physics.has_stabilization_matrix else {}
            columns = dict.fromkeys(("f1", "df1", "u_x"), dim) | matrix | {f"d{k}": n for k, n in matrix.items()}
            array = np.full((components, columns[key]) if key in columns else components, np.nan, self.real)
            self._made = {*getattr(self, "_made", ()), id(array)}
        else:
            array = self._input(key, given[key])
        keep.append((key, array))
        return array.ctypes.data_as(ctypes.c_void_p)

    def _input(self, key: str, value) -> np.ndarray:
        if value is None:
            value = self.physics.constant_values if key == "constants" else np.zeros(64)
        return np.ascontiguousarray(value, self.real)
