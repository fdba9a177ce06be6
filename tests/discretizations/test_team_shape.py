"""Launch shapes of polytopic matrices: every degree and space fits, tiles cover a block once, polytopes are shared."""

from __future__ import annotations

from itertools import product

import pytest

from petsc_hdg.discretizations.poly.legendre import num_basis
from petsc_hdg.discretizations.poly.team_shape import MOST_SUMS, WARP, mma_shape, split_of, team_shape, tile
from petsc_hdg.discretizations.transposition import DeviceLimits

GPU, CPU = DeviceLimits(48 << 10, 256, True), DeviceLimits(32 << 10, 4096, False)


@pytest.mark.parametrize("limits", [GPU, CPU], ids=["gpu", "cpu"])
@pytest.mark.parametrize("part", ["volume", "facets"])
def test_every_block_fits_and_is_covered_once(part, limits):
    for dim, degree, space, real in product((2, 3), range(7), ("total", "tensor"), (4, 8)):
        rows = num_basis(dim, degree, space)
        for slots in (1, 2, 1 + dim):
            shape = team_shape(part, rows, slots, real, limits)
            assert shape.local_bytes <= limits.local_bytes and shape.local_size <= limits.max_work_group
            assert shape.tiles[0] * shape.tiles[1] <= MOST_SUMS[part] if limits.is_gpu else shape.local_size == 1
            assert shape.panels * shape.panel >= rows > (shape.panels - 1) * shape.panel
            starts = sorted(tile(thread, shape.sides) for thread in range(shape.threads))
            assert starts == sorted(product(range(shape.sides[0]), range(shape.sides[1])))
            assert all(s * t >= shape.panel for s, t in zip(shape.sides, shape.tiles, strict=True))
            assert shape.area(0) >= shape.threads  # where teams that share a polytope exchange their sums


def test_work_groups_of_gpus_are_whole_warps():
    for dim, degree in product((2, 3), range(7)):
        shape = team_shape("volume", num_basis(dim, degree), dim, 8, GPU)
        assert shape.local_size % WARP == 0


@pytest.mark.parametrize("part", ["volume", "facets"])
def test_warps_cover_a_block_once_and_fit(part):
    for dim, degree, slots in product((2, 3), range(1, 7), (2, 4)):
        rows, numbers = num_basis(dim, degree), 4 * dim * (degree + 1) + 16
        shape = mma_shape(part, rows, numbers, slots, GPU)
        if shape is None:
            assert rows < 5 or rows > 64 or (part, slots, degree) == ("facets", 4, 5)  # too many warps
            continue
        blocks, columns = shape.blocks, shape.blocks * (1 if part == "volume" else 2)
        assert 8 * blocks >= rows > 8 * (blocks - 1)
        assert shape.warps * shape.column_tiles >= columns > (shape.warps - 1) * shape.column_tiles
        assert shape.local_bytes <= GPU.local_bytes and shape.local_size <= GPU.max_work_group
        assert shape.points % 16 == 0  # rows of two points each lie in different banks


def test_neighbours_read_the_same_rows_or_columns():
    places = [tile(thread, (4, 4)) for thread in range(16)]
    assert all(places[k][0] == places[k ^ 1][0] and places[k][1] == places[k ^ 2][1] for k in range(16))


def test_few_large_polytopes_are_shared():
    shape = team_shape("volume", 6, 2, 8, GPU)
    assert split_of(shape, 500_000, 6.0) == 1
    assert split_of(shape, 8_000, 6.0) == 1  # too few points to share
    assert split_of(shape, 8_000, 360.0) == 8
    shared = shape.with_split(8)
    assert shared.teams % 8 == 0 and shared.local_bytes <= GPU.local_bytes
