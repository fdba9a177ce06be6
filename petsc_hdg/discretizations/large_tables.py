"""Tables too large for a device's constant memory become one buffer, and macros that point into it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CONSTANT_BYTES = 48 * 1024  # devices have 64 KiB at least; the rest is left to small tables and the compiler
SCATTERED_BYTES = 2560  # larger tables are faster in global memory where threads read different entries (on an H100)


@dataclass(frozen=True)
class PlacedTables:
    """macros: TABLE, and names that point into `values` [entry], the large tables laid end to end (none: empty)."""

    macros: dict[str, str]
    values: np.ndarray


def place_tables(
    tables: dict, real_bytes: int, most: int = CONSTANT_BYTES
) -> tuple[dict[str, np.ndarray], PlacedTables]:
    """Tables that stay constants (up to `most` bytes of reals), and the others. Integer tables always stay."""
    real = {name: np.asarray(t, dtype=float) for name, t in tables.items() if np.asarray(t).dtype.kind == "f"}
    if real_bytes * sum(t.size for t in real.values()) <= most:
        return tables, PlacedTables({"TABLE": "__constant"}, np.zeros(0))
    macros, offset = {"TABLE": "__global"}, 0
    for name, table in real.items():
        macros[name] = f"(tables + {offset})"
        offset += table.size
    rest = {name: t for name, t in tables.items() if name not in real}
    return rest, PlacedTables(macros, np.concatenate([t.ravel() for t in real.values()]))
