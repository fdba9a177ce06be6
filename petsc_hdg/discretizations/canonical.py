"""Unknowns in an order that is the same for every partition: cell by cell, each at the first cell that has it."""

from __future__ import annotations

import basix
import numpy as np

from ..errors import MeshError
from ..mesh.canonical import CanonicalCells, GlobalOrder, mixed, summed
from .dofmap import FieldSpace

NOBODY = np.iinfo(np.int64).max


class CanonicalUnknowns:
    """Unknowns of PETSc's vector, and data of cells, whatever the partition. Making one is collective.

    cells: CanonicalCells of the mesh.
    order: GlobalOrder of this rank's unknowns, by keys: number of a cell, then the place in it.
    digest: hexadecimal, of the keys, and with polytopes of the cells that belong together.
    Raises MeshError if places do not tell cells apart.
    """

    def __init__(self, discretization):
        self.disc, comm = discretization, discretization.mesh.comm
        self.cells = CanonicalCells(discretization.mesh)
        poly = discretization.is_polytopic
        keys, bound, extra = _polytopic(self.disc, self.cells) if poly else _nodal(self.disc, self.cells)
        try:
            self.order = GlobalOrder.of_keys(comm, keys, bound)
        except ValueError:
            raise MeshError("Cells of the mesh lie at one place, so that no order by places can be found.") from None
        self.digest = summed(comm, np.concatenate([mixed(keys), extra]))


def _polytopic(disc, cells: CanonicalCells) -> tuple[np.ndarray, int, np.ndarray]:
    """Keys [owned], a bound of them, and numbers [cell] of which polytope each cell belongs to. Collective."""
    polytopes, comm = disc.polytopes, disc.mesh.comm
    first_cell = np.full(polytopes.count, NOBODY)
    np.minimum.at(first_cell, polytopes.of_cell, cells.numbers)
    starts = disc.numbering.first[: polytopes.count + 1].astype(np.int64)
    sizes = np.diff(starts)
    most = max(1, comm.allreduce(int(sizes.max(initial=0)), max))
    inside = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    belongs = mixed(mixed(cells.numbers) + first_cell[polytopes.of_cell].astype(np.uint64))
    return np.repeat(first_cell, sizes) * most + inside, cells.total * most, belongs


def _nodal(disc, cells: CanonicalCells) -> tuple[np.ndarray, int, np.ndarray]:
    """Keys [owned] of unknowns that stand at nodes, a bound of them, and nothing more. Collective."""
    dofmap, comm = disc.dofmap, disc.mesh.comm
    keys = np.full(dofmap.num_owned + dofmap.num_ghosts + dofmap.num_constrained, NOBODY)
    most = max(sum(space.num_dofs for space in part.spaces) for part in disc.parts)
    for number, part in enumerate(disc.parts):
        of_part = cell_keys(cells, part.spaces, number, most)
        np.minimum.at(keys, part.dofmap.compact[part.dofmap.cell_dofs].ravel(), of_part.ravel())
    _take_least(comm, dofmap, keys)
    keys, bound = keys[: dofmap.num_owned], max(1, cells.total * most)
    if disc.in_time:  # vectors are trace and cells
        of_cells = cell_keys(cells, [inside_space(disc)])
        keys = np.concatenate([keys, bound + of_cells.ravel()])
        bound += cells.total * of_cells.shape[1]
    return keys, bound, np.zeros(0, np.uint64)


def inside_space(disc) -> FieldSpace:
    """All functions of a cell of a condensed discretization, whatever their field."""
    return FieldSpace("cells", disc.cell_element, disc.components, 0, 0, 0)


def cell_keys(cells: CanonicalCells, spaces, part: int = 0, most: int = 0) -> np.ndarray:
    """Keys [cell, dof] of the degrees of freedom of this rank's cells of a part of the mesh, all different.

    most: degrees of freedom of a cell of any part; 0: those of this one.
    """
    mesh, count = cells.mesh.parts[part], sum(space.num_dofs for space in spaces)
    if not mesh.num_cells:
        return np.zeros((0, count), np.int64)
    patterns, which = np.unique(cells.frames[part], axis=0, return_inverse=True)
    places = np.array([canonical_places(mesh.cell, spaces, frame) for frame in patterns], np.int64)
    return cells.numbers[mesh.cells, None] * max(count, most) + places[which.ravel()]


def _take_least(comm, dofmap, keys: np.ndarray) -> None:
    """Lower the keys of owned unknowns to those that other ranks have for them. Collective."""
    ghosts = slice(dofmap.num_owned, dofmap.num_owned + dofmap.num_ghosts)
    known = keys[ghosts] < NOBODY
    ranks, index, theirs = dofmap.ghost_rank[known], dofmap.ghost_index[known], keys[ghosts][known]
    parts = [ranks == rank for rank in range(comm.size)]
    for index, least in comm.alltoall([(index[part], theirs[part]) for part in parts]):
        np.minimum.at(keys, index, least)


def canonical_places(cell: str, spaces, frame: np.ndarray) -> np.ndarray:
    """Place [dof] of each degree of freedom of a cell as if its vertices stood as in `frame` [vertex]."""
    found = [s.first_dof + _node_places(cell, s.element, frame)[:, None] * s.components + np.arange(s.components)
             for s in spaces]  # fmt: skip
    return np.concatenate([places.ravel() for places in found])


def _node_places(cell: str, element, frame: np.ndarray) -> np.ndarray:
    """Function [basis] of an element that takes the place of each one, seen from a frame [vertex]."""
    corners = basix.geometry(basix.CellType[cell])
    dim = corners.shape[1]
    units = [int(np.flatnonzero((corners == unit).all(axis=1))[0]) for unit in np.eye(dim)]
    origin = corners[frame[0]]
    axes = (corners[frame[units]] - origin).T
    points = np.concatenate([_middles(cell, element), np.asarray(element.nodes)], axis=1).reshape(-1, 2, dim)
    seen = np.linalg.solve(axes, (points - origin)[..., None])[..., 0]
    distance = np.abs(seen[:, None] - points[None]).sum(axis=(2, 3))
    places = distance.argmin(axis=1)
    assert distance.min(axis=1).max() < 1e-10 and len(set(places)) == len(places), "nodes that are not symmetric"
    return places


def _middles(cell: str, element) -> np.ndarray:
    """Middle [basis, dim] of the sub-entity of the reference cell that each function belongs to: facets of a trace
    have nodes at the same places."""
    kind = basix.CellType[cell]
    corners, topology = basix.geometry(kind), basix.topology(kind)
    found = np.zeros((element.num_basis, corners.shape[1]))
    for entities, functions in zip(topology, element.entity_dofs, strict=True):
        for vertices, basis in zip(entities, functions, strict=True):
            found[basis] = corners[vertices].mean(axis=0)
    return found
