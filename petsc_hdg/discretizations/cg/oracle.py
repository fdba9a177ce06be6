"""Plain numpy evaluation of continuous Galerkin on a few cells: the oracle that every kernel is compared with."""

from __future__ import annotations

import numpy as np

from ..oracle import CellOracle, State


class Oracle(CellOracle):
    """Element vectors of cells and facets of a ContinuousGalerkin discretization."""

    def facet(self, cell: int, facet: int, condition: int, state: State) -> np.ndarray:
        """Residual [dof] of a natural condition on a facet of a cell, or the product with state.du."""
        points = self._points(cell, 1 + facet, state)
        return self._tested(points, [self._natural(condition, *at, state) for at in points.each])
