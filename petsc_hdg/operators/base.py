"""Base of the operators of schemes: geometry, numbering, data of the physics, essential values."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property

import numpy as np

from ..device import Kernel, kernels_of
from ..device.halo import Halo
from ..errors import OptionError
from ..mesh.geometry import cell_metrics
from ..physics.upwind import METRIC
from .block_rows import assembly_rows
from .overlap import assembled_rows


class DeviceOperator:
    """Buffers of a discretization on a device, and the vectors' tails.

    arrays: device arrays (also says device and precision).   dofmap: the discretization's numbering.
    failure: why the last residual could not be evaluated, the same on all ranks, or "".
    source: the operator that this one copies in another precision, sharing its buffers of whole numbers, or None.
    All buffers of vectors hold this rank's owned values [num_owned] as `real`. Building one is collective.
    """

    failure = ""
    version = 0  # counts how often constants and auxiliary fields were given
    auxiliary_version = 0  # the same of auxiliary fields alone
    coefficients = 0  # counts how often those that matrices read came with other values, the same on all ranks
    linearizations = 0  # counts calls of `linearize`
    follows_solution = False  # whether the scheme itself has numbers that follow the states
    repeats = True  # whether products are launches and exchanges alone, see JacobianContext
    fuses = False  # whether a product and the vector update that follows it can be one launch
    epilogue: tuple | None = None  # that update: (x, b, d, keep, mix, scale), see `assemble`
    flux_takes_rate = False  # whether `flux` needs u_t too
    has_data = True  # whether essential conditions say what they say, not zero
    storage = ""  # how the operator's matrix is stored, in a few words, where it has one of its own

    def __init__(self, discretization, arrays, source: DeviceOperator | None = None):
        self.source = source
        self.discretization = disc = discretization
        self.arrays = arrays
        self.device = arrays.device
        self.dofmap = disc.dofmap
        ghosts = disc.dofmap.ghost_rank, disc.dofmap.ghost_index
        self.halo = Halo(disc.mesh.comm, disc.dofmap.num_owned, *ghosts, arrays)  # of what vectors have in their tails
        self._nodes = arrays.to_device(disc.nodes(), "geometry")
        self.ghost_sums = arrays.empty(max(1, self.dofmap.num_ghosts))
        self._load_cells()
        self._load_constants(list(disc.physics.constants.values()))

    @property
    def parts(self) -> tuple:
        """Operators of the cells of each shape, which share the vectors; itself where there is one."""
        return (self,)

    @property
    def members(self) -> tuple:
        """The operators among the parts and this one that have kernels and data of cells."""
        return self.parts

    def _load_cells(self) -> None:
        """Buffers of the numbers and data of cells."""
        disc = self.discretization
        self._cell_nodes = self._numbers("_cell_nodes", disc.cell_nodes, "geometry")
        self.aux_rows = np.zeros((disc.auxiliary.num_rows, disc.stride))
        if any(field.name == METRIC for field in disc.physics.auxiliary):
            disc.auxiliary.place(self.aux_rows, METRIC, cell_metrics(disc.mesh).reshape(-1, 1, disc.dim**2))
        self._aux = self.arrays.to_device(self.aux_rows if self.aux_rows.size else np.zeros(1), "auxiliary")

    def _numbers(self, attribute: str, make, name: str):
        """Buffer of the whole numbers that make() gives, or that of the source, which has the same attribute."""
        return self.arrays.to_device(make(), name) if self.source is None else getattr(self.source, attribute)

    @cached_property
    def _dofs(self):
        return self._numbers("_dofs", self.discretization.cell_dofs, "cell dofs")

    @cached_property
    def _rows(self) -> list:
        if self.source is not None:
            return self.source._rows
        places = self.discretization.places_of_rows()
        return assembly_rows(self.arrays, self._dofs, places, self.dofmap.num_owned + self.dofmap.num_ghosts)

    # Data that may change between solves -----------------------------------------------------------------

    def _load_constants(self, values) -> None:
        self.constants = np.asarray(list(values) or [0.0], dtype=float)
        self._constants = self.arrays.to_device(self.constants, "constants")

    def set_constants(self, values) -> None:
        """Replace the values of the named constants [constant]. Collective."""
        before = self.constants
        self._load_constants(values)
        self._count(constants_change(self.discretization, before, self.constants))
        self._forget_essential()

    def set_auxiliary(self, name: str, *values: np.ndarray) -> None:
        """Replace an auxiliary field by values [cell, row, component] of each part, rows being one or the nodes of the
        cell. Collective."""
        self.auxiliary_version += 1
        self._count(any([part.load_auxiliary(name, own) for part, own in zip(self.parts, values, strict=True)]))
        if self.discretization.essential_auxiliary_components:
            vars(self).pop("_essential_auxiliary", None)
            self._essential_auxiliary  # noqa: B018  (ranks may have no essential values that would ask for it)
            self._forget_essential()

    def load_auxiliary(self, name: str, values: np.ndarray) -> bool:
        """Take values [cell, row, component] of an auxiliary field; True if matrices read others now."""
        before = self.aux_rows.copy()
        self.discretization.auxiliary.place(self.aux_rows, name, values)
        self.arrays.upload(self._aux, np.ascontiguousarray(self.aux_rows, dtype=self.arrays.real), "auxiliary")
        return auxiliary_changes(self.discretization, name, before, self.aux_rows)

    def auxiliary_onto(self, discretization):
        """Name and values [cell, row, component], of each part, of each auxiliary field, nodal ones at the nodes of
        another discretization."""
        found = [
            part.discretization.auxiliary.onto(other.auxiliary.element, part.aux_rows, other.mesh.num_cells)
            for part, other in zip(self.parts, discretization.parts, strict=True)
        ]
        for of_parts in zip(*found, strict=True):
            yield of_parts[0][0], [values for _, values in of_parts]

    def _count(self, changes_matrices: bool) -> None:
        """Data were given: tell whether some rank's change matrices. Collective."""
        self.version += 1
        self.coefficients += int(self.discretization.mesh.comm.allreduce(int(changes_matrices)) > 0)

    def make_ready(self) -> None:
        """Make kernels that a first solve takes beside those of products, for their programs. Not collective."""

    def compile_variants(self) -> None:
        """Compile what the operator chooses by the mesh and has not chosen here. Not collective."""

    def restart(self) -> None:
        """A solve begins: forget what follows the states of the last one."""

    def strengthen(self, factor: float) -> None:
        """Multiply state-dependent penalties by a factor from now on."""

    def suits(self, u) -> bool:
        """Return True if state-dependent penalties suit a state u; otherwise update them. Collective."""
        return True

    # Essential values ------------------------------------------------------------------------------------

    @cached_property
    def _essential_kernel(self) -> Kernel:
        return Kernel(self.discretization.essential_spec(), self.device)

    @cached_property
    def _essential_rate_kernel(self) -> Kernel:
        return Kernel(self.discretization.essential_spec("essential_rates"), self.device)

    @cached_property
    def _essential_points(self):
        return [self.arrays.to_device(a, "essential conditions") for a in self.discretization.essential_points()]

    @cached_property
    def _essential_auxiliary(self):
        """Buffer of auxiliary values at essential points, None where no condition reads them. Collective."""
        disc = self.discretization
        if not disc.essential_auxiliary_components:
            return None
        values = disc.essential_auxiliary([part.aux_rows for part in self.parts])
        return self.arrays.to_device(values if values.size else np.zeros(1), "essential conditions")

    def update_essential(self, vector, t: float) -> None:
        """Evaluate essential values at time t, or their rates, into a tail (once for each t and set of constants)."""
        count = self.dofmap.num_constrained
        if (
            vector.essential_time == t
            or not count
            or (vector.is_rate and not self.discretization.physics.uses_time_derivative)
        ):
            return
        if not self.has_data:
            self.arrays.fill(vector.tail)
            vector.essential_time = t
            return
        points = *self._essential_points, self._essential_auxiliary
        args = (count, self.dofmap.num_ghosts, float(t), self._constants, *points, vector.tail)
        kernel = self._essential_rate_kernel if vector.is_rate else self._essential_kernel
        kernel(count, *args)
        vector.essential_time = t

    def essential_values(self, t: float) -> np.ndarray:
        """Essential values [constrained] at time t, on the host."""
        self.update_essential(self.current, t)
        tail = self.arrays.to_host(self.current.tail, self.dofmap.num_tail, name="output")
        return tail[self.dofmap.num_ghosts :].astype(float)

    @contextmanager
    def without_data(self):
        """A block in which residuals and linearizations have essential values of zero."""
        self.has_data = False
        self._forget_essential()
        try:
            yield
        finally:
            self.has_data = True
            self._forget_essential()

    def _forget_essential(self) -> None:
        for vector in self._essential_vectors:
            vector.essential_time = None

    # Results ---------------------------------------------------------------------------------------------

    def solution_fields(self, x, t: float) -> list:
        """The fields themselves in this rank's cells. Collective."""
        return self.cell_fields(x, t)

    def trace_fields(self, x, t: float):
        """The trace on each facet, where the scheme has one. Raises OptionError."""
        raise OptionError(
            f"{self.discretization.name} has no trace of its own to write; give -fe_backend hdg_gpu, or write "
            "the cells with Problem.write"
        )

    def details(self, complete: bool = True) -> list[str]:
        """Lines for `-fe_view`; complete: whether all data of the physics are given. Collective."""
        return [f"  trace matrix: {self.storage}"] if self.storage else []

    # Steps -----------------------------------------------------------------------------------------------

    def assemble(self, element, out, part: int | None = None) -> None:
        """out, and the ghost sums: this rank's element vectors [dof, stride] summed, or a part of them (overlap.py).
        With an epilogue out = keep out + mix x + scale d (b - that sum over all ranks), collective then."""
        if self.epilogue is not None:
            rows = self._rows
            if self.halo.plan.active:
                ghosts, (places,), rows = self._rows_over_ranks
                count = self.dofmap.num_ghosts
                self._assemble["rows"](count, count, 0, *ghosts, element, None, self.ghost_sums)
                self.halo.reverse(self.ghost_sums, element, places)
            count = self.dofmap.num_owned
            self._assemble["step"](count, count, *rows, element, *self.epilogue, out)
            return
        kernel, owned = self.kernels["assemble"], self.dofmap.num_owned
        first, last = assembled_rows(part, owned, owned + self.dofmap.num_ghosts, kernel)
        kernel.of_part(part)(last, last, owned, *self._rows, element, out, self.ghost_sums, first=first)

    @cached_property
    def _assemble(self) -> dict[str, Kernel]:
        names = ("rows", "step")
        return kernels_of({name: self.discretization.assemble_spec(f"assemble_{name}") for name in names}, self.device)

    @cached_property
    def _rows_over_ranks(self) -> tuple:
        """Buffers of the rows of ghosts: number, start, entry; of the places behind the element vectors where ghost
        sums of other ranks come; and of the rows of this rank: start, entry, with these places."""
        plan, arrays, owned, ghosts = self.halo.plan, self.arrays, self.dofmap.num_owned, self.dofmap.num_ghosts
        start = arrays.to_host(self._rows[0], owned + ghosts + 1, np.int32, "assembly rows")
        entry = arrays.to_host(self._rows[1], start[-1], np.int32, "assembly rows")
        places = self.num_entries + np.arange(plan.send_points.size)
        row = np.repeat(plan.targets, np.diff(plan.target_offsets))
        joined = np.insert(entry[: start[owned]], start[row + 1], places[plan.target_slots])
        more = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=owned))])
        of_ghosts = np.arange(ghosts), start[owned:] - start[owned], entry[start[owned] :]
        lists = of_ghosts, (places,), (start[: owned + 1] + more, joined)
        return tuple([arrays.to_device(each, "assembly rows") for each in given] for given in lists)

    def values(self, u, t: float) -> np.ndarray:
        """Owned, ghost and essential values [compact number] of a vector, on the host. Collective."""
        self.update_essential(self.current, t)
        self.current.use(u)
        parts = [(u, self.dofmap.num_owned), (self.current.tail, self.dofmap.num_tail)]
        found = [self.arrays.to_host(buffer, count, name="output") for buffer, count in parts]
        return np.concatenate(found).astype(float)


def constants_change(discretization, before: np.ndarray, now: np.ndarray) -> bool:
    """True if matrices read a constant that has another value now; both are [constant].

    The matrix of a nonlinear physics reads the states, and these follow all constants.
    """
    differs = np.flatnonzero(before != now)
    if not discretization.physics.is_linear:
        return bool(differs.size)
    return bool(np.isin(differs, discretization.dependence.constants).any())


def auxiliary_changes(discretization, name: str, before: np.ndarray, now: np.ndarray) -> bool:
    """True if matrices read a component of the auxiliary field `name` that has another value now.

    before, now: all auxiliary data [row, stride] of this rank. Other ranks may find otherwise.
    """
    field, first = discretization.auxiliary.field(name)
    components = range(first, first + field.components)
    if discretization.physics.is_linear:
        components = [c for c in components if c in discretization.dependence.auxiliary]
    starts = discretization.auxiliary.starts
    rows = [slice(starts[c], starts[c + 1]) for c in components]
    return any(not np.array_equal(before[part], now[part]) for part in rows)
