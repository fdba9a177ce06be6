"""Trace products of small meshes: microseconds with dense and with symmetric blocks, as `-hdg_trace_mat auto` weighs.

    python benchmarks/small_traces.py [-fe_device gpu] [-cells 3e3 1e4 …] [-json FILE]

Boxes of about so many cells, moved at random, on one device; the values of the matrices are random.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from bench.trace import TraceCopies, product_seconds

from petsc_hdg.device import Arrays, Device

CASES = (  # cell, its shape in a box's one, components, degrees
    ("triangle", 2, 1, (1, 2, 3, 5, 8)),
    ("triangle", 2, 4, (1, 3, 5)),
    ("tetrahedron", 6, 1, (1, 2, 3)),
    ("quadrilateral", 1, 1, (2, 4)),
    ("hexahedron", 1, 1, (1, 2)),
)
TILE = {2: 128, 3: 16}  # most cells a side of the tile that larger meshes repeat
REPEATS = 15


def row(arrays: Arrays, cell: str, parts: int, components: int, degree: int, cells: float) -> dict:
    dim = 2 if cell in ("triangle", "quadrilateral") else 3
    side = min(TILE[dim], max(2, round((cells / parts) ** (1 / dim))))
    copies = max(1, round(cells / (parts * side**dim)))
    disc = TraceCopies(cell, degree, components, (side,) * dim, arrays, lambda tile: copies)
    made = {"cell": cell, "degree": degree, "components": components}
    made |= {"cells": disc.mesh.num_cells, "unknowns": disc.dofmap.num_owned}
    for kind in ("dbf", "symmetric"):
        trace, _ = disc.filled(kind, symmetric=kind == "symmetric")
        made[f"{kind} megabytes"] = trace.nbytes / 1e6
        made[f"{kind} microseconds"] = 1e6 * product_seconds(trace, disc, arrays.device, REPEATS)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("-fe_device", default="any")
    parser.add_argument("-cells", type=float, nargs="+", default=[3e3, 1e4, 3e4, 1e5, 3e5])
    parser.add_argument("-json", type=Path, default=None)
    given, rows = parser.parse_args(), []
    arrays = Arrays(Device.select(given.fe_device), "double")
    for cell, parts, components, degrees in CASES:
        for degree in degrees:
            for cells in given.cells:
                rows.append(row(arrays, cell, parts, components, degree, cells))
                print(*(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in rows[-1].items()), sep=", ")
                if given.json:
                    given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
