"""One fused pass over the cells: chunks away from other ranks run while the halo is under way, then the others."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...device import Kernel, kernels_of


class FusedPass:
    """`sipg_residual` and `sipg_action` of an SIPGOperator: each cell reads its neighbours and writes its own rows."""

    def __init__(self, operator):
        self.operator = operator
        to_device = operator.arrays.to_device
        inner, outer = operator.discretization.chunk_lists()
        lists = {0: inner, 1: outer, None: np.concatenate([inner, outer])}
        self.chunks = {part: (to_device(c, "chunks") if c.size else None, c.size) for part, c in lists.items()}

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        specs = self.operator.discretization.fused_specs()
        return kernels_of(specs, self.operator.device)

    def run(self, what: str, out, part: int | None, state=None, rate=None, du=None, t=None) -> None:
        """Compute `residual` or `action` on the chunks without ghost neighbours (part 0), the others (1) or all."""
        chunks, count = self.chunks[part]
        if count:
            kernel, disc = self.kernels[f"sipg_{what}"], self.operator.discretization
            arguments = self._arguments(kernel, chunks, count, state, rate, du, t)
            kernel.of_part(part)(disc.fused_items(kernel.spec, count), *arguments, out)

    def _arguments(self, kernel, chunks, count: int, state, rate, du, t) -> tuple:
        """SIPG_ARGUMENTS of sipg_flux.clh."""
        op = self.operator
        disc, state, rate = op.discretization, state or op.state, rate or op.rate
        du = du or state
        return (
            count, disc.mesh.num_cells, disc.neighbours.num_ghosts, disc.stride,
            float(op.time if t is None else t), float(op.shift), op._constants, op._nodes, op._cell_nodes, op._aux,
            op._tables(kernel.spec.name), op.neighbour, op.code, op.penalty.buffer, op.kinds, chunks,
            state.owned, state.tail, rate.owned, rate.tail, du.owned, du.tail,
        )  # fmt: skip
