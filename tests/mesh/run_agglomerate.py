"""Under mpiexec: agglomerates of a mesh against those made on rank 0 alone, compared by their cells' centroids."""

import sys
import traceback
import warnings

import petsc4py

petsc4py.init(sys.argv)

import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402
from shuffled_boxes import MESHES, shuffled_box  # noqa: E402

from petsc_hdg.mesh import Mesh, agglomerate, coarsen, fewer_cells, polygons  # noqa: E402
from petsc_hdg.mesh.whole_mesh import centroids  # noqa: E402

comm = MPI.COMM_WORLD


def stop(*error) -> None:
    """End all ranks when one of them finds a fault."""
    traceback.print_exception(*error)
    sys.stderr.flush()
    comm.Abort(1)


sys.excepthook = stop


def described(mesh: Mesh) -> list | None:
    """Of every polytope by number, on rank 0: its degree and the centroids of its cells, sorted."""
    polytopes = mesh.polytopes
    x = centroids(mesh)
    degrees = polytopes.degrees if polytopes.degrees is not None else np.full(polytopes.count, -1)
    assert (np.diff(polytopes.numbers) > 0).all() and len(polytopes.of_cell) == mesh.num_cells
    own = [
        (int(number), int(degrees[k]), sorted(map(tuple, x[polytopes.of_cell == k].tolist())))
        for k, number in enumerate(polytopes.numbers)
    ]
    parts = mesh.comm.gather(own)
    return None if parts is None else sorted(row for part in parts for row in part)


def stripes(x: np.ndarray) -> np.ndarray:
    """Groups that lie on several ranks, with numbers of any size, one of them in two pieces."""
    return np.select([x[:, 0] < 0.2, x[:, 0] < 0.55, x[:, 0] < 0.8], [7, -3, 1000], 7)


def first_degrees(x: np.ndarray) -> np.ndarray:
    return 1 + (x[:, 1] > 0.5)


def compare(make, name: str, **how) -> Mesh:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mesh = agglomerate(make(comm), **how)
        said = [str(w.message) for w in caught if "agglomerates" in str(w.message)]
    everywhere = comm.gather(said)
    found = described(mesh)
    assert mesh.polytopes.balance >= 1 - 1e-12
    if comm.rank == 0:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            alone = agglomerate(make(MPI.COMM_SELF), **how)
        expected = described(alone)
        assert [row[0] for row in expected] == list(range(len(expected)))
        assert found == expected, f"{name}: polytopes differ from those on one rank"
        assert everywhere == [[str(w.message) for w in caught]] + [[]] * (comm.size - 1), everywhere
        assert mesh.boundaries == alone.boundaries and mesh.cell_regions == alone.cell_regions
    check_names(mesh, make)
    return mesh


def check_names(mesh: Mesh, make) -> None:
    """Boundaries and regions travel along."""
    before = make(comm)
    for label in mesh.boundaries:
        counts = comm.allreduce(np.array([len(m.boundary_facets(label)[0]) for m in (mesh, before)]))
        assert counts[0] == counts[1] > 0, label
    for region in mesh.cell_regions:
        sums = [m.comm.allreduce(centroids(m)[m.cell_mask(region)].sum(axis=0)) for m in (mesh, before)]
        assert np.allclose(*sums, rtol=1e-12), region


def boxed(faces, simplex=True, **more):
    return lambda comm: Mesh.box(faces, simplex, comm=comm, **more)


def shuffled(cell: str):
    cells, points = shuffled_box(cell, seed=9)
    return lambda comm: Mesh.from_cells(cells, points, cell=cell, comm=comm, partition_seed=4)


def check_overlap() -> None:
    mesh = agglomerate(Mesh.box((6, 6), comm=comm, overlap=1), 9)
    sizes = comm.allgather((mesh.num_cells, mesh.topology.num_cells))
    assert sum(own for own, _ in sizes) == 72
    assert comm.size == 1 or any(total > own for own, total in sizes), "the overlap was lost"


def check_balance() -> None:
    fine = agglomerate(Mesh.box((24, 24), comm=comm), 200)
    assert fine.polytopes.balance < 1.15, fine.polytopes.balance
    mixed = agglomerate(Mesh.box((24, 24), comm=comm), 200, degrees=lambda x: np.where(x[:, 0] < 0.3, 4, 1))
    functions = (mixed.polytopes.degrees + 1) * (mixed.polytopes.degrees + 2) // 2
    size = np.bincount(mixed.polytopes.of_cell, minlength=mixed.polytopes.count)
    loads = np.array(comm.allgather(float((size * functions**2).sum())))
    assert abs(loads.max() / loads.mean() - mixed.polytopes.balance) < 1e-12
    assert mixed.polytopes.balance < 1.25, mixed.polytopes.balance


def check_coarsen() -> None:
    fine = agglomerate(Mesh.box((16, 16), comm=comm), 60, degrees=lambda x: np.where(x[:, 0] < 0.5, 1, 3))
    coarse = coarsen(fine, 12)
    parents = {(int(k), int(c)) for k, c in zip(fine.polytopes.of_cell, coarse.of_cell, strict=True)}
    assert len(parents) == fine.polytopes.count, "a polytope lies in two coarser ones"
    least = np.full(coarse.count, 9)
    for k, c in parents:
        least[c] = min(least[c], fine.polytopes.degrees[k])
    assert (coarse.degrees == least).all()
    numbers = sorted(n for part in comm.allgather(coarse.numbers.tolist()) for n in part)
    assert numbers == list(range(len(numbers))) and len(numbers) >= 12
    assert comm.allreduce(coarsen(fine, 1).count) >= sum(n > 0 for n in comm.allgather(fine.num_cells))


def bricks(rows: int, columns: int):
    """A wall of bricks, each with six vertices: those of its neighbours above and below are listed."""
    points = [[x / 2, y] for y in range(rows + 1) for x in range(2 * columns + 2)]
    cells = []
    for y in range(rows):
        low = [y * (2 * columns + 2) + y % 2 + 2 * k for k in range(columns)]
        cells += [[a, a + 1, a + 2, *(a + 2 * columns + 2 + np.array([2, 1, 0]))] for a in low]
    return cells, points


def check_polygons() -> None:
    """Polygons that rank 0 gives: each is whole on one rank, with its number, degree and names."""
    cells, points = bricks(5, 6)
    given = (cells, points, {"floor": [[k, k + 1] for k in range(12)]}, {"odd": range(1, 30, 2)})
    mesh = polygons(*(given if comm.rank == 0 else (None, None)), degrees=np.arange(30) % 7, comm=comm)
    found = described(mesh)
    marked = comm.gather(set(mesh.polytopes.numbers[mesh.polytopes.of_cell[mesh.cell_mask("odd")]].tolist()))
    floor = comm.gather(len(mesh.boundary_facets("floor")[0]))
    if comm.rank == 0:
        assert found == described(polygons(*given, degrees=np.arange(30) % 7, comm=MPI.COMM_SELF))
        assert [row[:2] for row in found] == [(k, k % 7) for k in range(30)]
        assert all(
            np.allclose(np.mean(row[2], axis=0), np.mean(np.array(points)[cells[row[0]]], axis=0)) for row in found
        )
        assert sorted(k for part in marked for k in part) == list(range(1, 30, 2)) and sum(floor) == 12


def check_fewer_cells() -> None:
    """The same triangles from agglomerates on any number of ranks."""
    degrees = np.arange(9) % 7
    found = described(fewer_cells(agglomerate(Mesh.box((12, 12), comm=comm), 9, degrees=degrees)))
    if comm.rank == 0:
        alone = described(fewer_cells(agglomerate(Mesh.box((12, 12), comm=MPI.COMM_SELF), 9, degrees=degrees)))
        assert [row[:2] for row in found] == [(k, k) if k < 7 else (k, k - 7) for k in range(9)]
        assert sum(len(row[2]) for row in found) == sum(len(row[2]) for row in alone) < 150


for overlap in (0, 1):
    compare(boxed((9, 8), overlap=overlap), "count", count=11)
    compare(boxed((9, 8), overlap=overlap, partition_seed=2), "random partition", count=11)
compare(boxed((9, 8)), "each cell", count=144)
compare(boxed((9, 8)), "all cells", count=1)
compare(boxed((4, 3, 3)), "tetrahedra", count=10, degrees=2)
compare(boxed((6, 6), partition_seed=1), "groups", groups=stripes, degrees=[2, 0, 6])
compare(boxed((6, 6), False), "squares", count=5, degrees=first_degrees)
compare(boxed((12, 12)), "cost", count=12, cost=lambda x: 1 + 20 * (x[:, 0] < 0.3))
for shape in ("triangle", "tetrahedron", "hexahedron"):
    compare(shuffled(shape), shape, count=7)
compare(lambda comm: Mesh.from_file(MESHES / "regions.msh", comm=comm), "label", label=("west", "east"))
compare(lambda comm: Mesh.from_file(MESHES / "regions.msh", comm=comm), "one label", label="west", degrees=[1, 2])
check_polygons()
check_fewer_cells()
check_overlap()
check_balance()
check_coarsen()
if comm.rank == 0:
    print("agglomerates agree")
