"""Interior penalty on cells of several shapes, prisms and pyramids: volume terms by discretizations of the cells of
each shape, facets by tables of the facets of all shapes."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from ...codegen import KernelSpec
from ...errors import OptionError, PhysicsError, collectively
from ...reference import Quadrature
from ..base import cell_fastest
from ..cg.scheme import ContinuousGalerkin
from ..parts import OfParts
from .interleaved import unconstrained_dofmap

NO_ROW = np.iinfo(np.int32).max


class FacetsOfShapes(OfParts):
    """Interior penalty on meshes of several cell shapes, and on prisms and pyramids, whose facets have two shapes.

    To kernels of facets a cell has the facets of all shapes, one shape's after the other's, with terms on its own, and
    as many degrees of freedom and geometry nodes as the largest: functions of those that it lacks are zero. Unknowns
    are numbered cell by cell.
    parts: a ContinuousGalerkin of the cells of each shape, whose functions are not continuous here.
    """

    has_fused = sees_least = False

    def __init__(self, mesh, physics, options, limits=None):
        with collectively(mesh.comm):
            if options.sipg_kernel in ("affine", "fused"):
                raise OptionError(
                    f"-{options.prefix}sipg_kernel {options.sipg_kernel} was given for {mesh.cell} cells; auto and "
                    "split are accepted there: leave it out"
                )
            if physics.flux_has_steps(mesh.dim):
                raise PhysicsError(
                    f"f1 of physics '{physics.name}' may jump where x passes a bound, and penalties see that on cells "
                    f"of one shape, not on {mesh.cell}: give coefficients as auxiliary fields by regions, or "
                    "-fe_backend cg_gpu"
                )
        super().__init__(mesh, physics, options, limits)
        self.parts = tuple(ContinuousGalerkin(part, physics, options, limits) for part in mesh.parts)
        for part, dofs in zip(self.parts, self._places, strict=True):
            own = replace(self.dofmap, cell_dofs=self._numbering[1][part.mesh.cells][:, dofs])
            part.is_whole, part.has_facets = False, False
            part.dofmap, part.natural_facets = own, np.zeros((3, 0), np.int32)
        self._lay_out(self.num_dofs * self.stride)

    @cached_property
    def _places(self) -> list[np.ndarray]:
        """Degrees of freedom [dof] of the largest cell that the cells of each part have."""
        pairs = [zip(self.spaces, part.spaces, strict=True) for part in self.parts]
        return [np.concatenate([w.first_dof + np.arange(own.num_dofs) for w, own in pair]) for pair in pairs]

    # Numbering -----------------------------------------------------------------------------------------------------

    @cached_property
    def _numbering(self):
        near, mesh = self.neighbours, self.mesh
        number = near.extended(np.repeat(np.arange(len(self.parts), dtype=np.int32), [p.num_cells for p in mesh.parts]))
        sizes = np.array([part.num_dofs for part in self.parts])[number]
        first, count = np.cumsum(sizes) - sizes, mesh.num_cells
        owned, there = int(sizes[:count].sum()), near.extended(first[:count])[count:]
        compact = np.full((len(sizes), self.num_dofs), -1, np.int32)
        for k, dofs in enumerate(self._places):
            cells = np.flatnonzero(number == k)
            compact[cells[:, None], dofs] = first[cells, None] + np.arange(len(dofs))
        of_ghosts = sizes[count:]
        index = np.repeat(there - first[count:], of_ghosts) + np.arange(owned, sizes.sum())
        rank = np.repeat(near.ghost_rank, of_ghosts)
        cell_dofs = np.zeros((0, 0), np.int32)
        return unconstrained_dofmap(mesh.comm, owned, rank, index, cell_dofs, int(sizes.sum())), compact

    @property
    def extended_dofs(self) -> np.ndarray:
        """As in InteriorPenalty; for degrees of freedom that a cell lacks its first one."""
        compact = self._numbering[1]
        return np.where(compact < 0, compact[:, :1], compact)

    def extended_numbers(self, numbers: np.ndarray) -> np.ndarray:
        """As in InteriorPenalty; -1 for degrees of freedom that a cell lacks."""
        compact = self._numbering[1]
        return np.where(compact < 0, -1, numbers[compact]).T

    def places_of_rows(self) -> list[tuple]:
        """As in Discretization: those of the terms of facets, then those of the parts."""
        compact = self._numbering[1][: self.mesh.num_cells]
        rows = cell_fastest(np.where(compact < 0, NO_ROW, compact), self.stride)
        return [(rows, rows.size, self.stride, self.mesh.num_cells, 0), *super().places_of_rows()]

    def matrix_numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """As in PrimalDiscretization: of the matrices of the parts, then of those of facets."""
        both = super().matrix_numbers(), super(OfParts, self).matrix_numbers()
        rows, columns = map(np.concatenate, zip(*both, strict=True))
        return rows, columns

    # Kernel specs ------------------------------------------------------------------------------------------------

    @property
    def quadrature(self) -> Quadrature:
        """A rule without points: the parts integrate over cells."""
        return Quadrature(np.zeros((0, self.dim)), np.zeros(0))

    def _cell_tables(self, quadrature) -> dict[str, np.ndarray]:
        return dict.fromkeys(("BASIS", "GRAD", "GEO", "GEO_GRAD", "WEIGHTS"), np.zeros(1))

    def volume_specs(self) -> dict[str, KernelSpec]:
        """No specs: the parts have the kernels of cells."""
        return {}

    matrix_specs = transposed_volume = volume_specs
