"""Tables of basis functions at quadrature points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .element import ReferenceElement

ROUND_OFF = 1e-14  # entries this close to a whole number are that number: kernels can leave out exact zeros


@dataclass(frozen=True)
class Tabulation:
    """Values [point, basis] and reference gradients [point, basis, dim]."""

    values: np.ndarray
    gradients: np.ndarray


def tabulate(element: ReferenceElement, points: np.ndarray) -> Tabulation:
    """Tabulate an element at reference points [point, dim]."""
    table = element.tabulate(points, 1)
    table = np.where(np.abs(table - np.rint(table)) < ROUND_OFF, np.rint(table), table)
    return Tabulation(np.ascontiguousarray(table[0]), np.ascontiguousarray(np.moveaxis(table[1:], 0, -1)))
