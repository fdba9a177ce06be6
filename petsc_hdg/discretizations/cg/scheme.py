"""Continuous Galerkin: Lagrange elements of degree 1 to 9, element kernels by sums along lines, thread transposition or
one thread per cell."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from ...codegen import KernelSpec, Launch, in_roles, signature
from ...errors import OptionError
from ...mesh.shapes import CELLS, SHAPES
from ...options import VARIANTS
from ...reference import is_tensor
from ..base import cell_fastest, padded
from ..dofmap import build_dofmaps
from ..lines import UNROLL
from ..parts import OfParts
from ..primal import POINTWISE, PrimalDiscretization
from ..strong_conditions import StrongConditions
from ..transposition import DeviceLimits
from . import tensor
from .patches import LONGEST, PATCH_CELLS, PATCH_THREADS, Patches, build_patches, patch_cells

PATCHES = POINTWISE + signature("""
    int places; int clusters; int num_rounds; int most_places: of a patch; int most_words; int most_slots
    const int *heads; const int *rounds; const int *place_dofs; const real *place_x; const ulong *words
    real *owned: complete sums; real *border: sums to be finished
    const real *patch_aux; local real2 *local_: local memory of the patch
""")
SYMMETRIC_DEGREE = 8  # up to which the rules of simplices treat all corners alike
UNROLLED_POINTS = 8  # times components: points of a cell that a thread of a patch does in a row
CELL_KERNEL_LIMIT = 30  # degrees of freedom of a cell up to which one thread of a GPU does it sooner than several


class ContinuousGalerkin(StrongConditions, PrimalDiscretization):
    """Numbering, arrays and kernel specs of the scheme `cg_gpu`; pure data, no device."""

    name = "cg_gpu"
    degrees = (1, 9)
    shapes, mixes = SHAPES, True
    is_whole = True  # whether the mesh has no other cells
    has_facets = True  # whether natural conditions are terms of these cells
    follows_symmetry = False
    element_kernels = VARIANTS

    @classmethod
    def on(cls, mesh, physics, options, limits) -> ContinuousGalerkin:
        """As in Discretization: of cells of several shapes by a discretization of several parts."""
        return (cls if len(mesh.parts) == 1 else MixedGalerkin)(mesh, physics, options, limits)

    def _check_degree(self) -> None:
        if any(part.cell not in CELLS for part in self.mesh.parts):
            self.degrees = (1, 3)  # with one node inside a triangle at most, no cell need know how others see it
        super()._check_degree()

    # Arrays, cell fastest ------------------------------------------------------------------------------------------

    def cell_dofs(self) -> np.ndarray:
        """Compact numbers of each cell's degrees of freedom, in the order of element vectors."""
        numbers = self.dofmap.cell_numbers
        return numbers if self.cell_by_cell else cell_fastest(numbers, self.stride)

    @cached_property
    def facets(self) -> np.ndarray:
        """Natural facets [3, facet_stride]."""
        return cell_fastest(np.ascontiguousarray(self.natural_facets.T), self.facet_stride)

    @property
    def num_facets(self) -> int:
        return self.natural_facets.shape[1]

    @property
    def facet_stride(self) -> int:
        return padded(self.num_facets)

    def places_of_rows(self) -> list[tuple]:
        """As in Discretization: those of cells, then those of natural facets [dof, facet_stride]."""
        size, cells, count = self.num_dofs, self.mesh.num_cells, self.num_facets
        places = [
            (None, size * cells, 1, 1, 0) if self.cell_by_cell else (None, size * self.stride, self.stride, cells, 0)
        ]
        if count:
            numbers = cell_fastest(self.dofmap.cell_numbers[self.natural_facets[0]], self.facet_stride)
            places.append((numbers, numbers.size, self.facet_stride, count, size * self.stride))
        return places

    def element_numbers(self, numbers: np.ndarray | None = None) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """As in PrimalDiscretization: of cells, then, if there are such, of natural facets' cells."""
        parts, _ = super().element_numbers(numbers)
        if not self.num_facets:
            return parts, parts
        (numbers,) = parts
        of_facets = np.full((self.num_dofs, self.facet_stride), -1, dtype=numbers.dtype)
        of_facets[:, : self.num_facets] = numbers[:, self.natural_facets[0]]
        return (parts := [numbers, of_facets]), parts

    @property
    def _point_costs(self) -> tuple[float, float]:
        inside, on_facet = super()._point_costs
        if self.variant == "tensor":
            inside = tensor.line_flops(self) * len(self.spaces) / (2 * self.physics.num_components)
        return float(inside), on_facet

    @property
    def num_entries(self) -> int:
        """Numbers in the element vectors of cells and facets."""
        return self.num_dofs * (self.stride + (self.facet_stride if self.num_facets else 0))

    def facet_sides(self) -> np.ndarray:
        """Sides that a cell evaluates on each of its facets [num_cells, facet]: those of natural conditions."""
        sides = np.zeros((self.mesh.num_cells, self.num_facets_of_cell))
        np.add.at(sides, tuple(self.natural_facets[:2]), 1)
        return sides

    @cached_property
    def patches(self) -> Patches:
        """Patches of consecutive cells, for first-order elements: as many as a work-group's local memory takes."""
        cells = patch_cells(self.mesh.cell, self.physics.num_components)
        patches = self._patches(cells)
        while self.patch_bytes("action", patches) > self.limits.local_bytes and cells > 64:
            cells //= 2
            patches = self._patches(cells)
        return patches

    def _patches(self, cells: int) -> Patches:
        count, cluster = self.mesh.num_cells, self.cells_per_thread
        return build_patches(
            self.mesh.geometry.cell_nodes[:count],
            self.dofmap.cell_numbers,
            self.dofmap.num_owned,
            self.dofmap.num_owned + self.dofmap.num_ghosts,
            cells,
            cluster,
            self.mesh.topology.facet_cells if cluster > 1 else None,
            self.natural_facets[0],
            self.facet_stride,
        )

    # Kernel specs ------------------------------------------------------------------------------------------------

    @cached_property
    def variant(self) -> str:
        """`cell` (one thread per cell), `transpose` (thread transposition), `tensor` (sums along lines of
        quadrilaterals and hexahedra) or `patch` (one first-order field)."""
        if self.options.kernel == "patch" and not self.is_first_order:
            raise OptionError(
                f"-{self.options.prefix}fe_kernel patch takes one field of degree 1 on straight cells of one shape, "
                f"{', '.join(PATCH_CELLS)}; use cell, transpose or auto"
            )
        if self.options.kernel == "tensor":
            tensor.check_tensor(self)
        if self.options.kernel != "auto":
            return self.options.kernel
        if self.limits.is_gpu and self.is_first_order:
            return "patch"
        if is_tensor(self.mesh.cell) and tensor.line_shape(self) is not None:  # a line fits local memory
            return "tensor"
        return "transpose" if self.limits.is_gpu and self.num_dofs > CELL_KERNEL_LIMIT else "cell"

    @property
    def cell_by_cell(self) -> bool:
        """True where a GPU's work-items share a cell in sums along lines."""
        return self.limits.is_gpu and self.variant == "tensor"

    @property
    def is_first_order(self) -> bool:
        """One field whose nodes are the cells' vertices, on cells that have patches."""
        return (
            self.is_whole
            and self.mesh.cell in PATCH_CELLS
            and len(self.spaces) == 1
            and self.spaces[0].element.degree == self.mesh.geometry.degree == 1
        )

    @property
    def cells_per_thread(self) -> int:
        """Cells a thread of a patch does at a time: those of a fan, whose order of corners must not matter.

        Rules of high degree are not symmetric.
        """
        free = self.mesh.shape.is_simplex and self.quadrature_degree <= SYMMETRIC_DEGREE
        return LONGEST if free and self.physics.num_components == 1 else 1

    def patch_bytes(self, what: str, patches=None) -> int:
        """Local memory of a patch's `residual` or `action`: coordinates and values of its places, and its slots."""
        places, words, slots = (patches or self.patches).local
        vectors = 1 + int(self.physics.uses_time_derivative) + int(what == "action")
        components = self.physics.num_components
        return 8 * words + self.real_bytes * (places * (self.dim + vectors * components) + slots * components)

    def patch_specs(self) -> dict[str, KernelSpec]:
        """Specs of `cg_patch_residual` and `cg_patch_action`."""
        patches, threads = self.patches, PATCH_THREADS[self.mesh.cell]
        macros = {**self._macros(), "NQ": self.quadrature.num_points, "THREADS": threads}
        macros |= {"CLUSTER": self.cells_per_thread, "CORNER_BITS": patches.corner_bits, "SLOT_BITS": patches.slot_bits}
        macros["PLACE_ROUNDS"], macros["WORD_ROUNDS"] = (max(1, -(-n // threads)) for n in patches.local[:2])
        few = self.limits.is_gpu and self.quadrature.num_points * self.physics.num_components <= UNROLLED_POINTS
        macros["UNROLL_POINTS"] = '_Pragma("unroll")' if few else ""
        tables, points = self._cell_tables(self.quadrature), "cg_patch_tables.clh"
        if self.mesh.cell == "hexahedron":  # quadrilaterals have fewer operations by lines, and take 5 % longer
            tables["PHI1"], points = tensor.line_rule(self).points[:, 0], "cg_patch_lines.clh"
            macros |= {"NQ1": len(tables["PHI1"]), "UNROLL": UNROLL}
        sources = self._sources(points, "cg_patch.clh", *in_roles("cg_patch.cl"))
        whats = ("residual", "action")
        names = {f"cg_patch_{what}": self.patch_bytes(what) for what in whats}
        how = {"arguments": PATCHES, "launch": Launch(1, threads)}
        return {n: self._spec(n, sources, macros, tables, threads, local, **how) for n, local in names.items()}

    @property
    def _table_flops(self) -> int:
        return tensor.line_flops(self) if self.variant == "tensor" else super()._table_flops

    @property
    def flops_per_diagonal(self) -> int:
        """Flops of the diagonal of an element matrix without the physics."""
        return tensor.line_diagonal_flops(self) if self.variant == "tensor" else super().flops_per_diagonal

    def element_specs(self) -> dict[str, KernelSpec]:
        """Specs of `cg_residual` and `cg_action`."""
        return tensor.line_specs(self) if self.variant == "tensor" else self.volume_specs()

    def matrix_specs(self) -> dict[str, KernelSpec]:
        """Specs of `cg_matrix` and `cg_diagonal`."""
        return super().matrix_specs() | (tensor.line_diagonal(self) if self.variant == "tensor" else {})

    def facet_specs(self) -> dict[str, KernelSpec]:
        """Specs of the boundary integrals: residual, action, matrix, diagonal."""
        tables = self.facet_tables(*self.facet_rules)
        names = [f"cg_facet_{what}" for what in ("residual", "action", "matrix", "diagonal")]
        used = {"F0": 1, "F1": int(self.physics.has_boundary_f1)}
        sources = ("point_block.clh", *in_roles("cg_facet.cl", "residual", "action", "matrix", "diagonal"))
        columns = {"cg_facet_matrix": self.num_dofs}
        return {n: self.facet_spec(n, sources, tables, columns.get(n, 0), **used) for n in names}

    def transposed_specs(self) -> dict[str, KernelSpec]:
        """Specs of the transposed Jacobian's action: `cg_transposed` of cells, and `cg_facet_transposed`."""
        found = self.transposed_volume()
        if self.physics.natural:
            tables = self.facet_tables(*self.facet_rules)
            sources = ("transposed_point.clh", *in_roles("cg_facet.cl", "transposed"))
            found["cg_facet_transposed"] = self.facet_spec("cg_facet_transposed", sources, tables, F0=1, F1=1)
        return found

    def flux_spec(self) -> KernelSpec:
        """Spec of `cg_flux`."""
        return self.facet_spec("cg_flux", ("cg_flux.cl",), self.facet_tables(*self.facet_rules), F0=1, F1=1)


class MixedGalerkin(OfParts, ContinuousGalerkin):
    """`cg_gpu` on a mesh of several parts."""

    def __init__(self, mesh, physics, options, limits: DeviceLimits | None = None):
        super().__init__(mesh, physics, options, limits)
        self.parts = tuple(ContinuousGalerkin(part, physics, options, limits) for part in mesh.parts)
        dofmaps = build_dofmaps(mesh, [part.spaces for part in self.parts], self.constrained_components[0])
        self.dofmap = replace(dofmaps[0], cell_dofs=np.zeros((0, 0), np.int32))
        facets = self.natural_facets
        for part, dofmap in zip(self.parts, dofmaps, strict=True):
            first, last = part.mesh.cells.start, part.mesh.cells.stop
            mine = facets[:, (facets[0] >= first) & (facets[0] < last)] - np.array([[first], [0], [0]], np.int32)
            part.is_whole, part.dofmap, part.natural_facets = False, dofmap, mine
            part.constrained_components = self.constrained_components
        self._lay_out()
