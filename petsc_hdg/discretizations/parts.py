"""Discretizations of meshes of several cell shapes: what follows from those of the cells of each shape."""

from __future__ import annotations

from typing import Any

import numpy as np

ALIGNED = 128  # numbers that the element vectors of a part begin at a multiple of, as buffers within buffers have to


class OfParts:
    """A discretization on the cells of several shapes. Subclasses make its parts.

    parts: of the mesh, as discretizations of their own, whose numbers are those of the whole.
    starts [part]: where element vectors of the parts begin in a buffer of `num_entries` numbers.
    """

    parts: tuple[Any, ...] = ()

    def _lay_out(self, first: int = 0) -> None:
        """Lay element vectors of the parts end to end behind some numbers."""
        sizes = [-(-size // ALIGNED) * ALIGNED for size in (first, *(part.num_entries for part in self.parts))]
        *self.starts, self._end = np.cumsum(sizes).tolist()

    @property
    def num_entries(self) -> int:
        """Numbers in the element vectors, those of all parts among them."""
        return self._end

    def in_precision(self, precision: str):
        """As in PrimalDiscretization, of all parts."""
        other: Any = super().in_precision(precision)  # type: ignore[misc]
        other.parts = tuple(part.in_precision(precision) for part in self.parts)
        return other

    @property
    def variant(self) -> str:
        """Kernel variants of the parts, each named once."""
        return " and ".join(dict.fromkeys(part.variant for part in self.parts))

    def places_of_rows(self) -> list[tuple]:
        """As in Discretization: those of all parts."""
        return [
            (part.cell_dofs() if numbers is None else numbers, *sizes, start + first)
            for part, start in zip(self.parts, self.starts, strict=True)
            for numbers, *sizes, first in part.places_of_rows()
        ]

    def matrix_numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """As in PrimalDiscretization: of the matrices of all parts."""
        rows, columns = zip(*(part.matrix_numbers() for part in self.parts), strict=True)
        return np.concatenate(rows), np.concatenate(columns)

    @property
    def cell_costs(self) -> np.ndarray:
        """As in Discretization."""
        return np.concatenate([part.cell_costs for part in self.parts])
