"""Launch shapes of polytopic matrices on tensor cores: tiles of warps, local memory."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_ROWS = {"volume": 5, "facets": 5}  # functions below which tiles are mostly padding
MOST_BLOCKS = 8  # of eight functions
MOST_REALS = {"volume": 96, "facets": 96}  # of a lane in registers: sums, and functions at two points
POINTS = {"volume": 32, "facets": 32}  # of a warp
LOCAL = 40 * 1024  # bytes of local memory of a work-group
FEWEST_WARPS = 512  # that keep a GPU busy
TARGET = 90  # compute capability with products of 16 x 8 by 8 x 8


@dataclass(frozen=True)
class MmaShape:
    """A team of `warps` does a block of so many blocks of eight rows, each warp `column_tiles` of its columns, `points`
    at a time, `numbers` reals of each point in local memory."""

    blocks: int
    warps: int
    column_tiles: int
    points: int
    numbers: int

    @property
    def local_size(self) -> int:
        return 32 * self.warps

    @property
    def local_bytes(self) -> int:
        """Local memory of a work-group."""
        return 8 * self.numbers * (self.points + 8)

    @property
    def macros(self) -> dict[str, int]:
        """Sizes that poly_mma.clh needs; a work-group is one team."""
        sizes = {"BLOCKS": self.blocks, "ROW_TILES": self.blocks // 2, "COLUMN_TILES": self.column_tiles}
        return {**sizes, "WARPS": self.warps, "POINTS": self.points, "GROUP": self.local_size, **ONE_TEAM}


ONE_TEAM = {"TEAMS": 1, "SPLIT": 1, "PANELS": 1}


def mma_shape(part: str, rows: int, numbers: int, slots: int, limits) -> MmaShape | None:
    """Shape for blocks of so many rows, None where work-items do better one by one; part: volume or facets.

    numbers: reals of a point in local memory;  slots: products of a point.
    """
    blocks = -(-rows // 8)
    if rows < LEAST_ROWS[part] or blocks > MOST_BLOCKS:
        return None
    columns, held = (blocks, 8) if part == "volume" else (2 * blocks, 2 * slots)
    for warps in range(1, columns + 1):
        tiles = -(-columns // warps)
        sums = 4 * tiles * (blocks // 2) + blocks % 2 * 2 * (tiles + tiles % 2)
        if sums + held * blocks <= MOST_REALS[part]:
            break
    most = min(LOCAL, limits.local_bytes) // (8 * numbers) - 8
    points = min(POINTS[part] * warps, 64, most) // 16 * 16
    return (
        MmaShape(blocks, warps, tiles, points, numbers) if points > 0 and 32 * warps <= limits.max_work_group else None
    )
