"""Sums over cells and ranks in parts, so that kernels run while ghost values are under way."""

from __future__ import annotations

FIRST, OUTER, LAST = 0, 1, 2  # parts: inner items, those that read or write ghosts, and inner ones again
LEAST = 1 << 15  # inner items of a GPU below which one launch takes less time than a second one costs


def in_parts(vector, given, run, out, ghost_sums) -> None:
    """out = what `run(part)` computes on this rank, and its ghost sums of all ranks. Collective.

    Inner items are computed while the ghosts of the TailedVector `vector` come, whose owned values are `given`, and the
    rest of them while ghost sums go to their owners.
    """
    halo = vector.operator.halo
    if halo.alone and halo.plan.active:
        vector.begin(given)
        run(None)
        if vector.operator.epilogue is None:
            halo.reverse_add(ghost_sums, out)
    elif as_ghosts_come(vector, given, run, outer_done=lambda: halo.reverse_add_begin(ghost_sums)):
        halo.reverse_add_end(out)


def as_ghosts_come(vector, given, run, early: bool = False, outer_done=None) -> bool:
    """Run the parts of a product while the ghosts of the TailedVector `vector` come, whose owned values are `given`.

    Where the device has two queues, outer items are computed beside the inner ones, all of which are in FIRST: OUTER
    writes nothing that FIRST or, but for what LAST writes anew, LAST does. A rank without neighbours computes all at
    once, run(None), and False is returned.
    early: LAST may come before the ghosts, too.   outer_done(): called behind OUTER, on its queue. Collective.
    Where the halo is `alone`, all is computed at once after the exchange.
    """
    halo, device = vector.operator.halo, vector.operator.arrays.device
    if not halo.plan.active:
        vector.owned = given
        run(None)
        return False
    if halo.alone:
        vector.begin(given)
        run(None)
        if outer_done is not None:
            outer_done()
        return True
    vector.begin(given)
    for part in (FIRST, LAST) if early else (FIRST,):
        run(part)
    with device.beside():
        vector.end()
        run(OUTER)
        if outer_done is not None:
            outer_done()
    if not early:
        run(LAST)
    return True


def part_range(part: int | None, inner: int, total: int, step: int, device) -> tuple[int, int]:
    """First and last item of a part of `total` items of which the first `inner` need no ghosts; starts are multiples of
    `step`. All items for None."""
    if part is None:
        return 0, total
    few = device.is_gpu and inner < LEAST
    end = 0 if few else inner // step * step
    middle = end if device.two_queues else end // 2 // step * step
    return ((0, middle), (end, total), (middle, end))[part]


def element_cells(part: int | None, inner: int, total: int, step: int, device) -> tuple[int, int]:
    """First and last cell of a part of element vectors, in whole groups of `step` cells.

    Rows of ghosts are sums over outer cells alone, so that inner cells may be in LAST too: so many that they and the
    sums of all rows, which come last, take about as long as those in FIRST."""
    inner = 0 if device.is_gpu and inner < LEAST else inner // step * step
    middle = inner if device.two_queues else 3 * inner // (4 * step) * step
    total = -(-total // step) * step
    return {None: (0, total), FIRST: (0, middle), OUTER: (inner, total), LAST: (middle, inner)}[part]


def assembled_rows(part: int | None, num_owned: int, num_rows: int, kernel) -> tuple[int, int]:
    """First and last row that a part sums from element vectors: those of ghosts once all cells are done, in OUTER, and
    those of this rank, which others wait for less, in LAST."""
    border = num_owned // kernel.spec.local_size * kernel.spec.local_size  # rows from here on are summed again in LAST
    return {None: (0, num_rows), FIRST: (0, 0), OUTER: (border, num_rows), LAST: (0, num_owned)}[part]
