"""C text of sizes and tables: macros, and `__constant` arrays in hexadecimal floats, which lose no digit.

Tables too large for a device's constant memory become one buffer, and macros that point into it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from petsc_hdg.errors import DeviceError

REAL_BYTES = {"double": 8, "single": 4}
REAL_TYPE = {"double": np.float64, "single": np.float32}
CONSTANT_BYTES = 48 * 1024  # devices have 64 KiB at least; the rest is left to small tables and the compiler
SCATTERED_BYTES = 2560  # larger tables are faster in global memory where threads read different entries (on an H100)


def literal(value: float, precision: str) -> str:
    """C literal with exactly the value of `value` rounded to `precision`."""
    rounded = float(REAL_TYPE[precision](value))
    if not math.isfinite(rounded):
        raise DeviceError(f"the value {value} cannot be written into a {precision}-precision kernel: it must be finite")
    return rounded.hex() + ("f" if precision == "single" else "")


def macro_text(name: str, value: float | str, precision: str) -> str:
    """One `#define`; numbers in parentheses, text as it is."""
    if isinstance(value, (bool, int, np.integer)):
        return f"#define {name} ({int(value)})"
    if isinstance(value, (float, np.floating)):
        return f"#define {name} ({literal(value, precision)})"
    if isinstance(value, str):
        return f"#define {name} {value}"
    raise DeviceError(f"macro {name} is a {type(value).__name__}; it must be a number or a text")


def table_text(name: str, table: np.ndarray, precision: str) -> str:
    """A flat `__constant` array holding `table` row by row: `real` for floats, `int` for integers."""
    table = np.asarray(table)
    if table.dtype.kind == "f":
        kind, values = "real", [literal(value, precision) for value in table.ravel()]
    elif table.dtype.kind in "iub":
        kind, values = "int", [str(int(value)) for value in table.ravel()]
    else:
        raise DeviceError(f"table {name} has type {table.dtype}; it must hold floats or integers")
    values = values or ["0"]
    lines = [", ".join(values[start : start + 8]) for start in range(0, len(values), 8)]
    return f"__constant {kind} {name}[{len(values)}] = {{\n" + ",\n".join(lines) + "};"


def table_bytes(tables: Mapping[str, np.ndarray], precision: str) -> int:
    """Bytes of constant memory that `tables` take on a device."""
    return sum(np.size(t) * (REAL_BYTES[precision] if np.asarray(t).dtype.kind == "f" else 4) for t in tables.values())


def preamble_text(macros: Mapping[str, int | float | str], tables: Mapping[str, np.ndarray], precision: str) -> str:
    """Macros, then tables, in the order given."""
    lines = [macro_text(name, value, precision) for name, value in macros.items()]
    lines += [table_text(name, table, precision) for name, table in tables.items()]
    return "\n".join(lines) + "\n"


def place_tables(
    tables: dict, real_bytes: int, most: int = CONSTANT_BYTES
) -> tuple[dict[str, np.ndarray], dict[str, str], np.ndarray]:
    """Tables that stay constants (integers, and up to `most` bytes of reals); macros TABLE, the address space of the
    others, and their names, which point into a buffer; that buffer [entry], the others laid end to end (or empty)."""
    real = {name: np.asarray(t, dtype=float) for name, t in tables.items() if np.asarray(t).dtype.kind == "f"}
    if real_bytes * sum(t.size for t in real.values()) <= most:
        return tables, {"TABLE": "__constant"}, np.zeros(0)
    macros, offset = {"TABLE": "__global"}, 0
    for name, table in real.items():
        macros[name] = f"(tables + {offset})"
        offset += table.size
    rest = {name: t for name, t in tables.items() if name not in real}
    return rest, macros, np.concatenate([t.ravel() for t in real.values()])
