"""Under mpiexec: which rank has which cell, as one JSON object {mesh: digest}; `main` says what else must hold."""

import hashlib
import json
from unittest import mock

import numpy as np
from mpi4py import MPI
from petsc4py import PETSc
from shuffled_boxes import MESHES, shuffled_box

import petsc_hdg as fe
from petsc_hdg.mesh.partition import distribute
from petsc_hdg.mesh.whole_mesh import centroids
from petsc_hdg.physics import library
from petsc_hdg.problem.results.results import balance_lines
from petsc_hdg.run import guarded

COMM = MPI.COMM_WORLD
DATABASE = PETSc.Options()
BOXES = [((7, 5), True), ((7, 5), False), ((3, 2, 4), True), ((3, 2, 4), False), ((1, 1), False)]


def steep(x):
    """Costs of cells [cell] for centroids [cell, dim]."""
    return 1 + 9.0 * (x[:, 0] > 0.7)


def listed():
    cells, points = shuffled_box("tetrahedron", seed=3)
    return fe.Mesh.from_cells(cells, points, cell="tetrahedron")


def by_options(**options: str):
    """A mesh of PETSc's options, which are unset after."""
    for name, value in options.items():
        DATABASE[name] = value
    try:
        return fe.Mesh.from_options()
    finally:
        for name in options:
            DATABASE.delValue(name)


MAKERS = {
    "box": lambda: fe.Mesh.box((9, 7)),
    "overlap": lambda: fe.Mesh.box((4, 3, 3), False, overlap=1),
    "Gmsh": lambda: fe.Mesh.from_file(MESHES / "regions.msh"),
    "list": listed,
    "refined before": lambda: by_options(dm_refine_pre="2"),
    "refined before and after": lambda: by_options(dm_refine_pre="1", dm_refine="1"),
    "refined": lambda: by_options(dm_plex_box_faces="4,4", dm_refine="1"),
    "reordered": lambda: by_options(dm_plex_box_faces="6,6", dm_plex_reorder="rcm"),
    "PETSc's own": lambda: by_options(dm_plex_shape="cylinder", dm_plex_dim="3", dm_refine_pre="1"),
    "costs": lambda: fe.rebalance(fe.Mesh.box((9, 7)), steep),
    "costs of another partition": lambda: fe.rebalance(fe.Mesh.box((9, 7), partition_seed=2), steep),
    "polytopes": lambda: fe.agglomerate(fe.Mesh.box((9, 7)), 11),
}


def digest(mesh) -> str:
    """Where each rank's cells are, in any order."""
    x = centroids(mesh)
    mine = hashlib.sha256(np.ascontiguousarray(x[np.lexsort(x.T)]).tobytes()).hexdigest()
    return hashlib.sha256("".join(COMM.allgather(mine)).encode()).hexdigest()


def digests(**options: str) -> dict[str, str]:
    """Digest of each mesh under options."""
    for name, value in options.items():
        DATABASE[name] = value
    found = {name: digest(make()) for name, make in MAKERS.items()}
    for name in options:
        DATABASE.delValue(name)
    return found


def even() -> None:
    """No rank has much more than its share, nor a partitioner that remembers where cells went."""
    for name in ("box", "list", "refined before", "reordered"):
        mesh = MAKERS[name]()
        sizes = COMM.allgather(mesh.num_cells)
        assert max(sizes) - min(sizes) <= 0.1 * sum(sizes) / COMM.size + 1, (name, sizes)
        assert mesh.dm.getPartitioner().getType() != "shell", name
    sizes = COMM.allgather(fe.Mesh.box((1, 1)).num_cells)
    assert max(sizes) == 1 and sum(sizes) == 2, sizes


def few() -> None:
    """Ranks that get cells: as many as are asked for, or as many GPUs as the mesh keeps busy."""

    def with_cells(*names: str) -> list:
        return [sum(COMM.allgather(MAKERS[name]().num_cells > 0)) for name in names or ("box", "Gmsh", "costs")]

    poisson = library.poisson(boundary=[fe.Dirichlet("boundary", 0.0)])
    of_all = fe.Problem(MAKERS["box"](), poisson).solve().norm()
    DATABASE["fe_mesh_ranks"] = "1"
    assert with_cells("box", "Gmsh", "costs", "polytopes", "refined") == [1] * 5
    problem = fe.Problem(MAKERS["box"](), poisson)
    assert any(f"cells on 1 of {COMM.size} ranks" in line for line in balance_lines(problem)) == (COMM.size > 1)
    assert abs(problem.solve().norm() - of_all) < 1e-9
    DATABASE.delValue("fe_mesh_ranks")
    assert with_cells() == [COMM.size] * 3
    with mock.patch.object(distribute, "is_gpu_chosen", lambda choice: True):
        assert with_cells() == [1] * 3
        assert with_cells("refined before and after", "refined") == [COMM.size] * 2, "cells that are still to come"
        with mock.patch.object(distribute, "SIMPLICES_OF_A_GPU", {2: 100}):
            assert with_cells("box") == [min(2, COMM.size)]


def whole() -> None:
    """Meshes that are sent to the ranks pass PETSc's checks, and have the points and names of one rank's.

    Cells that PETSc distributes, since an option of its own is given, are in the same places."""
    for make in (MAKERS["Gmsh"], *(lambda kind=kind: fe.Mesh.box(*kind) for kind in BOXES)):
        DATABASE["dm_plex_check_all"] = ""
        mesh = make()
        DATABASE["dm_distribute"] = "1"
        other = make()
        for name in ("dm_plex_check_all", "dm_distribute"):
            DATABASE.delValue(name)
        assert digest(mesh) == digest(other) and mesh.labels == other.labels
        assert [described(each) for each in (mesh, other)] == [described(other)] * 2


def described(mesh) -> list:
    """Points that ranks own by dimension, exterior facets, facets and cells by name."""
    owned, start = mesh.exchange.owned(), mesh.dm.getChart()[0]
    counts = [int(owned[first - start : last - start].sum()) for first, last in mesh.topology.stratum]
    counts += [len(mesh.boundary_facets(name, inside=True)[0]) for name in mesh.boundaries]
    counts += [int(mesh.cell_mask(name)[: mesh.num_cells].sum()) for name in mesh.cell_regions]
    return COMM.allreduce(np.array(counts)).tolist()


def main() -> None:
    """The user's choice of a partitioner counts, and -fe_deterministic 0 leaves the choice to PETSc.

    Polytopes and costs are dealt out by bisection in any case."""
    found, simple = digests(), digests(petscpartitioner_type="simple")
    by_petsc = digests(fe_deterministic="0")
    assert found["costs"] == found["costs of another partition"]
    for others in (simple, by_petsc):
        assert others["costs"] == found["costs"]
        by_cells = [name for name in MAKERS if name != "polytopes" and "costs" not in name]
        same = [name for name in by_cells if others[name] == found[name]]
        assert len(same) <= 3, f"these are not dealt out by bisection: {same}"
    assert not DATABASE.hasName("dm_distribute") and not DATABASE.hasName("dm_refine_pre")
    even()
    few()
    whole()
    PETSc.Sys.Print(json.dumps(found))


if __name__ == "__main__":
    guarded(main)  # a rank that fails ends the others
