"""Patches of cells for first-order elements: the vertices each reads, the sums it completes or leaves on its border."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# The fastest of those tried on an H100: more cells share more vertices, fewer leave room for more groups.
PATCH_CELLS = {"triangle": 1024, "quadrilateral": 512, "tetrahedron": 384, "hexahedron": 512}
PATCH_THREADS = {"triangle": 256, "quadrilateral": 128, "tetrahedron": 128, "hexahedron": 128}


@dataclass(frozen=True)
class Patches:
    """Patches of `cells` consecutive cells. `place` counts the vertices of all patches in turn, complete ones first.

    place_start [patch + 1]; interior [patch]; border_start [patch]
    place_dofs  [place, component] compact numbers;  place_node [place] geometry node
    corner      [cell, corner] place within the patch, uint16
    list_start  [place + patch] (one more than its places for each patch) and
    list        [patch, corners * cells] slots corner * cells + cell of each place, uint16
    rows        compact numbers whose sums are finished by a list: row_start [row + 1], row_entry [nnz] positions among
                the border values [border, component], then the facets' element vectors
    """

    cells: int
    place_start: np.ndarray
    interior: np.ndarray
    border_start: np.ndarray
    place_dofs: np.ndarray
    place_node: np.ndarray
    corner: np.ndarray
    list_start: np.ndarray
    list: np.ndarray
    rows: np.ndarray
    row_start: np.ndarray
    row_entry: np.ndarray

    @property
    def count(self) -> int:
        return len(self.interior)

    @property
    def num_border(self) -> int:
        return int(len(self.place_node) - self.interior.sum())


def patch_cells(cell: str, components: int) -> int:
    """Cells of a patch: a multiple of 64. With more components a work-group's local memory holds fewer."""
    return max(64, PATCH_CELLS[cell] // components // 64 * 64)


def build_patches(
    cell_nodes, cell_dofs, num_owned: int, num_rows: int, cells: int, facet_cells, facet_stride: int
) -> Patches:
    """Patches of `cells` consecutive cells.

    cell_nodes [cell, corner]; cell_dofs [cell, corner * component] compact numbers, component fastest;
    num_rows = owned + ghost numbers; facet_cells [facet] cells of natural facets, whose element vectors
    [dof, facet_stride] stand behind the border values.
    """
    num_cells, corners = cell_nodes.shape
    components = cell_dofs.shape[1] // corners
    count = max(1, -(-num_cells // cells))
    patch_of = np.repeat(np.arange(num_cells) // cells, corners)
    num_nodes = int(cell_nodes.max(initial=-1)) + 1
    key = patch_of * np.int64(max(num_nodes, 1)) + cell_nodes.ravel()
    unique, where = np.unique(key, return_inverse=True)
    where = where.ravel()
    place_patch, place_node = unique // max(num_nodes, 1), (unique % max(num_nodes, 1)).astype(np.int32)
    dofs = np.empty((len(unique), components), dtype=np.int32)
    dofs[where] = cell_dofs.reshape(-1, components)
    complete = _complete(place_node, dofs, num_owned, num_nodes, cell_nodes, facet_cells)
    order = np.lexsort((~complete, place_patch))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    place_patch, place_node, dofs, complete = place_patch[order], place_node[order], dofs[order], complete[order]
    place_start = np.searchsorted(place_patch, np.arange(count + 1)).astype(np.int32)
    interior = np.bincount(place_patch[complete], minlength=count).astype(np.int32)
    border = np.diff(place_start) - interior
    border_start = (np.cumsum(border) - border).astype(np.int32)
    within = (rank[where] - place_start[patch_of]).astype(np.uint16)
    list_start, entries = _lists(rank[where], patch_of, place_start, cells, corners, count)
    rows, row_start, row_entry = _border_rows(dofs[~complete], num_rows, cell_dofs, facet_cells, facet_stride)
    return Patches(
        cells=cells, place_start=place_start, interior=interior, border_start=border_start,
        place_dofs=dofs, place_node=place_node, corner=within.reshape(num_cells, corners),
        list_start=list_start, list=entries, rows=rows, row_start=row_start, row_entry=row_entry,
    )  # fmt: skip


def _complete(place_node, dofs, num_owned, num_nodes, cell_nodes, facet_cells) -> np.ndarray:
    """Places whose sum needs nothing from elsewhere: one patch, owned, free, and without natural facets around."""
    once = np.bincount(place_node, minlength=num_nodes) == 1
    once[cell_nodes[facet_cells].ravel()] = False
    return once[place_node] & (dofs < num_owned).all(axis=1)


def _lists(place, patch_of, place_start, cells, corners, count):
    """Slots of each place in a fixed order.

    Returns the starts within the patch's list [places + 1 a patch] and the slots [patch, corners * cells].
    """
    cell, corner = np.divmod(np.arange(len(place)), corners)
    slot = (corner * cells + cell % cells).astype(np.uint16)
    order = np.argsort(place, kind="stable")
    first = np.searchsorted(patch_of[order], np.arange(count + 1))
    entries = np.zeros((count, corners * cells), dtype=np.uint16)
    entries[patch_of[order], np.arange(len(order)) - first[patch_of[order]]] = slot[order]
    ends = np.cumsum(np.bincount(place, minlength=place_start[-1]))
    begin_of = np.repeat(first[:-1], np.diff(place_start))
    shifted = np.arange(place_start[-1]) + np.repeat(np.arange(count), np.diff(place_start)) + 1
    list_start = np.zeros(place_start[-1] + count, dtype=np.uint16)
    list_start[shifted] = ends - begin_of
    return list_start, entries


def _border_rows(border_dofs, num_rows, cell_dofs, facet_cells, facet_stride):
    """Rows finished outside patches: compact numbers, and for each the positions of what adds to it."""
    num_dofs = cell_dofs.shape[1]
    facet_dofs = cell_dofs[facet_cells]
    numbers = np.concatenate([border_dofs.ravel(), facet_dofs.ravel()])
    position = np.concatenate(
        [
            np.arange(border_dofs.size),
            (border_dofs.size + np.arange(num_dofs) * facet_stride + np.arange(len(facet_cells))[:, None]).ravel(),
        ]
    )
    order = np.argsort(numbers, kind="stable")
    order = order[: np.searchsorted(numbers[order], num_rows)]
    rows, counts = np.unique(numbers[order], return_counts=True)
    start = np.concatenate([[0], np.cumsum(counts)])
    return rows.astype(np.int32), start.astype(np.int32), position[order].astype(np.int32)
