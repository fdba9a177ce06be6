"""Patches of cells for first-order elements: the vertices each reads, the sums it completes or leaves on its border.

Clusters of cells for one thread are fans of simplices around a vertex (2D) or an edge (3D), which share vertices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LONGEST = 3  # any path of three simplices is a fan: two facets of the middle one share its hub
# More cells share more vertices, fewer leave room for more groups.
PATCH_CELLS = {"triangle": 1024, "quadrilateral": 512, "tetrahedron": 1024, "hexahedron": 256}
PATCH_THREADS = {"triangle": 128, "tetrahedron": 128, "quadrilateral": 128, "hexahedron": 64}  # work-items of a group
WIDTHS = (10, 12, 16)  # bits that a number within a patch may take of a 64-bit word


def fan_vertices(cell_nodes: np.ndarray, fans: np.ndarray) -> np.ndarray:
    """Vertices [cluster, hub then ring] of fans [cluster, LONGEST] of cells along a path, -1 behind the last.

    Cell i of a fan has the hub (dim - 1 vertices) and ring vertices i and i + 1; behind the last the first is repeated.
    """
    corners = cell_nodes.shape[1]
    out = np.repeat(cell_nodes[fans[:, 0], :1], corners + LONGEST - 1, axis=1)
    size = (fans >= 0).sum(axis=1)
    for length in range(1, LONGEST + 1):
        rows = np.flatnonzero(size == length)
        if len(rows):
            out[rows, : corners + length - 1] = _ordered([cell_nodes[fans[rows, k]] for k in range(length)])
    return out


def _ordered(path: list) -> np.ndarray:
    """Hub and ring [fan, vertex] of the cells [fan, corner] of paths of one length."""
    if len(path) == 1:
        return path[0]
    first, middle, last = path[0], path[1], path[-1]
    before, after = _among(middle, first), _among(middle, last)
    own = [_picked(first, ~_among(first, middle))]
    if len(path) == 2:
        shared = _picked(first, _among(first, middle))
        return np.concatenate([shared[:, :-1], own[0], shared[:, -1:], _picked(middle, ~before)], axis=1)
    ends = [_picked(middle, before & ~after), _picked(middle, after & ~before), _picked(last, ~_among(last, middle))]
    return np.concatenate([_picked(middle, before & after), *own, *ends], axis=1)


def _among(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Mask of the corners [cell, corner] that are corners of the other cell."""
    return (some[:, :, None] == others[:, None, :]).any(axis=2)


def _picked(some: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return some[mask].reshape(len(some), -1)


def find_fans(cell_nodes: np.ndarray, facet_cells: np.ndarray, patch: int, longest: int = LONGEST) -> np.ndarray:
    """Fans [cluster, LONGEST] of the cells [cell, corner], each within a patch of `patch` consecutive cells; -1 fills.

    facet_cells [facet, 2]: cells on both sides, -1 for none. In each patch the first cell left takes the neighbour
    with the fewest neighbours left, and these two another; all patches go on at once. Patches come in order, longer
    fans first.
    """
    num_cells, corners = cell_nodes.shape
    around = _neighbours(cell_nodes, facet_cells, patch)
    free = np.ones(num_cells + 1, dtype=bool)
    free[-1] = False
    left = free[around].sum(axis=1).astype(np.int8)
    fans = []
    for c in range(min(patch, num_cells)):
        start = np.arange(c, num_cells, patch)
        start = start[free[start]]
        fan = np.full((len(start), LONGEST), -1)
        fan[:, 0] = start
        _take(start, free, left, around)
        for length in range(1, longest):
            members = fan[:, :length]
            near = around[members].reshape(len(fan), length * corners)
            near[np.repeat(members < 0, corners, axis=1)] = num_cells
            score = np.where(free[near], left[near], 127)
            best = score.argmin(axis=1)
            rows = np.flatnonzero(score[np.arange(len(fan)), best] < 127)
            chosen, place = near[rows, best[rows]], best[rows] // corners
            before = rows[place == 0] if length > 1 else rows[:0]  # next to the path's beginning
            fan[before, 1 : length + 1] = fan[before, :length]
            fan[before, 0] = chosen[place == 0] if length > 1 else chosen[:0]
            behind = (place > 0) | (length == 1)
            fan[rows[behind], length] = chosen[behind]
            _take(chosen, free, left, around)
        fans.append(fan)
    fans = np.concatenate(fans) if fans else np.zeros((0, LONGEST), dtype=np.int64)
    return fans[np.lexsort((-(fans >= 0).sum(axis=1), fans[:, 0] // patch))]


def _take(cells, free, left, around) -> None:
    free[cells] = False
    left[around[cells]] -= 1


def _neighbours(cell_nodes, facet_cells, patch) -> np.ndarray:
    """Neighbours [cell + 1, corner] in the same patch that share a facet's vertices, the number of cells for none."""
    num_cells, corners = cell_nodes.shape
    pairs = facet_cells[(facet_cells >= 0).all(axis=1) & (facet_cells < num_cells).all(axis=1)]
    pairs = pairs[pairs[:, 0] // patch == pairs[:, 1] // patch]
    pairs = pairs[_among(cell_nodes[pairs[:, 0]], cell_nodes[pairs[:, 1]]).sum(axis=1) == corners - 1]
    cell, other = pairs.ravel(), pairs[:, ::-1].ravel()
    order = np.argsort(cell, kind="stable")
    cell, other = cell[order], other[order]
    column = np.arange(len(cell)) - np.searchsorted(cell, np.arange(num_cells))[cell]
    around = np.full((num_cells + 1, corners), num_cells)
    around[cell, column] = other
    return around


@dataclass(frozen=True)
class Patches:
    """Patches of `cells` consecutive cells; `place` counts the vertices of all patches, `cluster` the threads' cells.

    heads       [patch, 7 + size] first place, places, complete places (they come first), first border value, first
                cluster, first word, words, then how many clusters have more than 0, 1, … cells
    members     [cluster, size] cells of each cluster, -1 behind the last;  vertices [cluster, vertex] geometry nodes
    place_dofs  [place, component] compact numbers;  place_node [place] geometry node
    words       uint64, of each patch in turn: [word, cluster] places of a cluster's vertices within the patch of
                corner_bits bits, then slots (vertex * clusters + cluster) that add to places, of slot_bits bits: round
                by round those of the complete places that have so many words, then those of the others
    rounds      [patch, 2, rounds] complete places, and others, with more than 0, 1, … words
    local       places, words and slots of the largest patch
    rows        compact numbers whose sums are finished by a list: row_start [row + 1], row_entry [nnz] positions among
                the border values [border, component], then the facets' element vectors
    """

    cells: int
    heads: np.ndarray
    members: np.ndarray
    vertices: np.ndarray
    words: np.ndarray
    corner_bits: int
    place_dofs: np.ndarray
    place_node: np.ndarray
    slot_bits: int
    rounds: np.ndarray
    local: tuple[int, int, int]
    rows: np.ndarray
    row_start: np.ndarray
    row_entry: np.ndarray

    @property
    def count(self) -> int:
        return len(self.heads)

    def corner_rows(self, cell_nodes: np.ndarray, hub: int) -> np.ndarray:
        """Corner [corner, size, cluster] of the mesh's cell for each corner of a cluster's cells, 0 behind the last."""
        rows = np.zeros((cell_nodes.shape[1], *self.members.T.shape), dtype=np.int64)
        for part, cells in enumerate(self.members.T):
            for n in range(len(rows)):
                vertex = self.vertices[:, n if n < hub else n + part]
                rows[n, part] = (cell_nodes[cells] == vertex[:, None]).argmax(axis=1)
        return rows

    @property
    def num_border(self) -> int:
        return int(self.heads[:, 1].sum() - self.heads[:, 2].sum())


def patch_cells(cell: str, components: int) -> int:
    """Cells of a patch: a multiple of 64. With more components a work-group's local memory holds fewer."""
    return max(64, PATCH_CELLS[cell] // components // 64 * 64)


def build_patches(
    cell_nodes, cell_dofs, num_owned: int, num_rows: int, cells: int, cluster: int, facet_cells, natural, facet_stride
) -> Patches:
    """Patches of `cells` consecutive cells, up to `cluster` of them a thread.

    cell_nodes [cell, corner]; cell_dofs [cell, corner * component] compact numbers, component fastest;
    num_rows = owned + ghost numbers; facet_cells [facet, 2] cells on both sides, -1 none, read where cluster > 1;
    natural [facet] cells of natural facets, whose element vectors [dof, facet_stride] stand behind the border values.
    """
    num_cells, corners = cell_nodes.shape
    count = max(1, -(-num_cells // cells))
    vertices, members = _clusters(cell_nodes, facet_cells, cells, cluster)
    size, patch_of = (members >= 0).sum(axis=1), members[:, 0] // cells
    clusters = np.bincount(patch_of, minlength=count)
    first_cluster = np.cumsum(clusters) - clusters
    own = np.arange(vertices.shape[1]) < (size + corners - 1)[:, None]

    num_nodes = int(cell_nodes.max(initial=-1)) + 1
    key = patch_of[:, None] * np.int64(max(num_nodes, 1)) + vertices
    unique, where = np.unique(key, return_inverse=True)
    where = where.reshape(key.shape)
    place_patch, place_node = unique // max(num_nodes, 1), (unique % max(num_nodes, 1)).astype(np.int32)
    dofs = _node_dofs(cell_nodes, cell_dofs, num_nodes)[place_node]
    complete = _complete(place_node, dofs, num_owned, num_nodes, cell_nodes, natural)

    within_patch = np.arange(len(patch_of)) - first_cluster[patch_of]
    slot = np.arange(vertices.shape[1]) * clusters[patch_of][:, None] + within_patch[:, None]
    slots = vertices.shape[1] * clusters  # the slot behind the last holds zero
    slot_bits = _width(slots.max(initial=0))
    valence = np.bincount(where[own], minlength=len(unique))
    words = -(-valence // (64 // slot_bits))
    order = np.lexsort((dofs[:, 0], -words, ~complete, place_patch))  # neighbours in memory are read by neighbours
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    place_patch, place_node, dofs = place_patch[order], place_node[order], dofs[order]
    complete, words, where = complete[order], words[order], rank[where]
    place_start = np.searchsorted(place_patch, np.arange(count + 1))
    places = np.diff(place_start)
    within = where - place_start[patch_of][:, None]
    corner_bits = _width(places.max(initial=0))
    rounds, list_start, lists = _lists(where[own], slot[own], slots, slot_bits, place_patch, complete, words)
    inside = np.bincount(place_patch[complete], minlength=count)
    border = places - inside
    having = [np.bincount(patch_of[size > k], minlength=count) for k in range(cluster)]
    word_start, all_words = _laid(_packed(within, corner_bits), lists, clusters, first_cluster, list_start)
    num_words = np.diff(np.append(word_start, len(all_words)))
    starts = place_start[:-1], places, inside, np.cumsum(border) - border, first_cluster, word_start
    heads = np.stack((*starts, num_words, *having), axis=1).astype(np.int32)
    most = places, num_words, slots + 1
    rows, row_start, row_entry = _border_rows(dofs[~complete], num_rows, cell_dofs, natural, facet_stride)
    return Patches(
        cells=cells, heads=heads, members=members, vertices=vertices, words=all_words, corner_bits=corner_bits,
        place_dofs=dofs, place_node=place_node, slot_bits=slot_bits, rounds=rounds.astype(np.int32),
        local=tuple(int(m.max(initial=0)) for m in most), rows=rows, row_start=row_start, row_entry=row_entry,
    )  # fmt: skip


def _clusters(cell_nodes, facet_cells, cells, cluster):
    """Vertices [cluster, vertex] and cells [cluster, size] of the clusters, patch by patch, larger ones first."""
    num_cells, corners = cell_nodes.shape
    if cluster == 1:
        return cell_nodes, np.arange(num_cells)[:, None]
    fans = find_fans(cell_nodes, facet_cells, cells, cluster)
    return fan_vertices(cell_nodes, fans)[:, : corners + cluster - 1], fans[:, :cluster]


def _node_dofs(cell_nodes, cell_dofs, num_nodes) -> np.ndarray:
    """Compact numbers [node, component] at the geometry nodes."""
    components = cell_dofs.shape[1] // cell_nodes.shape[1]
    dofs = np.full((num_nodes, components), -1, dtype=np.int32)
    dofs[cell_nodes] = cell_dofs.reshape(*cell_nodes.shape, components)
    return dofs


def _complete(place_node, dofs, num_owned, num_nodes, cell_nodes, natural) -> np.ndarray:
    """Places whose sum needs nothing from elsewhere: one patch, owned, free, and without natural facets around."""
    once = np.bincount(place_node, minlength=num_nodes) == 1
    once[cell_nodes[natural].ravel()] = False
    return once[place_node] & (dofs < num_owned).all(axis=1)


def _width(largest: int) -> int:
    """Bits for numbers up to `largest`."""
    return next(bits for bits in WIDTHS if largest < 1 << bits or bits == WIDTHS[-1])


def _packed(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Numbers [item, k] as words [k // (64 // bits), item], the first in the lowest bits."""
    per_word = 64 // bits
    words = np.zeros((-(-numbers.shape[1] // per_word), len(numbers)), dtype=np.uint64)
    for k in range(numbers.shape[1]):
        words[k // per_word] |= numbers[:, k].astype(np.uint64) << np.uint64(k % per_word * bits)
    return words


def _lists(place, slot, slots, bits, place_patch, complete, words):
    """Words of slots in a fixed order: rounds [patch, 2, round], first word [patch], words."""
    per_word, count = 64 // bits, len(slots)
    depth = max(1, int(words.max(initial=0)))
    kind = place_patch * 2 + ~complete
    rounds = np.stack([np.bincount(kind[words > r], minlength=2 * count) for r in range(depth)], axis=1)
    start = (np.cumsum(rounds.ravel()) - rounds.ravel()).reshape(rounds.shape)
    kind_start = np.searchsorted(kind, np.arange(2 * count))
    order = np.lexsort((slot, place))
    place, slot = place[order], slot[order]
    nth = np.arange(len(place)) - np.searchsorted(place, np.arange(len(place_patch)))[place]
    numbers = np.repeat(slots.astype(np.uint64), rounds.reshape(count, -1).sum(axis=1))[:, None].repeat(
        per_word, axis=1
    )
    of_place = kind[place]
    numbers[start[of_place, nth // per_word] + place - kind_start[of_place], nth % per_word] = slot
    return rounds.reshape(count, 2, depth), start[::2, 0], _packed(numbers, bits)[0]


def _laid(corner, lists, clusters, first_cluster, list_start):
    """First word [patch] and words: of each patch those of its clusters [word, cluster], then its lists."""
    patch_of = np.repeat(np.arange(len(clusters)), clusters)
    word_start = len(corner) * first_cluster + list_start
    words = np.empty(corner.size + len(lists), dtype=np.uint64)
    at = word_start[patch_of] + np.arange(len(patch_of)) - first_cluster[patch_of]
    for number, row in enumerate(corner):
        words[at + number * clusters[patch_of]] = row
    of_list = np.repeat(np.arange(len(clusters)), np.diff(np.append(list_start, len(lists))))
    words[len(corner) * (first_cluster + clusters)[of_list] + np.arange(len(lists))] = lists
    return word_start, words


def _border_rows(border_dofs, num_rows, cell_dofs, natural, facet_stride):
    """Rows finished outside patches: compact numbers, and for each the positions of what adds to it."""
    num_dofs = cell_dofs.shape[1]
    facet_dofs = cell_dofs[natural]
    numbers = np.concatenate([border_dofs.ravel(), facet_dofs.ravel()])
    position = np.concatenate(
        [
            np.arange(border_dofs.size),
            (border_dofs.size + np.arange(num_dofs) * facet_stride + np.arange(len(natural))[:, None]).ravel(),
        ]
    )
    order = np.argsort(numbers, kind="stable")
    order = order[: np.searchsorted(numbers[order], num_rows)]
    rows, counts = np.unique(numbers[order], return_counts=True)
    start = np.concatenate([[0], np.cumsum(counts)])
    return rows.astype(np.int32), start.astype(np.int32), position[order].astype(np.int32)
