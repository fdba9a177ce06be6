"""Tables too large for a device's constant memory become one buffer, and macros that point into it."""

from __future__ import annotations

import numpy as np

CONSTANT_BYTES = 48 * 1024  # devices have 64 KiB at least; the rest is left to small tables and the compiler
SCATTERED_BYTES = 2560  # larger tables are faster in global memory where threads read different entries (on an H100)


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
