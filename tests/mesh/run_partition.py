"""Under mpiexec: each rank's arrays against the same mesh on rank 0 alone: run_partition.py OVERLAP,SEED ..."""

import sys

import petsc4py

petsc4py.init(sys.argv)

import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402
from shuffled_boxes import MESHES, shuffled_box  # noqa: E402
from test_geometry import volume  # noqa: E402

from petsc_hdg.mesh import Mesh  # noqa: E402

comm = MPI.COMM_WORLD


def places(mesh: Mesh, mask: np.ndarray) -> set:
    """The plex points in a mask, each as its dimension and the sorted coordinates of its vertices."""
    vertices = mesh.topology.entity_vertices
    found = set()
    for d in range(mesh.dim):
        start, end = mesh.topology.stratum[d]
        for row in vertices[d][mask[start:end]]:
            found.add((d, *sorted(map(tuple, mesh.geometry.nodes[row].tolist()))))
    return found


def facets(mesh: Mesh, label: str) -> list:
    """The facets of a boundary, as the sorted coordinates of their vertices."""
    cells, local = mesh.boundary_facets(label)
    rows = np.take_along_axis(mesh.topology.cell_vertices[cells], mesh.shape.entities[mesh.dim - 1][local], axis=1)
    return [tuple(sorted(map(tuple, mesh.geometry.nodes[row].tolist()))) for row in rows]


def union(parts, kind):
    gathered = comm.gather(parts)
    return kind(x for part in gathered for x in part) if comm.rank == 0 else None


def orders_agree(mesh: Mesh) -> bool:
    """Copies of a cell, edge or face on several ranks list their vertices in the same order, as the same numbers."""
    seen = {}
    tables = {**mesh.topology.entity_vertices, mesh.dim: mesh.topology.cell_vertices}
    mine = {
        (d, tuple(sorted(row))): tuple(row)
        for d, table in tables.items()
        for row in mesh.topology.vertex_global[table].tolist()
    }
    for part in comm.allgather(mine):
        for key, row in part.items():
            if seen.setdefault(key, row) != row:
                return False
    return True


def numbers_agree(mesh: Mesh) -> bool:
    """A vertex has one number, 0 … n - 1, on all ranks."""
    where = {}
    points = mesh.geometry.nodes[: mesh.num_vertices].tolist()
    for numbers, coordinates in comm.allgather((mesh.topology.vertex_global.tolist(), points)):
        for number, x in zip(numbers, coordinates, strict=True):
            if where.setdefault(number, x) != x:
                return False
    return sorted(where) == list(range(len(where))) and len({tuple(x) for x in where.values()}) == len(where)


def compare(make, name: str, overlap: int, seed: int) -> None:
    """A seed below zero leaves the partition to PETSc."""
    mesh = make(comm, overlap=overlap, partition_seed=seed if seed >= 0 else None)
    alone = make(MPI.COMM_SELF) if comm.rank == 0 else None
    sizes = comm.allgather((mesh.num_cells, mesh.topology.num_cells))
    assert orders_agree(mesh), f"{name}: orders differ between ranks"
    assert numbers_agree(mesh), f"{name}: numbers differ between ranks"
    ghosts = mesh.exchange.owned()[mesh.topology.cells]
    assert ghosts[: mesh.num_cells].all() and not ghosts[mesh.num_cells :].any()
    total = comm.allreduce(volume(mesh))
    if overlap and sum(own > 0 for own, _ in sizes) > 1:
        assert any(all_cells > own for own, all_cells in sizes), f"{name}: no overlap"
    if not overlap:
        assert all(all_cells == own for own, all_cells in sizes), f"{name}: overlap"
    for label in mesh.boundaries:
        listed = union(facets(mesh, label), list)
        marked = union(places(mesh, mesh.closure_mask(label)), set)
        # Every rank that holds a point knows whether it is in the closure.
        everywhere = places(mesh, np.ones(mesh.dm.getChart()[1], bool)) & set(comm.bcast(marked))
        assert everywhere == places(mesh, mesh.closure_mask(label)), f"{name}: closure of {label} on rank {comm.rank}"
        if alone is not None:
            assert sorted(listed) == sorted(facets(alone, label)), f"{name}: facets of {label}"
            assert marked == places(alone, alone.closure_mask(label)), f"{name}: closure of {label}"
    for region in mesh.cell_regions:
        count = comm.allreduce(int(mesh.cell_mask(region).sum()))
        assert alone is None or count == alone.cell_mask(region).sum(), f"{name}: cells of {region}"
    if alone is not None:
        assert sum(own for own, _ in sizes) == alone.num_cells
        assert abs(total - volume(alone)) < 1e-12 * volume(alone), f"{name}: volume"
        assert mesh.boundaries == alone.boundaries and mesh.cell_regions == alone.cell_regions


def shuffled(cell: str):
    cells, points = shuffled_box(cell, seed=7)
    low = points[:, 0] == 0
    alone = Mesh.from_cells(cells, points, cell=cell, comm=MPI.COMM_SELF)
    found, local = alone.boundary_facets("boundary")
    rows = np.take_along_axis(alone.topology.cell_vertices[found], alone.shape.entities[alone.dim - 1][local], axis=1)
    numbers = np.array([np.flatnonzero((points == x).all(axis=1))[0] for x in alone.geometry.nodes])
    rows = numbers[rows]
    named = {"low": rows[low[rows].all(axis=1)]}
    half = {"half": np.flatnonzero(points[cells].mean(axis=1)[:, 0] < 0.5)}
    return lambda comm, **more: Mesh.from_cells(cells, points, named, half, cell=cell, comm=comm, **more)


def read(file: str):
    return lambda comm, **more: Mesh.from_file(MESHES / file, comm=comm, **more)


MADE = {shape: shuffled(shape) for shape in ("triangle", "quadrilateral", "tetrahedron", "hexahedron")}
FILES = ("regions.msh", "regions_bin.msh", "disk_tri.msh", "disk_quad.msh", "ball_tet.msh")
MADE |= {name: read(name) for name in FILES}
MADE["two triangles"] = lambda comm, **more: Mesh.box((1, 1), comm=comm, **more)
MADE["one square"] = lambda comm, **more: Mesh.box((1, 1), False, comm=comm, **more)
for way in sys.argv[1:]:
    for name, make in MADE.items():
        compare(make, f"{name}, {way}", *map(int, way.split(",")))
    if comm.rank == 0:
        print(f"meshes agree: {way}")
