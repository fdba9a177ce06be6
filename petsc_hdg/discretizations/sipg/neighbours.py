"""Neighbour behind each facet of each cell: a cell of this rank, a ghost of another, or a boundary condition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import basix
import numpy as np

from ...device.halo_plan import HaloPlan
from ...errors import PhysicsError, collectively
from ...mesh.shapes import shape
from ...reference import entity_shapes
from ...threads import stable_order

NOTHING = -1  # behind a facet without a term; the boundary kind k is -2 - k
MOST_NATURAL = 31  # bits of the mask that tells which natural conditions hold on a facet
MAPS = {  # of corners of facets, see Orientations
    "interval": np.array([[0, 1], [1, 0]]),
    "triangle": np.array(list(permutations(range(3)))),
    "quadrilateral": np.array(
        [m for m in permutations(range(4)) if m[0] ^ m[1] ^ m[2] ^ m[3] == 0 and m[0] ^ m[3] == 3]
    ),
}


@dataclass(frozen=True)
class Orientations:
    """Orientations of the facets of a cell shape; of several, joined by " and ", F counts the facets of each in turn.

    Vertices of simplices ascend in an order of all, so their facets agree as they are: one orientation. An edge of a
    quadrilateral has 2, a face of a hexahedron 8, a triangle beside other shapes 6. Each kind's first is the identity.
    kinds: shapes of facets.   kind_of [F]: number of each facet's.   corners [F, corner]: vertices of the cell in
    basix' order, the last one of a triangle among quadrilaterals twice.
    """

    cell: str

    @cached_property
    def _shapes(self) -> list[str]:
        return [name for cell in self.cell.split(" and ") for name in entity_shapes(cell)[-2]]

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._shapes))

    @cached_property
    def kind_of(self) -> np.ndarray:
        return np.array([self.kinds.index(name) for name in self._shapes])

    @cached_property
    def corners(self) -> np.ndarray:
        of_cells = [shape(cell).entities[-2] for cell in self.cell.split(" and ")]
        most = max(corners.shape[1] for corners in of_cells)
        return np.concatenate([np.pad(of, ((0, 0), (0, most - of.shape[1])), mode="edge") for of in of_cells])

    @cached_property
    def maps(self) -> list[np.ndarray]:
        """Corner of the neighbour's facet [orientation, corner] at each corner of the own one, of each kind."""
        if self.cell in ("triangle", "tetrahedron"):
            return [np.arange(self.corners.shape[1])[None]]
        return [MAPS[kind] for kind in self.kinds]

    @property
    def count(self) -> int:
        return sum(map(len, self.maps))

    def of_neighbours(self, vertices: np.ndarray, neighbour: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Orientation [cell, F] of each facet, 0 on the boundary.

        vertices [extended cell, vertex] global numbers; neighbour, place [cell, F]: cell behind and its facet.
        """
        found = np.zeros(neighbour.shape, np.int32)
        if self.count == 1:
            return found
        faces, count = self.corners.shape
        facets = vertices[:, self.corners].reshape(-1, count)
        inside = np.flatnonzero(neighbour >= 0)
        own = facets[inside]
        other = facets[neighbour.ravel()[inside] * np.int64(faces) + place.ravel()[inside]]
        first, second = ((other == own[:, corner, None]).argmax(axis=1) for corner in (0, 1))
        number, start = np.zeros((len(self.kinds), count, count), np.int32), 0
        for kind, maps in enumerate(self.maps):
            number[kind, maps[:, 0], maps[:, 1]] = start + np.arange(len(maps))
            start += len(maps)
        found.ravel()[inside] = number[self.kind_of[inside % faces], first, second]
        return found

    def permutations(self, points: np.ndarray, kind: int = 0) -> np.ndarray:
        """Point of the neighbour's facet [orientation, point] at each point [point, dim - 1] of the own one.

        points: of the reference facet; each orientation takes their set to itself.   kind: of the facets.
        """
        corner, rows = basix.geometry(basix.CellType[self.kinds[kind]]), []
        for mapped in self.maps[kind]:
            frame = corner[mapped[[1, 2][: corner.shape[1]]]] - corner[mapped[0]]
            moved = corner[mapped[0]] + points @ frame
            rows.append(np.argmin(np.abs(moved[:, None] - points[None]).sum(axis=2), axis=1))
        return np.array(rows)


@dataclass(frozen=True)
class Neighbours:
    """Cells of a rank with their facet neighbours; those on other ranks, each once, follow as ghost cells. Of several
    shapes F counts the facets of each in turn, and there is nothing behind those of other shapes than a cell's.

    num_cells   owned cells;  ghost_rank, ghost_cell [ghost]: the owner of each ghost and its number there
    neighbour   [cell, F] cell behind each facet, ghosts from num_cells on; -1 none; -2 - k boundary kind k, which
                facets between cells with Dirichlet data are for both
    facet       [cell, F] the facet's place in the neighbour, 0 on the boundary
    orientation [cell, F] row of `Orientations.permutations`
    kinds       [kind, component + 1] Dirichlet condition of each component or -1, then a bit for each natural condition
    wall        [cell, F] 1 + the first of three kinds with the natural conditions of a facet between cells: those that
                the cell sees, that the neighbour sees, and the first again; 0: none
    has_walls   whether there are such facets on any rank
    plan        HaloPlan of the ghost cells
    vertices    [num_cells + ghost, vertex] global vertex numbers
    cell_nodes  [num_cells + ghost, node], nodes [node, dim]: geometry, that of ghosts included
    """

    num_cells: int
    ghost_rank: np.ndarray
    ghost_cell: np.ndarray
    neighbour: np.ndarray
    facet: np.ndarray
    orientation: np.ndarray
    kinds: np.ndarray
    wall: np.ndarray
    has_walls: bool
    plan: HaloPlan
    vertices: np.ndarray
    cell_nodes: np.ndarray
    nodes: np.ndarray

    @property
    def num_ghosts(self) -> int:
        return len(self.ghost_rank)

    @property
    def num_extended(self) -> int:
        """Owned and ghost cells."""
        return self.num_cells + self.num_ghosts

    @cached_property
    def has_ghost(self) -> np.ndarray:
        """Cells with a ghost neighbour [cell] bool."""
        return (self.neighbour >= self.num_cells).any(axis=1)

    def extended(self, owned: np.ndarray) -> np.ndarray:
        """Values [cell, …] of owned cells, followed by those of ghost cells. Collective."""
        return np.concatenate([owned, _of_ghosts(self.plan, owned)])


def _of_ghosts(plan: HaloPlan, owned: np.ndarray) -> np.ndarray:
    """Values [ghost, …] of the ghost cells, from those [cell, …] of their owners. Collective."""
    ghosts = np.zeros((plan.receive_ghosts.size, *owned.shape[1:]), owned.dtype)
    plan.forward_host(np.ascontiguousarray(owned), ghosts)
    return ghosts


def find_neighbours(mesh, physics, orientations: Orientations) -> Neighbours:
    """Neighbours of a mesh's owned cells, boundary kinds by the conditions. Collective. Raises PhysicsError."""
    facets, first = facets_of(mesh)
    neighbour, place, ghost_rank, ghost_cell = _across(mesh, facets)
    plan = HaloPlan(mesh.comm, mesh.num_cells, ghost_rank, ghost_cell)
    kinds, wall = _kinds(mesh, physics, neighbour, facets, first)
    place[neighbour < 0] = 0
    count = mesh.num_cells

    topology, geometry = mesh.topology, mesh.geometry
    own = topology.vertex_global[topology.cell_vertices[:count]]
    vertices = np.concatenate([own, _of_ghosts(plan, own)])
    places = _of_ghosts(plan, geometry.nodes[geometry.cell_nodes[:count]])
    new = len(geometry.nodes) + np.arange(places.shape[0] * places.shape[1])
    cell_nodes = np.concatenate([geometry.cell_nodes[:count], new.reshape(places.shape[:2])]).astype(np.int32)
    return Neighbours(
        num_cells=count,
        ghost_rank=ghost_rank,
        ghost_cell=ghost_cell,
        neighbour=neighbour,
        facet=place,
        orientation=orientations.of_neighbours(vertices, neighbour, place),
        kinds=kinds,
        wall=wall,
        has_walls=bool(mesh.comm.allreduce(int(wall.any()))),
        plan=plan,
        vertices=vertices,
        cell_nodes=cell_nodes,
        nodes=np.concatenate([geometry.nodes, places.reshape(-1, mesh.dim)]),
    )


def facets_of(mesh) -> tuple[np.ndarray, np.ndarray]:
    """Facets [cell, F] of owned cells, `num_facets` where a cell has none, and the first of its shape [cell]."""
    counts = [part.shape.num_facets for part in mesh.parts]
    found, first = np.full((mesh.num_cells, sum(counts)), mesh.num_facets, np.int32), np.zeros(mesh.num_cells, int)
    for part, start, count in zip(mesh.parts, np.cumsum([0, *counts]), counts, strict=False):
        found[part.cells, start : start + count] = part.topology.entity[mesh.dim - 1][: part.num_cells]
        first[part.cells] = start
    return found, first


def _across(mesh, facets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """neighbour, facet [cell, F], and the ghosts' ranks and cells there. Collective."""
    cells, faces = facets.shape
    neighbour = np.full(cells * faces, NOTHING, np.int32)
    place = np.zeros(cells * faces, np.int32)
    flat = facets.ravel()
    order = stable_order(flat)
    first = np.flatnonzero((flat[order][1:] == flat[order][:-1]) & (flat[order][1:] < mesh.num_facets))
    a, b = order[first], order[first + 1]
    for here, there in ((a, b), (b, a)):
        neighbour[here], place[here] = there // faces, there % faces
    ghost_rank, ghost_cell = _remote(mesh, flat, faces, neighbour, place)
    return neighbour.reshape(cells, faces), place.reshape(cells, faces), ghost_rank, ghost_cell


def _remote(mesh, flat, faces: int, neighbour, place) -> tuple[np.ndarray, np.ndarray]:
    """Complete neighbours across ranks in place; the ghosts' ranks and cells. Collective.

    Both ranks of a shared facet add their numbers, so that what is left after taking away one's own is the other's.
    """
    alone = np.flatnonzero((neighbour < 0) & (flat < mesh.num_facets))
    mine = {"rank": np.full(len(alone), mesh.comm.rank), "cell": alone // faces, "place": alone % faces}
    shared = mesh.facet_counts[flat[alone]] == 2
    theirs = {}
    for name, values in mine.items():
        on_facets = np.zeros(mesh.num_facets, np.int32)
        on_facets[flat[alone]] = values
        theirs[name] = (mesh.exchange_facets(on_facets)[flat[alone]] - values)[shared]
    alone = alone[shared]
    pairs = np.stack([theirs["rank"], theirs["cell"]], axis=1).reshape(-1, 2)
    ghosts, which = np.unique(pairs, axis=0, return_inverse=True)
    neighbour[alone] = mesh.num_cells + which.ravel()
    place[alone] = theirs["place"]
    return ghosts[:, 0].astype(np.int32), ghosts[:, 1].astype(np.int32)


def _kinds(
    mesh, physics, neighbour: np.ndarray, facets: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Kinds of facets and `wall`; those of boundary facets, and of facets between cells with Dirichlet data, are
    written into `neighbour`. Collective. Raises PhysicsError."""
    rows = np.full((*facets.shape, physics.num_components + 1), -1, np.int32)
    rows[:, :, -1] = 0
    for number, condition in enumerate(physics.dirichlet):
        mask = np.append(mesh.facet_mask(condition.label), False)[facets]
        for component in (condition.field.offset + c for c in condition.components):
            free = mask & (rows[:, :, component] < 0)
            rows[free, component] = number
    held = (rows[:, :, :-1] >= 0).sum(axis=2)
    _check_held(mesh, physics, rows[(neighbour >= 0) & (held > 0) & (held < physics.num_components)])
    for number, condition in enumerate(physics.natural):
        cells, local = mesh.boundary_facets(condition.label, condition.may_be_inside, condition.side)
        rows[cells, start[cells] + local, -1] |= 1 << number
    outside = (neighbour < 0) & ((held > 0) | (rows[:, :, -1] > 0)) | (held == physics.num_components)
    kinds, which = np.unique(rows[outside], axis=0, return_inverse=True)
    neighbour[outside] = -2 - which.ravel()
    seen = np.where(neighbour >= 0, rows[:, :, -1], 0)
    on_facets = np.zeros(mesh.num_facets + 1, np.int32)
    np.add.at(on_facets, facets, seen)
    beyond = np.append(mesh.exchange_facets(on_facets[:-1]), 0)[facets] - seen  # one cell of a facet sees each bit
    between = (neighbour >= 0) & ((seen | beyond) != 0)
    pairs, which = np.unique(np.stack([seen, beyond], axis=2)[between], axis=0, return_inverse=True)
    walls = np.full((3 * len(pairs), kinds.shape[1]), -1)
    walls[:, -1] = pairs[:, [0, 1, 0]].ravel()
    wall = np.zeros(neighbour.shape, np.int32)
    wall[between] = 1 + len(kinds) + 3 * which.ravel()
    return np.concatenate([kinds, walls]).astype(np.int32), wall


def _check_held(mesh, physics, rows: np.ndarray) -> None:
    """Raise PhysicsError for facets inside the mesh some of whose components have data. Collective.

    rows: of such facets of this rank's cells, as `kinds`.
    """
    numbers = mesh.comm.allreduce(set(rows[:, :-1].ravel().tolist()) - {-1}, set.union)
    with collectively(mesh.comm):
        if numbers:
            labels = ", ".join(sorted({f"'{physics.dirichlet[k].label}'" for k in numbers}))
            raise PhysicsError(
                f"physics '{physics.name}' has Dirichlet conditions of some components on {labels}, which holds facets "
                "inside the mesh; sipg_gpu and poly_gpu take data of all components there: give -fe_backend cg_gpu or "
                "hdg_gpu, or cut the mesh there"
            )
