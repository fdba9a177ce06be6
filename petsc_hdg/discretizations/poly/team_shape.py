"""Launch shapes of small dense products: teams of work-items, and warps with tensor cores; tiles and local memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

MOST_PANEL = 64  # rows of a block that a team does at once
MOST_SUMS = {"volume": 50, "facets": 28}  # of a work-item in registers; facets have two sets
RIGHT = {"volume": 1, "facets": 2}  # arrays of columns beside the one of rows
WARP = 32  # work-items that run in step: one work-group, where a team is not larger
GPU_LOCAL = 32 * 1024  # bytes of local memory of a work-group
GPU_ITEMS = 1 << 16  # work-items that keep a GPU busy
CPU_POINTS = {"volume": 8, "facets": 4}
MOST_SPLIT = 8
LEAST_ROWS = {"volume": 5, "facets": 5}  # functions below which tiles are mostly padding
MOST_BLOCKS = 8  # of eight functions
MOST_REALS = {"volume": 96, "facets": 96}  # of a lane in registers: sums, and functions at two points
POINTS = {"volume": 32, "facets": 32}  # of a warp
LOCAL = 40 * 1024  # bytes of local memory of a work-group
FEWEST_WARPS = 512  # that keep a GPU busy
TARGET = 90  # compute capability with products of 16 x 8 by 8 x 8
ONE_TEAM = {"TEAMS": 1, "SPLIT": 1, "PANELS": 1}


@dataclass(frozen=True)
class TeamShape:
    """A team does `panel` rows and columns of a block, `points` at a time, `slots` products of each.

    sides  work-items along rows and columns, powers of two;  tiles  rows and columns of each
    right  arrays of columns;  teams  in a work-group;  split  teams that share a polytope
    """

    panel: int
    panels: int
    sides: tuple[int, int]
    tiles: tuple[int, int]
    slots: int
    right: int
    real_bytes: int
    points: int
    teams: int
    split: int = 1

    @property
    def threads(self) -> int:
        """Work-items of a team."""
        return self.sides[0] * self.sides[1]

    @property
    def local_size(self) -> int:
        return self.teams * self.threads

    @property
    def pitch(self) -> int:
        return self.slots * self.points | 1

    def area(self, axis: int) -> int:
        """Numbers of a team in local memory, of rows (0) or columns (1), so many that teams meet in few banks."""
        return _area(self, axis)

    def _conflicts(self, axis: int, area: int) -> int:
        """Most numbers that meet in one bank when work-items write their points, and when they read their tiles."""
        banks = 128 // self.real_bytes
        lanes = [divmod(lane, self.threads) for lane in range(min(banks, self.local_size))]
        writes = {team * area + thread for team, thread in lanes if thread < self.points}
        reads = {team * area + tile(thread, self.sides)[axis] * self.pitch for team, thread in lanes}
        return sum(max(Counter(a % banks for a in places).values()) for places in (writes, reads))

    @property
    def local_bytes(self) -> int:
        """Local memory of a work-group."""
        return self.teams * self.real_bytes * (self.area(0) + self.right * self.area(1))

    def with_split(self, split: int) -> TeamShape:
        """The same with some teams sharing each polytope."""
        return replace(self, split=split, teams=max(self.teams, split))

    @property
    def macros(self) -> dict[str, int]:
        """Sizes that poly_matrix.clh needs."""
        return {
            "PANEL": self.panel,
            "PANELS": self.panels,
            "ROW_SIDE": self.sides[0],
            "COLUMN_SIDE": self.sides[1],
            "ROW_TILE": self.tiles[0],
            "COLUMN_TILE": self.tiles[1],
            "ROW_AREA": self.area(0),
            "COLUMN_AREA": self.area(1),
            "POINTS": self.points,
            "TEAMS": self.teams,
            "SPLIT": self.split,
            "GROUP": self.local_size,
        }


@lru_cache(maxsize=1024)
def _area(shape: TeamShape, axis: int) -> int:
    least = max(shape.sides[axis] * shape.tiles[axis] * shape.pitch, shape.threads)
    return min(range(least, least + 16), key=lambda area: (shape._conflicts(axis, area), area))


def tile(thread: int, sides: tuple[int, int]) -> tuple[int, int]:
    """First row and column of a work-item's tile: as poly_tile in poly_matrix.clh."""
    row = column = 0
    bit = 1
    while bit < max(sides):
        if bit < sides[1]:
            column, thread = column + (thread & 1) * bit, thread >> 1
        if bit < sides[0]:
            row, thread = row + (thread & 1) * bit, thread >> 1
        bit *= 2
    return row, column


def tiling(panel: int, most: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Sides and tiles: a product of padding and of numbers read for each multiplication is least."""
    found = []
    for rows, wide in product((1, 2, 4, 8, 16), (1, 2)):
        sides = rows, rows * wide
        tiles = -(-panel // sides[0]), -(-panel // sides[1])
        sums = tiles[0] * tiles[1]
        if sums <= most:
            cost = sums * sides[0] * sides[1] * (1 + sum(tiles) / sums)
            found.append((cost, sides, tiles))
    return min(found)[1:]


def team_shape(part: str, rows: int, slots: int, real_bytes: int, limits) -> TeamShape:
    """Shape for blocks of so many rows; part: volume or facets. On a CPU a team is one work-item: compilers make
    vectors of its tile, and take half as long as for several with barriers between them."""
    panels = -(-rows // MOST_PANEL)
    panel = -(-rows // panels)
    sides, tiles = tiling(panel, MOST_SUMS[part]) if limits.is_gpu else ((1, 1), (panel, panel))
    threads = sides[0] * sides[1]
    teams = max(1, WARP // threads) if limits.is_gpu else 1
    points = max(2, min(threads, 64)) if limits.is_gpu else CPU_POINTS[part]
    shape = TeamShape(panel, panels, sides, tiles, slots, RIGHT[part], real_bytes, points, teams)
    most = min(GPU_LOCAL, limits.local_bytes) if limits.is_gpu else limits.local_bytes
    while shape.local_bytes > most and shape.points > max(2, threads // 4):
        shape = replace(shape, points=shape.points - 1)
    while shape.local_bytes > limits.local_bytes and (shape.teams > 1 or shape.points > 1):
        fewer = {"teams": shape.teams // 2} if shape.teams > 1 else {"points": shape.points - 1}
        shape = replace(shape, **fewer)
    return shape


def split_of(shape: TeamShape, items: int, points: float) -> int:
    """Teams that share a polytope so that a GPU is busy: a power of two; points: of an item, on average."""
    split = 1
    while (
        split < MOST_SPLIT
        and 2 * split * items * shape.threads <= GPU_ITEMS
        and 4 * split * shape.points <= points
        and 2 * split * shape.threads <= 256
        and shape.with_split(2 * split).local_bytes <= 48 * 1024
    ):
        split *= 2
    return split


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
