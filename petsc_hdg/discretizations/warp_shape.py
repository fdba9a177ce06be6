"""Launch shapes of condensation by tensor cores, a matrix spread over warps, and by a thread a cell."""

from __future__ import annotations

from dataclasses import dataclass

MOST_REALS = 120  # that a thread keeps in registers
MOST_BLOCKS = 18  # blocks of four entries that a lane keeps in registers
MOST_WARPS = 8
CELLS = 8  # of a work-group (CELLS in condense_batch.clh)
MOST_BYTES = 4 << 20  # of the reference matrices, which should stay in the second-level cache


@dataclass(frozen=True)
class WarpShape:
    """size: rows, and columns without the right-hand side; warps of a work-group; symmetric: whether blocks below the
    diagonal are left out; functions: scalar functions of a cell. See condense_warp.clh.
    """

    size: int
    warps: int
    symmetric: bool
    functions: int
    cells: int = CELLS
    scratch_entries: int = 0

    @property
    def group(self) -> int:
        """Work-items of a work-group."""
        return 32 * self.warps

    @property
    def pairs(self) -> int:
        """Pairs of octets of rows."""
        return -(-self.size // 16)

    @property
    def column_blocks(self) -> int:
        """Octets of columns of a warp, the right-hand side included."""
        return -(-(self.size // 8 + 1) // self.warps)

    @property
    def blocks(self) -> int:
        """Blocks of 16 x 8 entries that a warp keeps."""
        octets = range(1, self.column_blocks + 1)
        return sum(not self.symmetric or b * self.warps > 2 * a for a in range(self.pairs) for b in octets)

    def macros(self) -> dict[str, int]:
        """Macros of condense_warp.clh and condense_batch.clh."""
        return {
            "SIZE": self.size,
            "WARPS": self.warps,
            "PAIRS": self.pairs,
            "COLUMN_BLOCKS": self.column_blocks,
            "SYMMETRIC": int(self.symmetric),
            "FUNCTION_PAIRS": -(-self.functions // 16),
            "GROUP": self.group,
        }


def warp_shape(size: int, symmetric: bool, functions: int, cells: int = CELLS) -> WarpShape | None:
    """The fewest warps whose registers hold a matrix of `size` rows; None: none do."""
    for most in (MOST_BLOCKS, 4 * MOST_BLOCKS // 3):
        for warps in (1, 2, 4, 8):
            shape = WarpShape(size, warps, symmetric, functions, cells)
            if shape.blocks <= most:
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
