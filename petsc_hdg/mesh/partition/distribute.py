"""From a mesh on one rank to the DMPlex that PETSc's options ask for: refined, distributed, with overlap; cells sent to
chosen ranks, or dealt by bisection of their coordinates, the same each time, or at random, for tests.
"""

from __future__ import annotations

import copy
import math
from contextlib import contextmanager

import numpy as np
from mpi4py import MPI
from mpi4py.util import pkl5
from petsc4py import PETSc

from ...database import given_truth
from ...device.platforms import is_gpu_chosen
from ...errors import MeshError, collectively
from ...options import Options
from ...petsc import c_library
from ...petsc.c_library import reason, shared_points
from ..cell_list import MOST_CELLS
from ..geometry import stratum_values
from ..labels import Labels
from ..order import means
from ..plex_points import PlexPoints
from ..shapes import SHAPES, Shape, shape
from .bisection import balanced_parts

DISTRIBUTION = "dm_distribute"  # options of PETSc that begin so
REFINEMENTS = ("dm_refine", "dm_refine_pre", "dm_refine_hierarchy")
# What changes the cells before PETSc distributes them, and what changes them after.
BEFORE = (
    "dm_plex_interpolate_pre",
    "dm_plex_submesh",
    "dm_refine_pre",
    "dm_refine_volume_limit_pre",
    "dm_extrude",
    "dm_plex_reorder",
    "dm_plex_scale",
)
AFTER = ("dm_refine", "dm_refine_hierarchy", "dm_coarsen", "dm_coarsen_hierarchy")
CHOICE = "petscpartitioner_type"
# Dimension -> simplices that the cells of a GPU can be cut into; with fewer each, fewer GPUs are as fast or faster.
SIMPLICES_OF_A_GPU = {2: 250_000, 3: 100_000}


def prepare(made, comm, prefix: str, overlap: int, partition_seed: int | None):
    """A DM of a DM or PlexPoints: PETSc's options (-dm_refine, -dm_distribute, -petscpartitioner_type …) are applied,
    then the overlap grows. Collective.

    Cells are dealt to the ranks by bisection unless the user names a partitioner, see `by_bisection`.
    `partition_seed`: deal the cells out at random, for tests of independence from the partition.
    """
    if isinstance(made, PlexPoints):
        _refuse_endless_refinement(made.shape.dim, made.num_cells, comm, prefix)
    else:
        start, end = made.getHeightStratum(0)
        _refuse_curved_refinement(made, comm, prefix)
        _refuse_endless_refinement(max(made.getDimension(), 0), end - start, comm, prefix)
    by_us = comm.size > 1 and (partition_seed is not None or by_bisection(prefix))
    dm, changed = made, {}
    if isinstance(made, PlexPoints):
        asks = any(name.startswith(f"{prefix}{DISTRIBUTION}") for name in PETSc.Options().getAll())
        at_once = by_us and not _is_changed(prefix, BEFORE) and not asks
        dm = deal_points(made, comm, prefix, partition_seed) if at_once else made.plex(comm)
        if at_once:
            by_us, changed = False, {DISTRIBUTION: "0"}
        made.forget()
    dm.setOptionsPrefix(prefix)
    try:
        if by_us:
            _set_up_dealt(dm, comm, prefix, partition_seed)
        else:
            with _options_but(PETSc.Options(prefix), (), **changed):
                dm.setFromOptions()
    except PETSc.Error as error:
        raise MeshError(
            f"PETSc cannot set up this mesh ({reason(error)}); check the options that begin with -{prefix}dm_."
        ) from None
    missing = overlap - overlap_of(dm, comm)
    if missing > 0 and comm.size > 1:
        dm.distributeOverlap(missing)
    return dm


def _is_changed(prefix: str, names: tuple[str, ...]) -> bool:
    """True if some of these options are given, BEFORE or AFTER, which change cells."""
    return any(PETSc.Options(prefix).hasName(name) for name in names)


def _set_up_dealt(dm, comm, prefix: str, seed: int | None) -> None:
    """Apply PETSc's options to a DM whose cells are dealt out by us. Collective.

    Cells that PETSc makes or changes before it distributes them come in a first round of options, those of BEFORE.
    """
    database = PETSc.Options(prefix)
    early = dm.getDimension() < 0 or _is_changed(prefix, BEFORE)
    if early:
        with _options_but(database, AFTER, **{DISTRIBUTION: "0"}):
            dm.setFromOptions()
    deal(dm, comm, prefix, seed)
    with _options_but(database, BEFORE if early else ()):
        dm.setFromOptions()
    dm.setPartitioner(PETSc.Partitioner().create(dm.comm))  # as PETSc makes it, not one that knows where cells went


@contextmanager
def _options_but(database, left_out: tuple[str, ...], **changed: str):
    """The database without some options and with others changed, until the block ends."""
    names = [name for name in (*left_out, *changed) if database.hasName(name)]
    before = {name: database.getString(name, "") for name in names}
    for name in before:
        database.delValue(name)
    for name, text in changed.items():
        database.setValue(name, text)
    try:
        yield
    finally:
        for name in changed:
            database.delValue(name)
        for name, text in before.items():
            database.setValue(name, text)
            database.getString(name, "")  # used, or -options_left would list it


def _refuse_curved_refinement(dm, comm, prefix: str) -> None:
    """Raise MeshError for second-order cells with -dm_refine: PETSc (3.18 to 3.26) would straighten them or fail."""
    options = PETSc.Options(prefix)
    asked = [name for name in REFINEMENTS if options.hasName(name) and options.getString(name) != "0"]
    if asked and any(comm.allgather(is_curved(dm))):
        raise MeshError(
            f"The mesh has curved cells, which PETSc cannot refine (-{prefix}{asked[0]} was given); refine it in Gmsh, "
            "or add -dm_plex_gmsh_highorder 0 to refine straight cells."
        )


def _refuse_endless_refinement(dim: int, count: int, comm, prefix: str) -> None:
    """Raise MeshError where -dm_refine would make more cells than there are numbers for, after hours.

    count: of this rank's cells.
    """
    options, levels = PETSc.Options(prefix), 0
    for name in REFINEMENTS[:2]:
        text = options.getString(name, "0")
        levels += int(text) if text.isdigit() else 0  # else PETSc refuses it
    cells = comm.allreduce(count) * 2 ** (dim * min(levels, 40))
    if levels and cells > comm.size * MOST_CELLS:
        raise MeshError(
            f"-{prefix}dm_refine {levels} would make {cells:.3g} cells; a rank has at most {MOST_CELLS:.3g}: "
            "refine less, or use more ranks."
        )


def is_curved(dm) -> bool:
    """Return True if this rank's coordinates have more nodes than the vertices."""
    if dm.getDimension() < 2 or dm.getDepth() < 1:
        return False
    section = dm.getCoordinateSection()
    low, high = section.getChart()
    return any(
        low <= start < end <= high and section.getDof(start) > 0
        for start, end in (dm.getDepthStratum(1), dm.getHeightStratum(0))
    )


def overlap_of(dm, comm) -> int:
    """1 if some rank holds cells of another one, else 0. Collective."""
    if comm.size == 1:
        return 0
    leaves, (start, end) = shared_points(dm), dm.getHeightStratum(0)
    found = leaves is not None and bool(np.any((leaves >= start) & (leaves < end)))
    return int(max(comm.allgather(found)))


def redistributed(mesh, target: np.ndarray, values: np.ndarray):
    """A mesh of the same cells in which each lies on the rank `target` [num_cells], and their values. Collective.

    values [num_cells] int64 travel with the cells. The overlap is as deep as it was, at most one layer.
    On one rank nothing moves. Returns mesh, values [num_cells].
    """
    overlap, dm = overlap_of(mesh.dm, mesh.comm), mesh.dm.clone()
    dm.setOptionsPrefix(mesh.dm.getOptionsPrefix())
    if mesh.comm.size == 1:
        moved = copy.copy(mesh)
        moved.dm, moved.labels_table = dm, Labels(dm, mesh.comm, mesh.exchange)
        return moved, values
    start, end = dm.getChart()
    points = np.full(end - start, -1, np.int64)
    points[mesh.topology.cells[: mesh.num_cells] - start] = values
    points = _carried(_distribute(dm, mesh, target), points, dm)
    if overlap:  # PETSc then gives cells of several shapes other numbers
        points = _carried(dm.distributeOverlap(overlap), points, dm)
    moved = type(mesh)(dm)
    return moved, points[moved.topology.cells[: moved.num_cells] - dm.getChart()[0]]


def _carried(sf, values: np.ndarray, dm) -> np.ndarray:
    """Values of the points of a DM [point of the chart] from those before [point], by the star forest of its change."""
    start, end = dm.getChart()
    found = np.full(end - start, -1, np.int64)
    sf.bcastBegin(MPI.INT64_T, values, found, MPI.REPLACE)
    sf.bcastEnd(MPI.INT64_T, values, found, MPI.REPLACE)
    return found


def _distribute(dm, mesh, target: np.ndarray):
    """Distribute a clone of a mesh's DM, whose partitioner both share. Returns the star forest of its points."""
    by_point = np.empty(mesh.num_cells, np.int64)  # PETSc counts owned cells, in its own order
    by_point[np.argsort(np.argsort(mesh.topology.cells[: mesh.num_cells]))] = target
    sizes = np.bincount(by_point, minlength=mesh.comm.size).astype(PETSc.IntType)
    used, partitioner = mesh.dm.getPartitioner(), PETSc.Partitioner().create(dm.comm)
    partitioner.setType(PETSc.Partitioner.Type.SHELL)
    partitioner.setShellPartition(mesh.comm.size, sizes, np.argsort(by_point, kind="stable").astype(PETSc.IntType))
    dm.setPartitioner(partitioner)
    found = dm.distribute(0)
    mesh.dm.setPartitioner(used)
    dm.setPartitioner(used)
    return found


def by_bisection(prefix: str) -> bool:
    """True if bisection deals cells out, not PETSc's partitioner: with -fe_deterministic, unless the user names one.

    PT-Scotch, which PETSc takes where it has it, deals the same mesh out in another way now and then.
    Raises OptionError.
    """
    database = PETSc.Options(prefix)
    if database.hasName(CHOICE):
        return False
    return given_truth(prefix, "fe_deterministic", Options.deterministic)


def deal_points(points: PlexPoints, comm, prefix: str, seed: int | None):
    """A DM of points that lie on rank 0, whose cells go to the ranks by bisection or with a seed at random. Collective.
    Raises MeshError on all ranks."""
    with collectively(comm):
        places = points.centroids()
    target = _target(points.shape, places, comm, prefix, seed)
    return scattered(points if comm.rank == 0 else None, target, comm)


def deal(dm, comm, prefix: str, seed: int | None) -> None:
    """Have PETSc's distribution send the cells of a DM where bisection says, or with a seed at random. Collective.
    Raises MeshError on all ranks.

    What is neither at random nor on rank 0 alone, has no facets, or coordinates of cells, is left to PETSc.
    """
    (start, end), vector, of, places = dm.getHeightStratum(0), dm.getCoordinatesLocal(), None, None
    with collectively(comm):
        shapes = [shape(name) for name in c_library.cell_shapes(dm) if name in SHAPES]
        if shapes and dm.getDepth() == dm.getDimension() and not c_library.has_only_cell_coordinates(dm):
            of, places = shapes[0], _centroids(dm, vector, shapes)
    if seed is None and (comm.allreduce(comm.rank and end - start) or not comm.bcast(places is not None)):
        return
    target = _target(of, places, comm, prefix, seed) if seed is None else _at_random(seed, end - start, comm)
    sizes = np.bincount(target, minlength=comm.size).astype(PETSc.IntType)
    partitioner = dm.getPartitioner()
    partitioner.setType(PETSc.Partitioner.Type.SHELL)
    partitioner.setShellPartition(comm.size, sizes, np.argsort(target, kind="stable").astype(PETSc.IntType))


def _centroids(dm, vector, shapes: list[Shape]) -> np.ndarray:
    """A place in each cell of this rank [cell, dim], from the local vector of coordinates; the mean of the vertices of
    simplices and boxes."""
    values, embedding = np.asarray(vector.getArray(readonly=True)), dm.getCoordinateDim()
    below, end = dm.getDepthStratum(0)
    places = stratum_values(dm.getCoordinateSection(), values, below, end, embedding)
    for d in range(1, dm.getDimension() + 1):
        start, end = dm.getDepthStratum(d)
        most = max(each.cone_size(d) for each in shapes)
        places = means(places, c_library.mixed_cones(dm, start, end, most) - below)
        below = start
    return places


def ranks_with_cells(of: Shape, count: int, comm, prefix: str, is_final: bool = True) -> int:
    """The number of ranks that get `count` cells of a shape, the first ones: what the user gives, or so many GPUs as
    solve soonest. Cells that are refined later (not `is_final`) go to all. Raises OptionError."""
    options = Options.from_petsc(prefix)
    if options.mesh_ranks:
        return min(options.mesh_ranks, comm.size)
    enough = math.ceil(count * (1 if of.is_simplex else math.factorial(of.dim)) / SIMPLICES_OF_A_GPU[of.dim])
    return enough if is_final and enough < comm.size and is_gpu_chosen(options.device) else comm.size


def ranks_of_whole(mesh, whole) -> int:
    """The number of ranks that get cells of the whole mesh, on rank 0. Raises OptionError."""
    prefix = mesh.dm.getOptionsPrefix() or ""
    return ranks_with_cells(mesh.parts[0].shape, len(whole.centroids), mesh.comm, prefix)


def _at_random(seed: int, count: int, comm) -> np.ndarray:
    """A rank for each of the `count` cells here [cell]."""
    return np.random.default_rng([seed, comm.rank]).integers(0, comm.size, count)


def _target(of: Shape, places: np.ndarray, comm, prefix: str, seed: int | None) -> np.ndarray:
    """The rank of each cell on rank 0 [cell], of the shape `of` and at `places` [cell, dim]. Collective."""
    if seed is not None:
        return _at_random(seed, len(places), comm)
    with collectively(comm):
        if comm.rank > 0:
            return np.zeros(0, np.int64)
        ranks = ranks_with_cells(of, len(places), comm, prefix, not _is_changed(prefix, AFTER))
        return balanced_parts(places, ranks)


def scattered(points: PlexPoints | None, target: np.ndarray, comm):
    """A DMPlex on `comm` of the points that rank 0 has, each cell on the rank `target` [cell]. Collective."""
    parts = None
    with collectively(comm):
        if points is not None:
            parts = points.parts(target, comm.size)
    link = pkl5.Intracomm(comm)  # messages of any size
    if parts is None:
        part = link.recv(source=0)
    else:
        part = parts[0]
        for request in [link.isend(other, dest) for dest, other in enumerate(parts) if dest]:
            request.wait()
    mine, leaves, roots = part
    dm = mine.plex(comm)
    star_forest = PETSc.SF().create(dm.comm)
    star_forest.setGraph(dm.getChart()[1], leaves, roots)
    dm.setPointSF(star_forest)
    return dm
