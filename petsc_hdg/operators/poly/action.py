"""Products by the matrix of polytopic DG without it, polytope by polytope."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cached_property

import numpy as np

from ...device import Kernel
from ...device.halo import Halo
from ..vectors import TailedVector


class PolytopicAction:
    """The kernels `poly_action` of a PolytopicOperator, one a degree; making one is collective."""

    def __init__(self, operator):
        self.operator, self.arrays, self.dofmap = operator, operator.arrays, operator.dofmap
        disc, dofmap = operator.discretization, operator.dofmap
        self.halo = Halo(disc.mesh.comm, dofmap.num_owned, dofmap.ghost_rank, dofmap.ghost_index, operator.arrays)
        self.direction = TailedVector(self)

    @cached_property
    def launches(self) -> list:
        """Kernel, and number of items and their rows [item, 5] of polytopes without ghost neighbours and of others, for
        each degree."""
        operator, disc = self.operator, self.operator.discretization
        outer = np.zeros(disc.polytopes.count, bool)
        outer[disc.polytopes.of_cell[: disc.mesh.num_cells][disc.fine.neighbours.has_ghost]] = True
        found = []
        for items in disc.blocks.everything():
            facets = float((items.rows[:, 4] - items.rows[:, 3]).mean())
            kernel = Kernel(disc.action_spec(items.degree, facets), operator.device)
            of_ghosts = outer[items.rows[:, 0]]
            parts = [items.rows[~of_ghosts], items.rows[of_ghosts]]
            found.append((kernel, [(len(rows), self.arrays.to_device(rows, "polytopes")) for rows in parts]))
        return found

    @cached_property
    def _faces(self):
        return self.arrays.to_device(self.operator.discretization.blocks.faces, "polytopes")

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel compiled so far, by name and degree."""
        compiled = self.__dict__.get("launches", ())
        return {f"poly_action_{kernel.spec.macros['DEGREE']}": kernel for kernel, *_ in compiled}

    def run(self, du, out) -> None:
        """out = J du at the state of the operator's `linearize`; polytopes without ghost neighbours are computed while
        the halo is under way. Collective."""
        self.direction.begin(du)
        self._run(out, 0)
        with nullcontext() if self.halo.alone else self.operator.device.beside():
            self.direction.end()
            self._run(out, 1)

    def _run(self, out, part: int) -> None:
        operator, cells = self.operator, self.operator.discretization.mesh.num_cells
        lists = {"boxes": operator.boxes, "cells": operator.cells, "facets": self._faces}
        lists |= {"of_cell": operator.of_cell, "begin": operator.first, "n_unknowns": self.dofmap.num_owned}
        lists |= {"direction": self.direction.owned, "direction_tail": self.direction.tail, "out": out}
        for kernel, parts in self.launches:
            count, rows = parts[part]
            mine = operator.fine.arguments(kernel, cells, num_items=count, items=rows, **lists)
            kernel.of_part(part).launch(count, mine)
