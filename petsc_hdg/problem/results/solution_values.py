"""Solutions as numpy arrays: nodes, cells and values, of this rank or gathered on the first; values at given places."""

from __future__ import annotations

import numpy as np
from mpi4py.MPI import MIN

from ... import stages
from ...discretizations.dofmap import FieldSpace, build_dofmaps
from ...errors import OptionError, collectively
from ...output import Grid
from ...output.arrays import cellwise, gather_rows
from ...value_checks import reals, truth
from .derived_fields import State


def polytope_numbers(problem) -> np.ndarray:
    """Number [cell] of the polytope of each base cell among those of all ranks. Collective."""
    polytopes = problem.discretization.polytopes
    numbers = polytopes.numbers
    if numbers is None:
        before = problem.comm.allgather(polytopes.count)[: problem.comm.rank]
        numbers = sum(before) + np.arange(polytopes.count)
    return numbers[polytopes.of_cell]


def cell_data(problem) -> list[dict[str, np.ndarray]]:
    """Cell data of output [cell, …] of each part: auxiliary fields that are constant there, the rank, polytopes.
    Collective."""
    found: list[dict[str, np.ndarray]] = []
    for part in problem.operator.parts:
        auxiliary, count, data = part.discretization.auxiliary, part.discretization.mesh.num_cells, {}
        for f in auxiliary.fields:
            if f.space == "cell":
                first = auxiliary.starts[auxiliary.field(f.name)[1]]
                data[f.name] = part.aux_rows[first : first + f.components, :count].T.copy()
        found.append(data | {"rank": np.full(count, problem.comm.rank, dtype=float)})
    if problem.discretization.is_polytopic:
        disc = problem.discretization
        found[0]["polytope"] = polytope_numbers(problem).astype(float)
        found[0]["degree"] = disc.degrees[disc.polytopes.of_cell].astype(float)
    return found


def grid_of(problem, u, t: float, fields, gather: bool) -> Grid | None:
    """See Problem.to_numpy. Collective."""
    comm = problem.comm
    with collectively(comm):
        gather = truth("Whether arrays are gathered on one rank (gather)", gather)
    with stages.stage("output"):
        states = State.of_parts(problem, u, t)
        with collectively(comm):
            of_parts = [state.all(problem.outputs if fields is None else fields) for state in states]
            values = {
                of[0].name: [field.sample(state.element.nodes) for state, field in zip(states, of, strict=True)]
                for of in zip(*of_parts, strict=True)
            }
        rows, shapes = {"": [state.coordinates for state in states]} | values, [state.mesh.cell for state in states]
        numbers, numbers_of_all, owned = _numbers(problem, states, len(of_parts[0]) > len(states[0].known))
        rows = {name: _scattered(numbers, of) for name, of in rows.items()}
        data = [
            {name: cellwise(name, of, state.mesh.num_cells) for name, of in each.items()}
            for state, each in zip(states, cell_data(problem), strict=True)
        ]
        if gather:
            numbers = [gather_rows(comm, of) for of in numbers_of_all]
            rows = {name: gather_rows(comm, of[:owned]) for name, of in rows.items()}
            data = [{name: gather_rows(comm, of) for name, of in each.items()} for each in data]
        if comm.rank and gather:
            return None
        of_cells = {name: np.concatenate([each[name] for each in data]) for name in data[0]}
        blocks = dict(zip(shapes, numbers, strict=True))
        return Grid(states[0].element.degree, rows.pop(""), blocks, rows, of_cells)


def _numbers(problem, states: list[State], may_jump: bool) -> tuple[list[np.ndarray], list[np.ndarray], int]:
    """Numbers [cell, node] of nodes in each part on this rank, those that it owns first, the same among all ranks, and
    how many it owns. Cells share nodes where all fields are continuous, of meshes that are not periodic. Collective."""
    mesh, comm = problem.mesh, problem.comm
    is_continuous = problem.discretization.name == "cg_gpu" and not (may_jump or mesh.geometry.periods.any())
    if is_continuous and min(field.element.degree for field in states[0].known.values()) > 0:
        start, end = mesh.dm.getChart()
        spaces = [(FieldSpace("nodes", state.element, 1, 0, 0, 0),) for state in states]
        dofmaps = build_dofmaps(mesh, spaces, np.zeros((end - start, 1), bool))
        numbers = [dofmap.compact[dofmap.cell_dofs] for dofmap in dofmaps]
        return numbers, [dofmaps[0].global_numbers[of] for of in numbers], dofmaps[0].num_owned
    sizes = [(state.mesh.num_cells, state.element.num_basis) for state in states]
    ends = np.cumsum([0, *(cells * nodes for cells, nodes in sizes)]).tolist()
    numbers = [np.arange(*ends[k : k + 2]).reshape(size) for k, size in enumerate(sizes)]
    before = sum(comm.allgather(ends[-1])[: comm.rank])
    return numbers, [of + before for of in numbers], ends[-1]


def _scattered(numbers: list[np.ndarray], values: list[np.ndarray]) -> np.ndarray:
    """Values [node, component] from those of cells [cell, node of the cell, component] of each part."""
    found = np.zeros((max(of.max(initial=-1) for of in numbers) + 1, values[0].shape[2]))
    for rows, of in zip(numbers, values, strict=True):
        found[rows] = of
    return found


def values_at(problem, fields: list[list], points) -> dict[str, np.ndarray]:
    """Values [point, component] of Derived fields, of each part, by name, see Problem.at. Collective."""
    comm = problem.comm
    with collectively(comm):
        places = _checked(points, problem.mesh.dim)
    _agree(comm, places)
    with stages.stage("output"):
        with collectively(comm):
            found = [locator.find(places) for locator in problem.locators]
        held = np.array([cell >= 0 for cell, _ in found])
        rank = np.empty(len(places), dtype=np.int64)  # the lowest that holds each place, their number for none
        comm.Allreduce(np.where(held.any(axis=0), comm.rank, comm.size).astype(np.int64), rank, MIN)
        outside = np.flatnonzero(rank == comm.size)
        if len(outside):
            first = ", ".join(f"{x:.6g}" for x in places[outside[0]])
            raise OptionError(
                f"points outside of the mesh: {len(outside)} of {len(places)}, the first is number {outside[0]} at "
                f"({first}); give points inside of its cells, which may end short of a curved boundary"
            )
        mine = (rank == comm.rank) & (np.arange(len(held))[:, None] == held.argmax(axis=0))  # [part, point]
        return {of[0].name: _values(comm, of, found, mine) for of in zip(*fields, strict=True)}


def _values(comm, of_parts: list, found: list[tuple], mine: np.ndarray) -> np.ndarray:
    """Values [point, component] of a field on all ranks; found: cells and reference coordinates in each part, of which
    those of `mine` [part, point] give the value. Collective."""
    values = np.zeros((mine.shape[1], of_parts[0].components))
    with collectively(comm):
        for field, (cell, at), here in zip(of_parts, found, mine, strict=True):
            values[here] = field.sample(at[here][:, None], cell[here])[:, 0]
    return comm.allreduce(values)


def _checked(points, dim: int) -> np.ndarray:
    """Points [point, dim] as numbers, a place alone as one row. Raises OptionError."""
    places = reals("The array of points", points, OptionError)
    places = places[None] if places.shape == (dim,) else places
    if places.ndim != 2 or places.shape[1] != dim:
        raise OptionError(
            f"Points are given as an array of shape {places.shape}; give one row of {dim} coordinates for each point."
        )
    if not np.isfinite(places).all():
        row = int(np.flatnonzero(~np.isfinite(places).all(axis=1))[0])
        raise OptionError(f"Point number {row} has a coordinate that is not finite; give finite numbers.")
    return np.ascontiguousarray(places)


def _agree(comm, places: np.ndarray) -> None:
    """Raise OptionError unless all ranks give the same points. Collective."""
    expected = comm.bcast(places)
    with collectively(comm):
        if not np.array_equal(expected, places):
            raise OptionError(f"Rank {comm.rank} gives other points than rank 0; give all ranks the same points.")
