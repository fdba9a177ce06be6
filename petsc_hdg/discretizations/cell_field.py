"""A field by its values in each cell: what a solution is to those who write, draw or measure it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..reference import ReferenceElement

ALL = slice(None)


@dataclass(frozen=True)
class CellField:
    """Values [cell, node, component] at the nodes of `element` in this rank's cells; they may jump between cells."""

    name: str
    element: ReferenceElement
    values: np.ndarray

    def at(self, points: np.ndarray, cells=ALL) -> np.ndarray:
        """Values [cell, point, component] at reference points [point, dim], or [cell, point, dim], of some cells."""
        return self._tabulated(points, 0)[0] @ self.values[cells]

    def slopes(self, points: np.ndarray, cells=ALL) -> np.ndarray:
        """Derivatives [cell, point, component, direction] by reference coordinates, at points as `at` takes them."""
        return np.stack([table @ self.values[cells] for table in self._tabulated(points, 1)[1:]], axis=-1)

    def _tabulated(self, points: np.ndarray, derivatives: int) -> np.ndarray:
        """Basis functions, and derivatives [1 + dim, …, point, node] if asked for, at points [..., point, dim]."""
        table = self.element.tabulate(points.reshape(-1, points.shape[-1]), derivatives)
        return table.reshape(len(table), *points.shape[:-1], self.element.num_basis)
