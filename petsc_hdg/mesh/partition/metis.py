"""Parts of a graph by METIS: connected ones of about equal cost, or balanced ones."""

from __future__ import annotations

import heapq

import numpy as np

from ...errors import MeshError
from ...petsc.c_library import kept_from_output
from ...value_checks import plural
from ..graph import Graph, by_first
from ..order import cells_of
from .trees import branches, halves

FEW = 16  # vertices a part below which METIS fails here and there: it makes parts of ROUGH vertices, divided further
ROUGH = 32
MEAN = 100  # weight of a vertex of mean cost: partitioners take whole numbers
MOST = 2**30  # sum of all weights, which METIS and PETSc's partitioners may add up in 32 bits
KWAY = 2000  # parts up to which METIS divides at once, which gives connected parts; it bisects again and again above


def connected_parts(graph: Graph, count: int) -> np.ndarray:
    """Part of each vertex [vertex] int64, 0 … count - 1 in the order of their first vertices; each is connected.

    More than `count` parts come out only where the graph itself has pieces without a connection.
    Raises MeshError if pymetis is missing.
    """
    n = graph.num_vertices
    if count >= n:
        return np.arange(n)
    if n >= FEW * count:
        part = _joined(graph, metis(graph, count))
    else:
        part = _divided(graph, _joined(graph, metis(graph, max(n // ROUGH, 1))), count)
    return by_first(_split_heaviest(graph, part, count - int(part.max()) - 1))


def balanced_parts(graph: Graph, count: int) -> np.ndarray:
    """Part of each vertex [vertex] int64, as even as whole vertices allow; parts may be in pieces.

    METIS bisects again and again, which leaves no part empty that could have a vertex. Raises MeshError.
    """
    n = graph.num_vertices
    return np.arange(n) if count >= n else metis(graph, count, bisect=True)


def metis(graph: Graph, count: int, bisect: bool = False) -> np.ndarray:
    """METIS' part of each vertex [vertex] int64; parts may be empty or in pieces.

    bisect: again and again, also where METIS could divide at once.   Raises MeshError.
    """
    n = graph.num_vertices
    if count <= 1 or n == 0 or not len(graph.neighbour):
        return np.arange(n) * min(count, n) // max(n, 1)
    try:
        import pymetis
    except ImportError:
        raise MeshError(
            "METIS makes polytopes and deals cells to the ranks, and pymetis cannot be imported; pip install pymetis "
            "(cells are also dealt out with -petscpartitioner_type simple)."
        ) from None
    zeros = np.zeros(n, np.int64)
    kway = count <= KWAY and not bisect
    contiguous = kway and not graph.components(zeros).any()
    weights = None if np.ptp(graph.weights) == 0 else whole_weights(graph.weights, graph.weights.mean(), n)
    with kept_from_output() as said:  # METIS prints that it leaves parts empty, which is no fault here
        try:
            found = pymetis.part_graph(
                count,
                pymetis.CSRAdjacency(graph.start, graph.neighbour),
                vweights=weights,
                eweights=None if (graph.shared == 1).all() else graph.shared,
                recursive=not kway,
                options=pymetis.Options(contig=int(contiguous), seed=1),
            )
        except RuntimeError as error:
            raise MeshError(
                f"METIS cannot make {count} parts of {plural(n, 'cell')} ({said() or error}); ask for fewer, or for "
                "PETSc's own partitioner by -petscpartitioner_type simple."
            ) from None
    return np.asarray(found.vertex_part, np.int64)


def whole_weights(costs: np.ndarray, mean: float, count: int) -> np.ndarray:
    """Costs [vertex] as positive whole numbers [vertex] int64.

    mean, count: of the whole graph, of which these vertices may be a part; the mean cost becomes MEAN, or less where
    the weights of all vertices would exceed MOST.
    """
    return np.maximum(1, np.rint(costs * (min(MEAN, MOST / max(count, 1)) / mean))).astype(np.int64)


def _joined(graph: Graph, part: np.ndarray) -> np.ndarray:
    """Parts [vertex], 0 … without gaps, in which pieces cut off from the heaviest piece of their part join neighbours.

    A piece joins the part with which it shares most facets; one without neighbours stays a part.
    """
    roots, piece = np.unique(graph.components(part), return_inverse=True)
    pieces = graph.quotient(piece, len(roots))
    owner = part[roots]
    order = np.lexsort((roots, -pieces.weights, owner))
    target = np.full(len(roots), -1)
    heaviest = order[np.flatnonzero(np.diff(owner[order], prepend=-1))]
    target[heaviest] = heaviest
    row = pieces.rows()
    while (target < 0).any():
        look = np.flatnonzero((target[row] < 0) & (target[pieces.neighbour] >= 0))
        if not len(look):
            break
        best = look[np.lexsort((look, -pieces.shared[look], row[look]))]
        best = best[np.flatnonzero(np.diff(row[best], prepend=-1))]
        target[row[best]] = target[pieces.neighbour[best]]
    target = np.where(target < 0, np.arange(len(roots)), target)
    return np.unique(target[piece], return_inverse=True)[1]


def _split_heaviest(graph: Graph, part: np.ndarray, times: int) -> np.ndarray:
    """Parts [vertex] after the heaviest of several vertices was halved, again and again, `times` times."""
    if times <= 0:
        return part
    count = int(part.max()) + 1
    start, members = cells_of(part, count)
    weight = np.bincount(part, graph.weights)
    queue = [(-weight[k], k, members[start[k] : start[k + 1]]) for k in np.flatnonzero(np.diff(start) > 1)]
    heapq.heapify(queue)
    part, known = part.copy(), {}
    for new in range(count, count + times):
        if queue[0][1] not in known:  # those whose turn may come, all at a time
            likely = {k: members for _, k, members in heapq.nsmallest(count + times - new, queue) if k not in known}
            known.update(zip(likely, halves(graph, list(likely.values())), strict=True))
        old = heapq.heappop(queue)[1]
        for number, half in zip((old, new), known.pop(old), strict=True):
            part[half] = number
            if len(half) > 1:
                heapq.heappush(queue, (-graph.weights[half].sum(), number, half))
    return part


def _divided(graph: Graph, part: np.ndarray, count: int) -> np.ndarray:
    """Parts [vertex] divided into at most `count` smaller ones, each connected and of about equal cost.

    Branches of a spanning tree of each part become parts as soon as they weigh enough.
    """
    weights, (start, members) = np.bincount(part, graph.weights), cells_of(part, int(part.max()) + 1)
    shares = shared_out(weights, count, np.diff(start))
    sets = [members[a:b] for a, b in zip(start[:-1], start[1:], strict=True)]
    vertices, branch = branches(graph, sets, weights / shares * (1 - 1e-9))
    root = np.empty(graph.num_vertices, np.int64)
    root[vertices] = branch
    return np.unique(root, return_inverse=True)[1]


def shared_out(weights: np.ndarray, total: int, most: np.ndarray) -> np.ndarray:
    """Whole shares [item] of `total` in proportion to weights [item], each at least 1 (or `most`) and at most `most`.

    Their sum is `total` unless these bounds forbid it.
    """
    exact = weights * (total / weights.sum())
    shares = np.clip(exact.astype(np.int64), np.minimum(most, 1), most)
    while shares.sum() < total and (shares < most).any():
        open_ = np.flatnonzero(shares < most)
        first = open_[np.argsort((shares - exact)[open_], kind="stable")]
        shares[first[: total - int(shares.sum())]] += 1
    return shares
