"""Kernel specs of block Jacobi: diagonal blocks of cells or facets, collected, inverted, applied."""

from __future__ import annotations

import numpy as np

from ..codegen import KernelSpec, Launch

MOST_ITEMS = 256  # of a work-group that inverts a block
APPLY_GROUP = 64  # work-items that multiply by inverted blocks: of whole cells, of one where it has more
TILE, TILE_GROUP = 32, 128  # cells and entries of blocks that a work-group turns, its work-items
MOST_IN_REGISTERS = 96  # rows of a block of which each work-item has a column in registers


def block_specs(size: int, limits, precision: str, rows=None, inverse: str = "", **facets) -> dict[str, KernelSpec]:
    """Specs of `column`, `turn` (of cells), `invert` and `apply` of blocks of `size` rows.

    rows: of each degree of freedom of a cell.   inverse: the type of inverses.   facets: macros of trace_numbers.clh,
    where blocks are those of facets.
    """
    most = min(MOST_ITEMS, limits.max_work_group) if limits.is_gpu else 1
    items = next(n for n in range(min(size, most), 0, -1) if size % n == 0)
    in_registers = limits.is_gpu and 1 < size <= min(most, MOST_IN_REGISTERS)
    macros = {"NDOF": size, "GROUP": min(size, most), "ITEMS": items, "TILE": TILE, "TILE_GROUP": TILE_GROUP}
    group = APPLY_GROUP if facets else items * max(1, APPLY_GROUP // items)
    macros |= {"IN_REGISTERS": int(in_registers), "APPLY_GROUP": group}
    macros |= ({"INVERSE": inverse} if inverse else {}) | facets
    shapes = {"invert": (Launch(1, macros["GROUP"]), macros["GROUP"])}
    shapes["apply"] = Launch(1, items), macros["APPLY_GROUP"]
    if facets:
        shapes["column"] = Launch(1, size), 64
    else:
        shapes["column"] = Launch(1, size, "stride"), 64
        shapes["turn"] = Launch(TILE, TILE_GROUP * -(-(size**2) // TILE)), TILE_GROUP
    tables = {"ROW": np.asarray(range(size) if rows is None else rows, dtype=np.int32)}
    given = ("trace_numbers.clh", "cell_block.cl") if facets else ("cell_block.cl",), macros, tables, "", precision
    return {
        name: KernelSpec(f"cell_block_{name}", *given, local_size, launch=launch)
        for name, (launch, local_size) in shapes.items()
    }
