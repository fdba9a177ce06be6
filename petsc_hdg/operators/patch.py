"""Whole residual and Jacobian action of first-order elements patch by patch (cg_patch.cl), without element vectors."""

from __future__ import annotations

from functools import cached_property

from ..device import Kernel
from ..discretizations.base import cell_fastest


class PatchOperator:
    """The patches of a CGOperator on its device, and the kernels that run on them."""

    def __init__(self, operator):
        self.operator = operator
        disc, arrays = operator.discretization, operator.arrays
        patches = disc.patches
        self.count, self.places = patches.count, len(patches.place_node)
        self.num_rows = len(patches.rows)
        self.border_values = patches.num_border * disc.physics.num_components
        tables = {
            "place_start": patches.place_start,
            "interior": patches.interior,
            "border_start": patches.border_start,
            "place_dofs": patches.place_dofs.T,
            "place_x": disc.mesh.geometry.nodes[patches.place_node].T,
            "corner": cell_fastest(patches.corner, disc.stride),
            "list_start": patches.list_start,
            "list": patches.list,
        }
        self._tables = [arrays.to_device(table, "patches") for table in tables.values()]
        rows = (patches.rows, patches.row_start, patches.row_entry)
        self._rows = [arrays.to_device(table, "patches") for table in rows]
        facets = disc.num_dofs * disc.facet_stride if disc.num_facets else 0
        self.border = arrays.empty(self.border_values + facets)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`cg_patch_residual`, `cg_patch_action` and `assemble_rows`."""
        disc, device = self.operator.discretization, self.operator.device
        specs = {**disc.patch_specs(), "assemble_rows": disc.assemble_spec("assemble_rows")}
        return {name: Kernel(spec, device) for name, spec in specs.items()}

    def sum(self, what: str, out, **where) -> None:
        """out, and the operator's ghost sums: this rank's cells and facets, their `residual` or `action`."""
        operator = self.operator
        disc = operator.discretization
        kernel = self.kernels[f"cg_patch_{what}"]
        arguments = operator.arguments(kernel, disc.mesh.num_cells, **where)
        items = self.count * kernel.spec.local_size
        kernel(items, *arguments, self.places, *self._tables, out, self.border)
        operator.run_facets(f"cg_facet_{what}", self.border, first=self.border_values, **where)
        rows = (self.num_rows, self.num_rows, operator.dofmap.num_owned, *self._rows)
        self.kernels["assemble_rows"](*rows, self.border, out, operator.ghost_sums)
