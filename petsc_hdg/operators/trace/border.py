"""Rows of the trace matrix that two ranks make up, completed by the owner: a product takes one exchange, not two."""

from __future__ import annotations

import copy
from functools import cached_property, partial
from types import SimpleNamespace

import numpy as np

from ...codegen import KernelSpec
from ...device import Kernel
from ...device.halo import Halo
from ..overlap import as_ghosts_come
from ..vectors import TailedVector

FAR = -2  # a column that no rank here has yet


class Border:
    """Contributions of other ranks' cells to this rank's rows of a trace matrix. Making one is collective.

    A facet between two ranks has one cell on each. The rank that owns it gets the rows of the other one's element
    matrix whenever the matrix changes, and with each product the traces of all facets of that cell. Without, the
    other rank's part would follow the product in an exchange of its own.

    cells, rows [ghost]: the cell of this rank that has a ghost unknown, and the row there.
    x: TailedVector whose tail goes on behind ghosts and essential values with what other ranks' cells have besides.
    """

    def __init__(self, operator, cells: np.ndarray, rows: np.ndarray):
        self.operator, self.arrays = operator, operator.arrays
        disc, dofmap = operator.discretization, operator.dofmap
        self.plan, self.size, self.num_owned = operator.halo.plan, dofmap.cell_dofs.shape[1], dofmap.num_owned
        self.cells, self.rows = cells, rows
        ghost_columns = dofmap.global_numbers[dofmap.compact[dofmap.cell_dofs[self.cells]]]
        asked = self.plan.rows_to_owners(np.ascontiguousarray(ghost_columns, dtype=np.int64))
        columns, owners, places = _found(asked, disc.mesh.comm, dofmap)
        tail = dofmap.num_tail + len(owners)
        where = np.concatenate([np.arange(dofmap.num_ghosts), dofmap.num_tail + np.arange(len(owners))])
        ghosts = np.concatenate([dofmap.ghost_rank, owners]), np.concatenate([dofmap.ghost_index, places])
        halo = Halo(disc.mesh.comm, dofmap.num_owned, *ghosts, self.arrays, ghost_place=where)
        numbering = SimpleNamespace(num_owned=dofmap.num_owned, num_tail=tail)
        self.halo = halo
        self._vectors = SimpleNamespace(arrays=self.arrays, dofmap=numbering, halo=halo)
        self.x, self.slots = TailedVector(self._vectors), len(asked)
        tables = {"point": self.plan.send_points, "columns": columns.T, "place": self.cells, "row": self.rows}
        self._tables = {name: self._table(values) for name, values in tables.items()}
        self._of_shapes: tuple | None = None
        self._taken = self.arrays.zeros(max(1, len(self.cells) * self.size))
        self.values = self.arrays.zeros(max(1, self.slots * self.size))

    def _table(self, values):
        return self.arrays.to_device(np.ascontiguousarray(values) if values.size else np.zeros(1, np.int32), "border")

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`trace_border_take` and `trace_border_add`."""
        names, device = ("trace_border_take", "trace_border_add"), self.operator.device
        specs = {n: KernelSpec(n, ("trace_border.cl",), {}, precision=self.arrays.precision) for n in names}
        return {name: Kernel(spec, device) for name, spec in specs.items()}

    # The matrix -------------------------------------------------------------------------------------------

    def take(self, K, first: int, count: int, batch: int) -> None:
        """Take what is wanted of the matrices K [column, batch, row] of cells first … first + count - 1."""
        self._take(K, first, count, batch, self._tables["place"])

    def take_shapes(self, K, shapes) -> None:
        """Take what is wanted of the matrices K [column, shape, row] of the Shapes of cells."""
        if self._of_shapes is None or self._of_shapes[0] is not shapes:
            self._of_shapes = shapes, self._table(shapes.shape[self.cells])
        self._take(K, 0, shapes.count, shapes.count, self._of_shapes[1])

    def _take(self, K, first: int, count: int, batch: int, place) -> None:
        ghosts = len(self.cells)
        sizes = (ghosts, self.size, first, count, batch)
        self.kernels["trace_border_take"](ghosts * self.size, *sizes, place, self._tables["row"], K, self._taken)

    def exchange(self) -> None:
        """Give the rows that were taken to their owners. Collective."""
        rows = self.arrays.to_host(self._taken, (self.size, len(self.cells)), name="border")
        found = self.plan.rows_to_owners(np.ascontiguousarray(rows.T))
        self.arrays.upload(self.values, np.ascontiguousarray(found.T).ravel(), "border")

    def copied(self) -> Border:
        """The same values, which later changes leave as they are."""
        other = copy.copy(self)
        other.x = TailedVector(self._vectors)
        other.values = self.arrays.empty(max(1, self.slots * self.size))
        self.arrays.copy(self.values, other.values, self.slots * self.size)
        return other

    # Products ---------------------------------------------------------------------------------------------

    def product(self, given, out, run, whole: bool) -> None:
        """out = what `run(x, part)` computes of this rank's cells, and what is added here. Collective.

        whole: rows are computed apart from each other, so that all inner ones may be before ghosts come.
        """
        x = self.x
        if not as_ghosts_come(x, given, partial(run, x), early=whole):
            return
        tables = self._tables
        self.kernels["trace_border_add"](
            self.slots, self.slots, self.size, self.num_owned, tables["point"], tables["columns"], self.values, x.owned,
            x.tail, out,
        )  # fmt: skip


def border_of(operator) -> Border | None:
    """The Border of an operator whose trace matrix has facets that own their unknowns. Collective.

    None where one rank has all cells, or a facet between two ranks has more than one cell on one of them."""
    mesh, dofmap, plan = operator.discretization.mesh, operator.dofmap, operator.halo.plan
    if mesh.comm.size == 1:
        return None
    cells, rows = _of_ghosts(mesh, dofmap)
    fits = len(cells) == dofmap.num_ghosts and len(plan.targets) == len(plan.send_points)
    return Border(operator, cells, rows) if mesh.comm.allreduce(int(not fits)) == 0 else None


def _of_ghosts(mesh, dofmap) -> tuple[np.ndarray, np.ndarray]:
    """Cell and row there [ghost] of each ghost unknown, in the order of ghosts; of a number of its own if there are
    several for one, or none."""
    first = mesh.num_facet_inner
    numbers = dofmap.compact[dofmap.cell_dofs[first:]] - dofmap.num_owned
    cells, rows = np.nonzero((numbers >= 0) & (numbers < dofmap.num_ghosts))
    ghosts = numbers[cells, rows]
    order = np.argsort(ghosts, kind="stable")
    if not np.array_equal(ghosts[order], np.arange(dofmap.num_ghosts)):
        return np.zeros(dofmap.num_ghosts + 1, int), np.zeros(dofmap.num_ghosts + 1, int)
    return first + cells[order], rows[order]


def _found(asked: np.ndarray, comm, dofmap) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of the columns [slot, column] given by PETSc's; owners and places there of those that are new here.

    Collective."""
    ends = np.cumsum(comm.allgather(dofmap.num_owned))
    first = int(ends[comm.rank]) - dofmap.num_owned
    columns = np.where(asked < 0, -1, FAR)
    own = (asked >= first) & (asked < first + dofmap.num_owned)
    columns[own] = asked[own] - first
    known = dofmap.global_numbers[dofmap.num_owned : dofmap.num_owned + dofmap.num_ghosts]
    order = np.argsort(known)
    place = np.searchsorted(known[order], asked)
    ghost = np.zeros(asked.shape, bool)
    inside = place < len(known)
    ghost[inside] = known[order][place[inside]] == asked[inside]
    columns[ghost] = dofmap.num_owned + order[place[ghost]]
    far, number = np.unique(asked[columns == FAR], return_inverse=True)
    columns[columns == FAR] = dofmap.num_owned + dofmap.num_tail + number
    owners = np.searchsorted(ends, far, side="right")
    return columns.astype(np.int32), owners, far - np.concatenate([[0], ends])[owners]
