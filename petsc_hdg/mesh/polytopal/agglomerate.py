"""Polytopes made of a mesh's cells: by METIS, by the user's numbers, by names; and coarser ones made of polytopes."""

from __future__ import annotations

from math import comb
from numbers import Integral

import numpy as np

from ...errors import MeshError, collectively, warn_user
from ...stages import stage
from ...value_checks import array, plural, shown
from ..graph import Graph
from ..labels import stratum_points
from ..mesh_checks import cell_costs, evaluated, numbers, require_mesh
from ..partition.bisection import balanced_parts
from ..partition.distribute import ranks_of_whole, redistributed
from ..partition.metis import connected_parts, shared_out
from ..polytopes import Polytopes
from ..whole_mesh import WholeMesh, centroids


@stage("mesh")
def agglomerate(mesh, count=None, groups=None, label=None, degrees=None, cost=None):
    """A mesh of the same cells whose `polytopes` are agglomerates of them, each whole on one rank. Collective.

    One of these three says which cells belong together, or a count of polytopes that each lie within a group or label:
    count    polytopes of the whole mesh, made by METIS: connected, of about equal cost, the same on any number of
             ranks, each within a region of the mesh if it has some, since coefficients may jump between them
    groups   [num_cells] whole numbers of this rank's cells (of any size; a group may lie on several ranks), or a
             function of centroids [cell, dim] that gives them
    label    name of a DMPlex label or of a cell region, or several names: cells of one name and value are a group, and
             those without any are one more

    A group in several pieces becomes several polytopes, with a warning. Polytopes are numbered over all ranks: with
    `count` along a space-filling curve; with groups in ascending order of their numbers, pieces of a group one after
    another. `polytopes.numbers` tells the numbers of a rank's polytopes.

    degrees  polynomial degree, 0 … 6: one number; or [polytope] (with groups: [group], pieces share it); or a function
             of the polytopes' centroids [polytope, dim]. None: the degree of the options.
    cost     weight of each cell in the balance: [num_cells], or a function of centroids; None: the same for all

    Polytopes are dealt to the ranks by bisection, weighted with the cost of their cells times the square of their
    number of basis functions; `polytopes.balance` is the largest cost of a rank over the mean. On one rank nothing
    moves. Raises MeshError.
    """
    with collectively(require_mesh(mesh, "agglomerate").comm):
        weights = cell_costs(mesh, cost)
        given = _groups(mesh, count, groups, label)
    whole = WholeMesh(mesh, weights)
    given, graph = whole.gather(given), whole.graph()
    part = target = of_all = balance = None
    with collectively(mesh.comm):
        if graph is not None:
            part, target, of_all, balance = _plan(whole, graph, count, given, degrees, ranks_of_whole(mesh, whole))
    of_all, balance = mesh.comm.bcast((of_all, balance))
    moved, number = redistributed(mesh, whole.deal(target), whole.deal(part))
    numbers, of_cell = np.unique(number, return_inverse=True)
    own = None if of_all is None else of_all[numbers].astype(np.int32)
    moved.polytopes = Polytopes(of_cell.astype(np.int32), len(numbers), own, balance, numbers)
    return moved


def _groups(mesh, count, groups, label) -> np.ndarray:
    """Groups [num_cells] int64 that the user asks for, zeros if a count is asked for. Raises MeshError."""
    asked = [name for name, value in (("count", count), ("groups", groups), ("label", label)) if value is not None]
    if not asked or asked[-2:] == ["groups", "label"]:
        got = f"{' and '.join(asked)} were given" if asked else "none was given"
        raise MeshError(f"Cells are agglomerated by count, groups or label, or by count within one of these; {got}.")
    if groups is not None:
        return numbers(evaluated(groups, centroids(mesh), "groups"), mesh, "Groups", "iub").astype(np.int64)
    if label is not None or mesh.cell_regions:
        return label_groups(mesh, mesh.cell_regions if label is None else label)
    return np.zeros(mesh.num_cells, np.int64)


def _plan(whole: WholeMesh, graph: Graph, count, given: np.ndarray, degrees, ranks: int) -> tuple:
    """Polytope and rank [cell] of every cell of the whole mesh, degrees [polytope] or None, and the balance of the cost
    of the ranks."""
    if count is not None:
        inside = graph.within(given)  # no polytope lies in two groups
        part = connected_parts(inside, checked_count(count, graph.num_vertices, "cell"))
        groups = np.arange(part.max() + 1)
        if len(groups) > count:
            what = "The groups or regions are" if np.ptp(given) else "The mesh is"
            warn_user(f"{what} in pieces: {len(groups)} polytopes were made where {count} were asked for.")
    else:
        part, groups = _pieces(graph, given)
    size, costs = (np.bincount(part, of_cell) for of_cell in (None, whole.costs))
    middles = np.stack([np.bincount(part, x) / size for x in whole.centroids.T], axis=1)
    found = checked_degrees(degrees, groups, middles)
    if found is not None:
        dim = whole.centroids.shape[1]
        costs *= np.array([comb(p + dim, dim) for p in range(max(DEGREES) + 1)])[found] ** 2
    rank = balanced_parts(middles, ranks, costs)
    load = np.bincount(rank, costs, minlength=ranks)
    return part, rank[part], found, float(load.max() / load.mean())


def _pieces(graph: Graph, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Polytope of each cell [cell] and group of each polytope [polytope], both counted from 0; given [cell]."""
    given = np.unique(given, return_inverse=True)[1]
    roots, piece = np.unique(graph.components(given), return_inverse=True)
    groups = given[roots]
    order = np.argsort(groups, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    several = np.count_nonzero(np.bincount(groups) > 1)
    if several:
        warn_user(
            f"{several} of {groups.max() + 1} agglomerates are in pieces that share no facet; "
            f"each piece is a polytope of its own now, {len(groups)} in all."
        )
    return number[piece], groups[order]


@stage("mesh")
def coarsen(mesh, count: int) -> Polytopes:
    """About `count` larger polytopes over all ranks, each a connected union of the mesh's polytopes. Collective.

    No cell moves: each rank joins its own polytopes (or cells, if the mesh has no polytopes), its share of `count`
    being that of its polytopes and one at the least, so results depend on the partition. A rank's pieces that share no
    facet stay apart. The degree of a union is the least of its polytopes. Raises MeshError.
    """
    fine = require_mesh(mesh, "coarsen").polytopes or Polytopes.of_cells(mesh)
    counts = np.array(mesh.comm.allgather(fine.count))
    with collectively(mesh.comm):
        checked_count(count, int(counts.sum()), "polytope")
    near = mesh.topology.facet_cells
    inner = near[(near >= 0).all(axis=1) & (near < mesh.num_cells).all(axis=1)]
    with collectively(mesh.comm):
        cells = Graph.from_pairs(inner, np.ones(mesh.num_cells))
        part = connected_parts(
            cells.quotient(fine.of_cell, fine.count), int(shared_out(counts, count, counts)[mesh.comm.rank])
        )
    number = int(part.max()) + 1 if len(part) else 0
    degrees = None
    if fine.degrees is not None:
        degrees = np.full(number, max(DEGREES), np.int32)
        np.minimum.at(degrees, part, fine.degrees)
    all_numbers = np.array(mesh.comm.allgather(number))
    numbers = all_numbers[: mesh.comm.rank].sum() + np.arange(number)
    return Polytopes(part[fine.of_cell].astype(np.int32), number, degrees, fine.balance, numbers)


DEGREES = range(7)


def checked_count(count, most: int, what: str) -> int:
    """A number of polytopes between 1 and `most`, the number of things of which `what` is one."""
    if isinstance(count, bool) or not isinstance(count, Integral) or not 1 <= count <= most:
        raise MeshError(
            f"{shown(count)} polytopes were asked for; a mesh of {plural(most, what)} takes a whole number 1 … {most}."
        )
    return int(count)


def label_groups(mesh, label) -> np.ndarray:
    """Group of each cell of this rank [num_cells] int64, by the names and values that it carries; 0 if it has none."""
    if not isinstance(label, str | list | tuple | set) or not label:
        raise MeshError(f"The label {shown(label)} was given to agglomerate; give a name or a list of them.")
    names = [label] if isinstance(label, str) else label
    found = np.zeros(mesh.topology.num_cells, np.int64)
    first, last = mesh.topology.stratum[mesh.dim]
    pairs = [pair for name in names for pair in mesh.labels_table.resolve(name, 0)]
    for k, (name, value) in enumerate(pairs):
        points = stratum_points(mesh.dm, name, value)
        found[points[(points >= first) & (points < last)] - first] = k + 1
    return found[mesh.topology.cells[: mesh.num_cells] - first]


def checked_degrees(degrees, groups: np.ndarray, middles: np.ndarray) -> np.ndarray | None:
    """Degree of each polytope [polytope] int, or None.

    degrees: as in `agglomerate`.   groups [polytope]: what each is a piece of.   middles: places [polytope, dim].
    """
    if degrees is None:
        return None
    of_place = callable(degrees)
    values = array("Degrees", evaluated(degrees, middles if of_place else None, "degrees"), MeshError)
    wanted = len(groups) if of_place else int(groups.max()) + 1
    if values.ndim and values.shape != (wanted,):
        raise MeshError(
            f"Degrees of shape {values.shape} were given; for {wanted} agglomerates give ({wanted},), or one number."
        )
    wrong = values.ravel()[~np.isin(values.ravel(), DEGREES)]
    if len(wrong) or values.dtype.kind not in "iu":
        got = shown(wrong[0]) if len(wrong) else f"type {values.dtype}"
        raise MeshError(f"A degree of {got} was given to a polytope; whole numbers 0 … {max(DEGREES)} are accepted.")
    of_all = np.broadcast_to(values, wanted)
    return of_all if of_place else of_all[groups]
