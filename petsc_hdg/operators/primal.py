"""Operators of schemes whose unknowns are nodal values in cells: vectors, volume terms, integrals."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..device import Kernel, built_together, kernels_of
from ..discretizations import CellField
from ..discretizations.base import cell_fastest, padded
from ..discretizations.integral_specs import cell_error_spec, cell_integral_spec
from .base import DeviceOperator
from .overlap import element_cells
from .vectors import TailedVector


class PrimalOperator(DeviceOperator):
    """Kernels of a PrimalDiscretization bound to the buffers they work on. Subclasses give `kernels`, `matrix_kernels`,
    `residual`, `action`, `transposed`, `diagonal`, `matrix_buffers` and `flux`.

    arrays: device arrays (also says device and precision).   dofmap: the discretization's numbering.
    All buffers of vectors hold this rank's owned values [num_owned] as `real`.
    """

    norms = ("L2", "H1")  # what the rows of `errors` are squares of

    def __init__(self, discretization, arrays, source: PrimalOperator | None = None):
        super().__init__(discretization, arrays, source)
        self.current, self.current_rate = TailedVector(self), TailedVector(self, is_rate=True)
        self.state, self.direction = TailedVector(self), TailedVector(self)
        self.rate = self.kept_rate = TailedVector(self, is_rate=True)
        self.time, self.shift = 0.0, 0.0
        self._matrix_buffers: dict = {}
        self._followed: int | None = None  # version of the source's data that a copy has

    def in_precision(self, precision: str) -> PrimalOperator:
        """A copy in another precision: products alone, of the linearization that `follow` takes. Collective."""
        return type(self)(self.discretization.in_precision(precision), self.arrays.in_precision(precision), self)

    def follow(self) -> None:
        """Take the data and the linearization of `source`."""
        other, arrays = self.source, self.arrays
        if self._followed != other.version:
            self._followed = other.version
            self._load_constants(other.constants)
            for part, source in zip(self.members, other.members, strict=True):
                part.aux_rows = source.aux_rows
                arrays.upload(part._aux, np.ascontiguousarray(part.aux_rows, arrays.real), "auxiliary")
        self.time, self.shift = other.time, other.shift
        self.state.copy(other.state)
        self.rate = self.rest if other.rate is other.rest else self.kept_rate.copy(other.rate)
        self.linearizations += 1

    def needed(self, specs: dict) -> dict:
        """Specs by name; of a copy without residuals."""
        return specs if self.source is None else {name: spec for name, spec in specs.items() if "residual" not in name}

    @property
    def _essential_vectors(self):
        return self.current, self.current_rate, self.state, self.kept_rate

    @cached_property
    def _element(self):
        """Buffer of element vectors, as long as the scheme needs it."""
        return self.arrays.empty(self.discretization.num_dofs * self.discretization.stride)

    # Kernels, compiled at first use ----------------------------------------------------------------------

    def compile(self, matrices: bool = False, products: bool = True) -> None:
        """Compile what residuals and products need, and the element matrices if asked for. Not collective."""
        with built_together(self.device):
            if self.dofmap.num_constrained:
                self._essential_kernel  # noqa: B018
            if products:
                self._compile_products()
            if matrices:
                self.matrix_kernels  # noqa: B018

    def _compile_products(self) -> None:
        self.kernels  # noqa: B018

    @property
    def flops(self) -> int:
        """Flops of this rank's residual without the physics; a product does twice as many (state and direction)."""
        return sum(part.mesh.num_cells * part.flops_per_cell for part in self.discretization.parts)

    @property
    def matrix_flops(self) -> int:
        """Flops of this rank's element matrices without the physics."""
        return sum(part.mesh.num_cells * part.flops_per_matrix for part in self.discretization.parts)

    @property
    def diagonal_flops(self) -> int:
        """Flops of the diagonals of this rank's element matrices without the physics."""
        return sum(part.mesh.num_cells * part.flops_per_diagonal for part in self.discretization.parts)

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel compiled so far, by name."""
        return dict(self.kernels) | vars(self).get("matrix_kernels", {})

    @cached_property
    def error_kernel(self) -> tuple[Kernel, ...]:
        """Kernels of the parts."""
        return tuple(Kernel(cell_error_spec(part.discretization), self.device) for part in self.parts)

    def integral_kernel(self, objective) -> tuple[Kernel, ...]:
        """Kernels of an Objective on the parts, for `integrals`. Not collective."""
        return tuple(Kernel(cell_integral_spec(part.discretization, objective), self.device) for part in self.parts)

    @cached_property
    def _flux_kernel(self) -> Kernel:
        return Kernel(self.discretization.flux_spec(), self.device)

    @cached_property
    def rest(self) -> TailedVector:
        """The rate u_t = 0 of a steady problem."""
        vector = TailedVector(self, is_rate=True)
        if self.discretization.physics.uses_time_derivative:
            vector.owned = self.arrays.zeros(max(1, self.dofmap.num_owned))
        return vector

    # Vectors ---------------------------------------------------------------------------------------------

    def arguments(self, kernel: Kernel, count: int, state=None, rate=None, du=None, t=None, **others) -> dict:
        """Arguments of kernels by name (discretizations/primal.py), and `others`; count: cells or facets.

        state, rate: TailedVectors, those of `linearize` by default; a rate that is not set is not read by the kernels.
        """
        state, rate = state or self.state, rate or self.rate
        du = du or state
        if kernel.lasting is None:
            mine = {argument.name for argument in kernel.spec.arguments}
            kernel.lasting = {name: make() for name, make in self._makers(kernel).items() if name in mine}
        return {
            **kernel.lasting,
            "num_cells": count,
            "t": float(self.time if t is None else t),
            "shift": float(self.shift),
            "constants_": self._constants,
            "u_owned": state.owned,
            "u_tail": state.tail,
            "ut_owned": rate.owned,
            "ut_tail": rate.tail,
            "du_owned": du.owned,
            "du_tail": du.tail,
            **others,
        }

    def _makers(self, kernel: Kernel) -> dict:
        """Functions of nothing that make the arguments which stay, for the kernels that have them."""
        return {
            "stride": lambda: self.discretization.stride,
            "n_owned": lambda: self.dofmap.num_owned,
            "dofs": lambda: self._dofs,
            "nodes": lambda: self._nodes,
            "cell_nodes": lambda: self._cell_nodes,
            "aux": lambda: self._aux,
            "tables": lambda: self.arrays.tables_of(kernel.spec),
        }

    def linearize(self, u, t: float = 0.0, u_t=None, shift: float = 0.0) -> None:
        """Keep the state at which `action`, `diagonal` and `matrices` differentiate. Collective."""
        self.time, self.shift = t, shift
        self.linearizations += 1
        self.update_essential(self.state, t)
        self.state.keep(u)
        self.rate = self.rest if u_t is None else self.kept_rate
        if u_t is not None:
            self.update_essential(self.rate, t)
            self.rate.keep(u_t)

    @cached_property
    def _transposed_kernels(self) -> dict[str, Kernel]:
        return kernels_of(self.discretization.transposed_specs(), self.device)

    # Results ---------------------------------------------------------------------------------------------

    def errors(self, u, t: float) -> np.ndarray:
        """Squared errors [2, component] over this rank's cells: L2, then the gradient's. Collective."""
        return self.integrals(self.error_kernel, u, t).sum(axis=1).reshape(2, -1)

    def integrals(self, kernels: tuple, u, t: float) -> np.ndarray:
        """Integrals [component, cell] of a pointwise function over this rank's cells. Collective."""
        self.update_essential(self.current, t)
        self.current.use(u)
        found = []
        for part, kernel in zip(self.parts, kernels, strict=True):
            shape = (kernel.spec.rows, part.discretization.stride)
            sums = self.arrays.zeros(int(np.prod(shape)))
            part._launch_cells(kernel, sums, state=self.current, t=t)
            found.append(self.arrays.to_host(sums, shape, name="integrals")[:, : part.discretization.mesh.num_cells])
        return np.concatenate(found, axis=1).astype(float)

    def boundary_integrals(self, kernels: tuple, label: str, u, t: float, side: str | None = None) -> np.ndarray:
        """Integrals [component, facet] of a pointwise function over this rank's facets of a named boundary, of u and
        its gradient in the cells, those of a region. Collective."""
        sides = self.discretization.mesh.boundary_facets(label, side is not None, side)
        return self.over_sides(kernels, *sides, u, t)

    def over_sides(self, kernels: tuple, cells: np.ndarray, local: np.ndarray, u, t: float) -> np.ndarray:
        """The same over facets of cells [n], ascending, by their numbers in these [n]. Collective."""
        self.update_essential(self.current, t)
        self.current.use(u)
        self.update_essential(self.rest, t)
        facets, found = np.stack([cells, local, 0 * local], axis=1), []
        for part, kernel in zip(self.parts, kernels, strict=True):
            mine = part.discretization.mesh.cells
            here = facets[(cells >= mine.start) & (cells < mine.stop)] - [mine.start, 0, 0]
            found.append(part.over_facets(kernel, here, kernel.spec.rows, self.current, self.rest, t=t))
        return np.concatenate(found, axis=1)

    def over_facets(self, kernel: Kernel, facets: np.ndarray, rows: int, *vectors, t: float) -> np.ndarray:
        """Launch a kernel over some facets and return its result [row, facet]; facets [facet, number] as it takes them;
        vectors: state and rate."""
        stride, count = padded(len(facets)), len(facets)
        out = self.arrays.zeros(rows * stride)
        listed = self.arrays.to_device(cell_fastest(facets.astype(np.int32), stride), "facets")
        where = {"facet_stride": stride, "first": 0, "facets": listed, "out": out}
        kernel.launch(count, self.arguments(kernel, count, *vectors, t=t, **where))
        return self.arrays.to_host(out, (rows, stride), name="facets")[:, :count].astype(float)

    def cell_fields(self, u, t: float) -> list[CellField]:
        """The fields of a vector in this rank's cells, essential values included. Collective."""
        values = self.values(u, t)[self.dofmap.compact[self.dofmap.cell_dofs]]
        return [
            CellField(
                s.name,
                s.element,
                values[:, s.first_dof : s.first_dof + s.num_dofs].reshape(-1, s.element.num_basis, s.components),
            )
            for s in self.discretization.spaces
        ]

    # Steps -----------------------------------------------------------------------------------------------

    def run_cells(self, name: str, out, part: int | None = None, **where) -> None:
        """Launch an element kernel into `out` [dof, stride], for a part of the cells; `where`: see `arguments`."""
        self._launch_cells(self.kernels[name], out, part, **where)

    def _launch_cells(self, kernel: Kernel, out, part: int | None = None, **where) -> None:
        mesh = self.discretization.mesh
        ends = element_cells(part, mesh.num_inner, mesh.num_cells, kernel.spec.launch.cells, self.device)
        arguments = self.arguments(kernel, mesh.num_cells, out=out, **where)
        kernel.of_part(part).launch(ends[1], arguments, first=ends[0])

    def run_columns(self, name: str, out, **where) -> None:
        """Launch `cg_matrix` or `cg_diagonal` into `out`; `where`: see `arguments`."""
        kernel, cells = self.matrix_kernels[name], self.discretization.mesh.num_cells
        kernel.launch(cells, self.arguments(kernel, cells, out=out, **where))

    def _matrix_buffer(self, name: str, count: int):
        if name not in self._matrix_buffers:
            self._matrix_buffers[name] = self.arrays.zeros(count), count  # kernels leave out padding, the host reads it
        return self._matrix_buffers[name][0]

    def matrices(self) -> np.ndarray:
        """The element matrices of `matrix_buffers`, flat [value], in the order of the discretization's
        `matrix_numbers`, which has the row and the column of each value."""
        self.matrix_buffers()
        found = [self._matrix_buffers[name] for name in ("cells", "facets") if name in self._matrix_buffers]
        return np.concatenate([self.arrays.to_host(*buffer, name="matrices") for buffer in found])
