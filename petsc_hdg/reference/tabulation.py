"""Tables of basis functions at quadrature points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .element import ReferenceElement


@dataclass(frozen=True)
class Tabulation:
    """Values [point, basis] and reference gradients [point, basis, dim]."""

    values: np.ndarray
    gradients: np.ndarray


def tabulate(element: ReferenceElement, points: np.ndarray) -> Tabulation:
    """Tabulate an element at reference points [point, dim]."""
    table = element.tabulate(points, 1)
    return Tabulation(np.ascontiguousarray(table[0]), np.ascontiguousarray(np.moveaxis(table[1:], 0, -1)))
