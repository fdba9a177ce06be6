"""Under mpiexec: what touches other ranks comes last, told from coordinates that all ranks gather."""

import sys

import numpy as np
import petsc4py

petsc4py.init(sys.argv)

from mpi4py import MPI  # noqa: E402

import petsc_hdg as fe  # noqa: E402
from petsc_hdg.mesh.order import BY_FACET, BY_VERTEX, INNER, plex_order, point_classes  # noqa: E402
from petsc_hdg.run import guarded  # noqa: E402

MESHES = (([7, 9], True), ([6, 5], False), ([4, 3, 3], True), ([4, 3, 4], False))


def keys(x: np.ndarray) -> list[tuple]:
    """What identifies points [item, point, dim] or [item, dim], in any order of the points."""
    rounded = np.round(x * 840).astype(int)
    return [tuple(sorted(map(tuple, row))) if row.ndim == 2 else tuple(row) for row in rounded]


def elsewhere(comm, mine: list[tuple]) -> np.ndarray:
    """Which of mine other ranks have, too."""
    others = set().union(*(set(k) for r, k in enumerate(comm.allgather(mine)) if r != comm.rank))
    return np.array([k in others for k in mine], bool)


def check(faces, simplex: bool, seed) -> int:
    mesh = fe.Mesh.box(faces, simplex=simplex, partition_seed=seed)
    topology, comm, count = mesh.topology, mesh.comm, mesh.num_cells
    x = mesh.geometry.nodes
    vertices = elsewhere(comm, keys(x[: mesh.num_vertices]))[topology.cell_vertices[:count]].any(axis=1)
    facet_vertices = topology.entity_vertices[mesh.dim - 1]
    facets = elsewhere(comm, keys(x[facet_vertices]))
    by_facet = facets[topology.entity[mesh.dim - 1][:count]].any(axis=1)
    wanted = np.where(by_facet, BY_FACET, np.where(vertices, BY_VERTEX, INNER))
    assert np.array_equal(mesh.cell_classes, wanted) and (np.diff(wanted) >= 0).all()
    assert mesh.num_inner == (wanted == INNER).sum() and mesh.num_facet_inner == (wanted != BY_FACET).sum()
    start, _ = mesh.dm.getChart()
    along = point_classes(mesh)[plex_order(mesh, range(mesh.dim + 1)) - start]
    assert (np.diff(along) >= 0).all()
    first = topology.stratum[mesh.dim - 1][0] - start
    of_facets = np.zeros(mesh.num_facets, int)
    entity = topology.entity[mesh.dim - 1][:count]
    np.maximum.at(of_facets, entity, wanted[:, None])
    assert np.array_equal(point_classes(mesh)[first : first + mesh.num_facets], of_facets)
    return comm.allreduce(mesh.num_inner)


def main() -> None:
    inner = [check(faces, simplex, seed) for faces, simplex in MESHES for seed in (None, 3)]
    comm = MPI.COMM_WORLD
    assert inner[0] > 0 and (comm.size == 1 or inner[0] < 126), inner  # both kinds occur
    if comm.allreduce(1) == comm.size and comm.rank == 0:
        print("order agrees")


guarded(main)
