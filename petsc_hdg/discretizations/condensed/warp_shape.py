"""Launch shapes of condensation by tensor cores, a matrix spread over warps, and by one thread per cell."""

from __future__ import annotations

from dataclasses import dataclass

MOST_REALS = 120  # that a thread keeps in registers
MOST_BLOCKS = 18  # blocks of four entries that a lane keeps in registers
TEAMS = {1: (4, 2, 1), 2: (4, 2, 1), 4: (2, 1), 8: (1,)}  # of a work-group to try, by the warps of a team
POINT_REALS = 32 * 24  # of local memory for the derivatives at points (HELD, HELD_REALS in condense_warp_points.cl)
PITCH = 10  # as in condense_warp.clh
CELLS = 8  # of a work-group (CELLS in condense_batch.clh)
LEAST_ROWS = 16  # above which sums over points pay
MOST_BYTES = 4 << 20  # of the reference matrices, which should stay in the second-level cache
MOST_TENSOR_BYTES = 1 << 18  # the same on tensor cells, whose points are few for their functions


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
