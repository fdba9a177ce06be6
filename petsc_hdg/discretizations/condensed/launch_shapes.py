"""Launch shapes of condensation: tiles of threads, matrices on warps with tensor cores, one thread per cell."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import OptionError
from ..transposition import DeviceLimits

REGISTER_ENTRIES = 110  # entries of a matrix that a GPU thread keeps in registers
PRIVATE_BYTES = 192 * 1024  # of a matrix in a CPU thread's private memory, beyond which patches are faster
GPU_THREADS = ((18, 4, 4), (52, 8, 8), (100, 8, 16), (float("inf"), 16, 16))  # rows up to, row and column threads
VECTOR, CPU_STRIP = 4, 6  # rows that a thread updates at once, twice as many on a CPU, and columns there
CPU_PATCH = (64, 60)  # rows and columns of a patch on a CPU
PANELS = ((32, 8), (16, 8), (32, 4), (16, 4), (8, 4))  # pivots at once, columns of a GPU's thread: the first that fit
MOST_POINTS = 16  # points whose blocks a GPU holds at once
LOCAL_TARGET = 16 * 1024  # bytes of local memory a GPU work-group may use for points, so that several run at once
MOST_REALS = 120  # that a thread keeps in registers
MOST_BLOCKS = 18  # blocks of four entries that a lane keeps in registers
TEAMS = {1: (4, 2, 1), 2: (4, 2, 1), 4: (2, 1), 8: (1,)}  # of a work-group to try, by the warps of a team
POINT_REALS = 32 * 24  # of local memory for the derivatives at points (HELD, HELD_REALS in condense_warp_points.cl)
PITCH = 10  # as in condense_warp.clh
CELLS = 8  # of a work-group (CELLS in condense_batch.clh)
WITH_MATRICES = ("condense", "condense_solve", "condense_given", "condense_element")  # kernels that sum a matrix
# Kernels whose matrices have all functions of a cell, not the interior ones alone.
WHOLE = ("condense", "condense_given", "condense_kept", "condense_element", "condense_shared")
WITH_BLOCKS = (*WITH_MATRICES, "condense_residual", "condense_product")  # whose points GPUs keep in global memory
LEAST_ROWS = 16  # above which sums over points pay
MOST_BYTES = 4 << 20  # of the reference matrices, which should stay in the second-level cache
MOST_TENSOR_BYTES = 1 << 18  # the same on tensor cells, whose points are few for their functions


@dataclass(frozen=True)
class TileShape:
    """size: rows, and columns without the right-hand side; threads of a cell; cells of a work-group; the tile of each
    thread; chunk: points at once; scratch: whether tiles live in global memory; unroll: whether in registers.

    With scratch: panel, pivots eliminated at once; patch, entries [row, column] updated at once; block, reals of a
    point.
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
    panel: int = 0
    patch: tuple[int, int] = (0, 0)
    block: int = 0

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
        return self.threads * self.rows_each * self.columns_each + self.chunk * self.block if self.scratch else 0

    def macros(self) -> dict[str, int | str]:
        """Macros of condense_tile.clh."""
        aligned = self.row_threads % self.components == 0
        cpu = self.threads == 1
        patches = {
            "PANEL": self.panel,
            "VECTOR": VECTOR * (1 + cpu),
            "STRIP": CPU_STRIP if cpu else self.patch[1] // self.column_threads,
            "PATCH_ROWS": self.patch[0],
            "PATCH_COLUMNS": self.patch[1],
            "BLOCK_SPACE": "__global",
        }
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
            **(patches if self.scratch else {}),
        }


def tile_shape(
    size: int, whole: int, components: int, block: int, real_bytes: int, limits: DeviceLimits, name: str, points: int
) -> TileShape:
    """Shape for matrices of `size` rows in cells of `whole` degrees of freedom, with point blocks of `block` reals.

    name: of the kernel.   points: of the cell, and of its facets, the larger number.
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
    large = entries > REGISTER_ENTRIES if limits.is_gpu else entries * real_bytes > PRIVATE_BYTES
    if large and name in (WITH_BLOCKS if limits.is_gpu else WITH_MATRICES):
        return _scratch_shape(size, whole, components, block, real_bytes, limits, name, points)
    cells = max(1, 64 // (rows * columns)) if limits.is_gpu and name == "condense" else 1
    exchange = 2 * (rows * rows_each + columns * columns_each + 1) if name in WITH_MATRICES else 0
    chunk = _chunk(exchange + _vectors(name, size, whole), whole, block, real_bytes, limits, cells, rows * columns)
    return TileShape(size, rows, columns, rows_each, columns_each, components, cells, chunk, False, limits.is_gpu)


def _scratch_shape(size, whole, components, block, real_bytes, limits, name, points) -> TileShape:
    """Shape for matrices, if the kernel has any, and blocks of all points in global memory."""
    side = (16 if limits.max_work_group >= 256 else 8) if limits.is_gpu else 1
    room = limits.local_bytes // real_bytes - _vectors(name, size, whole) - 4 * block**0.5 - 16
    patches = [(p, (VECTOR * side, strip * side) if limits.is_gpu else CPU_PATCH) for p, strip in PANELS]
    eliminates = name in WITH_MATRICES
    fitting = [
        (p, patch)
        for p, patch in patches
        if p <= min(patch) and components <= patch[1] and eliminates * p * (p + sum(patch)) <= room
    ]
    if not fitting:
        raise _too_large(whole, limits)
    panel, patch = fitting[0] if eliminates else (0, (0, 0))
    rows_each = columns_each = 0
    if eliminates:
        rows_each, columns_each = -(-size // patch[0]) * patch[0] // side, -(-(size + 1 + patch[1]) // side)
    tile = (size, side, side, rows_each, columns_each, components)
    return TileShape(*tile, 1, points, scratch=True, unroll=False, panel=panel, patch=patch, block=block)


def _vectors(name: str, size: int, whole: int) -> int:
    """Reals of the vectors that a kernel keeps in local memory."""
    if name == "condense_solve":
        return 3 * whole + size + 1
    return {"condense_product": 3, "condense_given": 1, "condense_element": 1}.get(name, 2) * whole


def _too_large(whole: int, limits: DeviceLimits) -> OptionError:
    return OptionError(
        f"the device's {limits.local_bytes} bytes of local memory do not hold a cell of {whole} degrees of "
        "freedom; lower -fe_degree"
    )


def _chunk(others, whole, block, real_bytes, limits, cells, threads) -> int:
    """Points at once: as many as there are threads, if local memory holds their blocks."""
    room = limits.local_bytes // real_bytes // cells - others - 16
    if room < 2 * block:
        raise _too_large(whole, limits)
    wanted = min(room, LOCAL_TARGET // real_bytes // cells) if limits.is_gpu else room
    return int(max(2, min(wanted // block, min(threads, MOST_POINTS) if limits.is_gpu else 8)))


@dataclass(frozen=True)
class WarpShape:
    """size: rows, and columns without the right-hand side; warps of a cell; symmetric: whether blocks below the
    diagonal are left out; functions: scalar functions of a cell; cells, and teams of warps, of a work-group. See
    condense_warp.clh.
    """

    size: int
    warps: int
    symmetric: bool
    functions: int
    cells: int = CELLS
    teams: int = 1
    scratch_entries: int = 0

    @property
    def group(self) -> int:
        """Work-items of a work-group."""
        return 32 * self.warps * self.teams

    @property
    def pairs(self) -> int:
        """Pairs of octets of rows."""
        return -(-self.size // 16)

    @property
    def column_blocks(self) -> int:
        """Octets of columns of a warp, the right-hand side included."""
        return -(-(self.size // 8 + 1) // self.warps)

    @property
    def octets(self) -> int:
        """Octets of rows or columns, whichever are more."""
        return max(2 * self.pairs, self.warps * self.column_blocks)

    @property
    def blocks(self) -> int:
        """Blocks of 16 x 8 entries that a warp keeps."""
        octets = range(1, self.column_blocks + 1)
        return sum(not self.symmetric or b * self.warps > 2 * a for a in range(self.pairs) for b in octets)

    @property
    def panel_reals(self) -> int:
        """Reals of local memory in which a team eliminates (PANEL_REALS in condense_warp.clh)."""
        columns = max(8 * self.column_blocks * self.warps, 16 * self.pairs)
        return PITCH * (columns + 16 * self.warps) + (128 * self.pairs if self.warps > 1 else 0)

    def macros(self) -> dict[str, int]:
        """Macros of condense_warp.clh and condense_batch.clh."""
        return {
            "SIZE": self.size,
            "WARPS": self.warps,
            "TEAMS": self.teams,
            "PAIRS": self.pairs,
            "COLUMN_BLOCKS": self.column_blocks,
            "SYMMETRIC": int(self.symmetric),
            "FUNCTION_PAIRS": -(-self.functions // 16),
            "GROUP": self.group,
        }


def warp_shape(
    size: int, symmetric: bool, functions: int, batch: bool, room: int, each: int = 0, points: int = POINT_REALS
) -> WarpShape | None:
    """The fewest warps whose registers hold a matrix of `size` rows, as many teams of them as fit; None: none do.

    batch: whether a work-group takes CELLS cells, else its teams take a cell each. room: reals of local memory for its
    teams, who take `each` besides what elimination and, before it, points need, `points` without a batch.
    """
    for most in (MOST_BLOCKS, 4 * MOST_BLOCKS // 3):
        for warps in (1, 2, 4, 8):
            for teams in TEAMS[warps]:
                shape = WarpShape(size, warps, symmetric, functions, CELLS if batch else teams, teams)
                team = max(shape.panel_reals, 0 if batch else points) + each
                if shape.blocks <= most and teams * team <= room:
                    return shape
    return None


@dataclass(frozen=True)
class ThreadShape:
    """size: rows of a thread's matrix, of which it holds `eliminated` columns. See condense_thread.cl."""

    size: int
    eliminated: int
    cells: int = 32
    group: int = 32
    scratch_entries: int = 0

    @property
    def reals(self) -> int:
        """Reals of a thread: columns, inverses of pivots, a column more, factors."""
        return self.size * self.eliminated + self.eliminated + self.size

    def macros(self) -> dict[str, int]:
        """Macros of condense_thread.cl."""
        return {"SIZE": self.size, "POINTS_FASTEST": 0}
