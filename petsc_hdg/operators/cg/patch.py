"""Whole residual and Jacobian action of first-order elements patch by patch (cg_patch.cl), without element vectors."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np

from ...device import Kernel
from ...device.platforms import opencl
from ..check import fastest_on_ones
from ..overlap import FIRST, LAST, OUTER, part_range


class PatchOperator:
    """The patches of a CGOperator on its device, and the kernels that run on them."""

    def __init__(self, operator):
        self.operator = operator
        disc, arrays = operator.discretization, operator.arrays
        patches = disc.patches
        self.count, self.num_rows = patches.count, len(patches.rows)
        self.border_values = patches.num_border * disc.physics.num_components
        sizes = ("places", "clusters", "num_rounds", "most_places", "most_words", "most_slots")
        counts = (len(patches.place_node), len(patches.members), patches.rounds.shape[2], *patches.local)
        self._arguments = dict(zip(sizes, counts, strict=True))
        tables = {
            "heads": patches.heads,
            "rounds": patches.rounds,
            "place_dofs": patches.place_dofs.T,
            "place_x": disc.mesh.geometry.nodes[patches.place_node].T,
            "words": patches.words.view(np.int32),
        }
        self._arguments |= {name: arrays.to_device(table, "patches") for name, table in tables.items()}
        rows = (patches.rows, patches.row_start, patches.row_entry)
        self._first_ghost = int(np.searchsorted(patches.rows, operator.dofmap.num_owned))
        self._rows = [arrays.to_device(table, "patches") for table in rows]
        facets = disc.num_dofs * disc.facet_stride if disc.num_facets else 0
        self._local: dict = {}
        self._aux = arrays.zeros(max(1, disc.auxiliary.num_rows * patches.members.size))
        self.load_auxiliary()
        self.border = arrays.empty(self.border_values + facets)

    def load_auxiliary(self) -> None:
        """Take the operator's rows of auxiliary data [row, stride], in the order of the clusters' cells and corners."""
        disc, rows = self.operator.discretization, self.operator.aux_rows
        starts, members = disc.auxiliary.starts, disc.patches.members.T
        parts = []
        for start, end in pairwise(starts):
            order = start if end - start == 1 else start + self._corner_rows
            parts.append(np.where(members >= 0, rows[order, members], 0.0).reshape(end - start, -1))
        if parts:
            values = np.ascontiguousarray(np.concatenate(parts), dtype=self.operator.arrays.real)
            self.operator.arrays.upload(self._aux, values, "auxiliary")

    @cached_property
    def _corner_rows(self) -> np.ndarray:
        disc = self.operator.discretization
        return disc.patches.corner_rows(disc.mesh.geometry.cell_nodes[: disc.mesh.num_cells], disc.dim - 1)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`cg_patch_residual`, `cg_patch_action` and `assemble_rows`."""
        disc, device = self.operator.discretization, self.operator.device
        shapes = disc.patch_shapes().items()
        found = {name: fastest_on_ones(self.operator, specs, self._launch) for name, specs in shapes}
        return found | {"assemble_rows": Kernel(disc.assemble_spec("assemble_rows"), device)}

    def _launch(self, kernel: Kernel, out, part: int | None = None, **where) -> None:
        first, last = self._patches(part) if self._arguments["places"] else (0, 0)
        size = kernel.spec.local_bytes
        local = self._local.setdefault(size, opencl().LocalMemory(size))  # the same object, which need not be set anew
        mine = {**self._arguments, "owned": out, "border": self.border, "patch_aux": self._aux, "local_": local}
        cells = self.operator.discretization.mesh.num_cells
        kernel.of_part(part).launch(last, self.operator.arguments(kernel, cells, **where, **mine), first=first)

    def _patches(self, part: int | None) -> tuple[int, int]:
        """First and last patch of a part, see overlap.py."""
        disc, cells = self.operator.discretization, self.operator.discretization.patches.cells
        ends = part_range(part, disc.mesh.num_inner, self.count * cells, cells, self.operator.device)
        return ends[0] // cells, ends[1] // cells

    def sum(self, what: str, out, part: int | None = None, **where) -> None:
        """out, and the operator's ghost sums: this rank's cells and facets, their `residual` or `action`."""
        operator = self.operator
        self._launch(self.kernels[f"cg_patch_{what}"], out, part, **where)
        if part in (None, OUTER):
            operator.run_facets(f"cg_facet_{what}", self.border, first=self.border_values, **where)
        self._sum_border(out, part)

    def _sum_border(self, out, part: int | None) -> None:
        """Rows that patches leave: those of ghosts in OUTER, others once all patches are done."""
        operator, kernel = self.operator, self.kernels["assemble_rows"]
        group = kernel.spec.local_size
        first, last = {
            None: (0, self.num_rows),
            FIRST: (0, 0),
            OUTER: (self._first_ghost // group * group, self.num_rows),
            LAST: (0, self._first_ghost),
        }[part]
        rows = (last, operator.dofmap.num_owned, *self._rows)
        kernel.of_part(part)(last, *rows, self.border, out, operator.ghost_sums, first=first)
