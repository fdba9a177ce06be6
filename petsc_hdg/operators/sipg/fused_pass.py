"""One fused pass over the cells: chunks away from other ranks run while the halo is under way, then the others."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...device import Kernel, kernels_of
from ...discretizations.sipg.interleaved import CHUNK


class FusedPass:
    """`sipg_residual` and `sipg_action` of an SIPGOperator: each cell reads its neighbours and writes its own rows.

    parts: buffer for parts of the sum of own values times results, where a kernel of products has such and they are
    wanted.
    """

    parts = None

    def __init__(self, operator):
        self.operator = operator
        to_device = operator.arrays.to_device
        inner, outer = operator.discretization.chunk_lists()
        lists = {0: inner, 1: outer, None: np.concatenate([inner, outer])}
        self.chunks = {part: (to_device(c, "chunks") if c.size else None, c.size) for part, c in lists.items()}

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        operator, disc = self.operator, self.operator.discretization
        is_alone = operator.fast is not None or not operator.multiplies
        is_seldom = is_alone and not disc.physics.uses_time_derivative
        return kernels_of(operator.needed(disc.fused_specs(is_seldom)), operator.device)

    def choose(self) -> None:
        """Choose among variants of the kernels by the operator's data. Not collective."""

    def run(self, what: str, out, part: int | None, state=None, rate=None, du=None, t=None, own=None) -> None:
        """Compute `residual` or `action` on the chunks without ghost neighbours (part 0), the others (1) or all; on
        tensor cells of `own` values (a buffer) in each cell and du in its neighbours."""
        chunks, count = self.chunks[part]
        if count:
            kernel, cells = self.kernels[f"sipg_{what}"], self.operator.discretization.mesh.num_cells
            where = {"num_chunks": count, "chunks": chunks, "out": out}
            arguments = self.operator.arguments(kernel, cells, state, rate, du, t, **where)
            arguments["own"] = own or arguments["du_owned"]
            kernel.of_part(part).launch(CHUNK * count, arguments)

    def _launch_product(self, kernel: Kernel, out, part: int | None, du, **given) -> None:
        """Launch a kernel of products alone over the chunks of a part; given: arguments of its own."""
        disc, (chunks, count) = self.operator.discretization, self.chunks[part]
        given |= {"num_chunks": count, "chunks": chunks, "num_cells": disc.mesh.num_cells, "stride": disc.stride}
        given |= {"num_ghosts": disc.neighbours.num_ghosts, "u_owned": du.owned, "u_tail": du.tail}
        kernel.of_part(part).launch(CHUNK * count, {**given, "out": out, "parts": self.parts})
