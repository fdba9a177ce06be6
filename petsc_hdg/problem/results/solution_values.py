"""Solutions as numpy arrays: nodes, cells and values, of this rank or gathered on the first; values at given places."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from mpi4py.MPI import MIN

from ... import stages
from ...discretizations.dofmap import FieldSpace, build_dofmap
from ...errors import OptionError, collectively
from ...mesh.geometry import Locator
from ...output import Grid
from ...output.arrays import cellwise, gather_rows
from ...value_checks import reals, truth
from .derived_fields import State, require_one_shape


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
    require_one_shape(problem, "problem.to_numpy")
    with collectively(comm):
        gather = truth("Whether arrays are gathered on one rank (gather)", gather)
    with stages.stage("output"):
        state = State(problem, u, t)
        with collectively(comm):
            found = state.all(problem.outputs if fields is None else fields)
            values = {field.name: field.sample(state.element.nodes) for field in found}
        data = {name: cellwise(name, of, problem.mesh.num_cells) for name, of in cell_data(problem)[0].items()}
        numbers, numbers_of_all, owned = _numbers(problem, state, len(found) > len(state.known))
        rows = {name: _scattered(numbers, of) for name, of in ({"": state.coordinates} | values).items()}
        if gather:
            numbers = gather_rows(comm, numbers_of_all)
            rows = {name: gather_rows(comm, of[:owned]) for name, of in rows.items()}
            data = {name: gather_rows(comm, of) for name, of in data.items()}
        if comm.rank and gather:
            return None
        return Grid(problem.mesh.cell, state.element.degree, rows.pop(""), numbers, rows, data)


def _numbers(problem, state: State, may_jump: bool) -> tuple[np.ndarray, np.ndarray, int]:
    """Numbers [cell, node] of nodes on this rank, those that it owns first, the same among all ranks, and how many it
    owns. Cells share nodes where all fields are continuous, of meshes that are not periodic. Collective."""
    mesh, comm, element = problem.mesh, problem.comm, state.element
    is_continuous = problem.discretization.name == "cg_gpu" and not (may_jump or mesh.geometry.periods.any())
    if is_continuous and min(field.element.degree for field in state.known.values()) > 0:
        start, end = mesh.dm.getChart()
        space = FieldSpace("nodes", element, 1, 0, 0, 0)
        dofmap = build_dofmap(mesh, (space,), np.zeros((end - start, 1), bool))
        numbers = dofmap.compact[dofmap.cell_dofs]
        return numbers, dofmap.global_numbers[numbers], dofmap.num_owned
    numbers = np.arange(mesh.num_cells * element.num_basis).reshape(mesh.num_cells, element.num_basis)
    return numbers, numbers + sum(comm.allgather(numbers.size)[: comm.rank]), numbers.size


def _scattered(numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values [node, component] from those of cells [cell, node of the cell, component]."""
    found = np.zeros((numbers.max(initial=-1) + 1, values.shape[2]))
    found[numbers] = values
    return found


class Points:
    """Values at places of solutions of one problem, whose cells are sorted by place once."""

    def __init__(self, problem):
        self.problem = problem

    @cached_property
    def _locators(self) -> list[Locator]:
        return [Locator(part) for part in self.problem.mesh.parts]

    def __call__(self, fields: list[list], points) -> dict[str, np.ndarray]:
        """Values [point, component] of Derived fields, of each part, by name, see Problem.at. Collective."""
        problem, comm = self.problem, self.problem.comm
        with collectively(comm):
            places = _checked(points, problem.mesh.dim)
        _agree(comm, places)
        with stages.stage("output"):
            with collectively(comm):
                found = [locator.find(places) for locator in self._locators]
            held = np.array([cell >= 0 for cell, _ in found])
            rank = self._rank(held.any(axis=0))
            self._require_all(places, rank)
            mine = (rank == comm.rank) & (np.arange(len(held))[:, None] == held.argmax(axis=0))  # [part, point]
            return {of[0].name: self._values(of, found, mine) for of in zip(*fields, strict=True)}

    def _rank(self, held: np.ndarray) -> np.ndarray:
        """Rank [point] that gives each value, the lowest of those that hold the place; their number for none."""
        comm, found = self.problem.comm, np.empty(len(held), dtype=np.int64)
        comm.Allreduce(np.where(held, comm.rank, comm.size).astype(np.int64), found, MIN)
        return found

    def _require_all(self, places: np.ndarray, rank: np.ndarray) -> None:
        outside = np.flatnonzero(rank == self.problem.comm.size)
        if len(outside):
            first = ", ".join(f"{x:.6g}" for x in places[outside[0]])
            raise OptionError(
                f"points outside of the mesh: {len(outside)} of {len(places)}, the first is number {outside[0]} at "
                f"({first}); give points inside of its cells, which may end short of a curved boundary"
            )

    def _values(self, of_parts: list, found: list[tuple], mine: np.ndarray) -> np.ndarray:
        """Values [point, component] of a field on all ranks; found: cells and reference coordinates in each part, of
        which those of `mine` [part, point] give the value. Collective."""
        values = np.zeros((mine.shape[1], of_parts[0].components))
        with collectively(self.problem.comm):
            for field, (cell, at), here in zip(of_parts, found, mine, strict=True):
                values[here] = field.sample(at[here][:, None], cell[here])[:, 0]
        return self.problem.comm.allreduce(values)


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
