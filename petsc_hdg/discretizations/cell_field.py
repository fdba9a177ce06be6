"""A field by its values in each cell: what a solution is to those who write, draw or measure it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..reference import ReferenceElement


@dataclass(frozen=True)
class CellField:
    """Values [cell, node, component] at the nodes of `element` in this rank's cells; they may jump between cells."""

    name: str
    element: ReferenceElement
    values: np.ndarray

    def at(self, points: np.ndarray) -> np.ndarray:
        """Values [cell, point, component] at reference points [point, dim]."""
        return np.einsum("pn,cnk->cpk", self.element.tabulate(points, 0)[0], self.values)
