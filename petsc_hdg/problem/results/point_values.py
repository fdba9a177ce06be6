"""Values of a solution at given places."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from mpi4py.MPI import MIN

from ... import stages
from ...errors import OptionError, collectively
from ...mesh.locate import Locator
from ...value_checks import reals


class Points:
    """Values at places of solutions of one problem, whose cells are sorted by place once."""

    def __init__(self, problem):
        self.problem = problem

    @cached_property
    def _locator(self) -> Locator:
        return Locator(self.problem.mesh)

    def __call__(self, fields: list, points) -> dict[str, np.ndarray]:
        """Values [point, component] of Derived fields by name, see Problem.at. Collective."""
        problem, comm = self.problem, self.problem.comm
        with collectively(comm):
            places = _checked(points, problem.mesh.dim)
        _agree(comm, places)
        with stages.stage("output"):
            with collectively(comm):
                cell, at = self._locator.find(places)
            mine = self._mine(cell)
            self._require_all(places, mine)
            return {f.name: self._values(f, cell, at, mine == comm.rank) for f in fields}

    def _mine(self, cell: np.ndarray) -> np.ndarray:
        """Rank [point] that gives each value, the lowest of those that hold the place; their number for none."""
        comm, found = self.problem.comm, np.empty(len(cell), dtype=np.int64)
        comm.Allreduce(np.where(cell >= 0, comm.rank, comm.size).astype(np.int64), found, MIN)
        return found

    def _require_all(self, places: np.ndarray, rank: np.ndarray) -> None:
        outside = np.flatnonzero(rank == self.problem.comm.size)
        if len(outside):
            first = ", ".join(f"{x:.6g}" for x in places[outside[0]])
            raise OptionError(
                f"points outside of the mesh: {len(outside)} of {len(places)}, the first is number {outside[0]} at "
                f"({first}); give points inside of its cells, which may end short of a curved boundary"
            )

    def _values(self, field, cell: np.ndarray, at: np.ndarray, mine: np.ndarray) -> np.ndarray:
        """Values [point, component] of a field on all ranks. Collective."""
        values = np.zeros((len(cell), field.components))
        with collectively(self.problem.comm):
            values[mine] = field.sample(at[mine][:, None], cell[mine])[:, 0]
        return self.problem.comm.allreduce(values)


def _checked(points, dim: int) -> np.ndarray:
    """Points [point, dim] as numbers. Raises OptionError."""
    places = reals("The array of points", points, OptionError)
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
