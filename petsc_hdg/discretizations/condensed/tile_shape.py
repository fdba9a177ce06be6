"""Launch shape of condensation: how a cell's matrix is spread over threads, and how many points are held at once."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import OptionError
from ..transposition import DeviceLimits

REGISTER_ENTRIES = 110  # entries of a matrix that a GPU thread keeps in registers
PRIVATE_BYTES = 256 * 1024  # private memory of a CPU thread that is surely there
GPU_THREADS = ((18, 4, 4), (52, 8, 8), (100, 8, 16), (float("inf"), 16, 16))  # rows up to, row and column threads
MOST_POINTS = 16  # points whose blocks a GPU holds at once
LOCAL_TARGET = 16 * 1024  # bytes of local memory a GPU work-group may use for points, so that several run at once


@dataclass(frozen=True)
class TileShape:
    """size: rows, and columns without the right-hand side; threads of a cell; cells of a work-group; the tile of each
    thread; chunk: points at once; scratch: whether tiles live in global memory; unroll: whether in registers.
    """

    size: int
    row_threads: int
    column_threads: int
    rows_each: int
    columns_each: int
    components: int
    cells: int
    chunk: int
    scratch: bool
    unroll: bool

    @property
    def threads(self) -> int:
        return self.row_threads * self.column_threads

    @property
    def group(self) -> int:
        """Work-items of a work-group."""
        return self.threads * self.cells

    @property
    def scratch_entries(self) -> int:
        """Reals of global memory a cell takes."""
        return self.threads * self.rows_each * self.columns_each if self.scratch else 0

    def macros(self) -> dict[str, int | str]:
        """Macros of condense_tile.clh."""
        aligned = self.row_threads % self.components == 0
        return {
            "SIZE": self.size,
            "THREADS": self.threads,
            "CELLS": self.cells,
            "ROW_THREADS": self.row_threads,
            "COLUMN_THREADS": self.column_threads,
            "ROWS_EACH": self.rows_each,
            "COLUMNS_EACH": self.columns_each,
            "ROW_COMPONENTS": 1 if aligned else self.components,
            "CHUNK": self.chunk,
            "SCRATCH": int(self.scratch),
            "UNROLL": '_Pragma("unroll")' if self.unroll else "",
        }


def tile_shape(
    size: int, whole: int, components: int, block: int, real_bytes: int, limits: DeviceLimits, name: str
) -> TileShape:
    """Shape for matrices of `size` rows in cells of `whole` degrees of freedom, with point blocks of `block` reals.

    Raises OptionError if a work-group of the device cannot hold what one cell needs.
    """
    if limits.is_gpu:
        side, columns = next(threads for most, *threads in GPU_THREADS if size <= most)
        rows = components * max(1, side // components)
        columns = rows * max(1, min(columns, limits.max_work_group // rows) // rows)
    else:
        rows = columns = 1
    rows_each, columns_each = -(-size // rows), -(-(size + 1) // columns)
    entries = rows_each * columns_each
    scratch = entries > REGISTER_ENTRIES if limits.is_gpu else entries * real_bytes > PRIVATE_BYTES
    cells = max(1, 64 // (rows * columns)) if limits.is_gpu and name == "condense" else 1
    exchange = 2 * (rows * rows_each + columns * columns_each + 1)
    chunk = _chunk(exchange, whole, block, real_bytes, limits, cells, rows * columns, name)
    unroll = limits.is_gpu and not scratch
    return TileShape(size, rows, columns, rows_each, columns_each, components, cells, chunk, scratch, unroll)


def _chunk(exchange, whole, block, real_bytes, limits, cells, threads, name) -> int:
    """Points at once: as many as there are threads, if local memory holds their blocks."""
    vectors = exchange + (4 if name in ("condense_solve", "condense_product") else 2) * whole
    room = limits.local_bytes // real_bytes // cells - vectors - 16
    if room < 2 * block:
        raise OptionError(
            f"the device's {limits.local_bytes} bytes of local memory do not hold a cell of {whole} degrees of "
            "freedom; lower -fe_degree"
        )
    wanted = min(room, LOCAL_TARGET // real_bytes // cells) if limits.is_gpu else room
    return int(max(2, min(wanted // block, min(threads, MOST_POINTS) if limits.is_gpu else 8)))
