"""Solutions as numpy arrays: nodes, cells and values, of this rank or gathered on the first."""

from __future__ import annotations

import numpy as np

from ... import stages
from ...discretizations.dofmap import FieldSpace, build_dofmap
from ...errors import collectively
from ...output import Grid
from ...output.arrays import cellwise
from ...output.transfer import gather_rows
from ...value_checks import truth
from .derived_fields import State
from .results import cell_data


def grid_of(problem, u, t: float, fields, gather: bool) -> Grid | None:
    """See Problem.to_numpy. Collective."""
    comm = problem.comm
    with collectively(comm):
        gather = truth("Whether arrays are gathered on one rank (gather)", gather)
    with stages.stage("output"):
        state = State(problem, u, t)
        with collectively(comm):
            found = state.all(problem.outputs if fields is None else fields)
            values = {field.name: field.sample(state.element.nodes) for field in found}
        data = {name: cellwise(name, of, problem.mesh.num_cells) for name, of in cell_data(problem).items()}
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
    owns. Cells share nodes where all fields are continuous. Collective."""
    mesh, comm, element = problem.mesh, problem.comm, state.element
    is_continuous = problem.discretization.name == "cg_gpu" and not may_jump
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
