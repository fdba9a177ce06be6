"""Auxiliary fields as rows of data a cell: one row where constant in the cell, one for each node where nodal."""

from __future__ import annotations

import numpy as np

from ..errors import PhysicsError
from ..reference import ReferenceElement
from ..value_checks import shown


class AuxiliaryRows:
    """Layout of the rows of auxiliary data: components of auxiliary fields.

    starts [component + 1] first row of each component; nodal fields live in the scalar space of `element`.
    """

    def __init__(self, fields, element: ReferenceElement):
        self.fields = tuple(fields)
        self.element = element
        rows = [self._rows(f) for f in self.fields for _ in range(f.components)]
        self.starts = np.concatenate([[0], np.cumsum(rows)]).astype(np.int32)

    def _rows(self, field) -> int:
        return 1 if field.space == "cell" else self.element.num_basis

    @property
    def num_components(self) -> int:
        return len(self.starts) - 1

    @property
    def num_rows(self) -> int:
        return int(self.starts[-1])

    def field(self, name: str):
        """The auxiliary field `name` and its first component. Raises PhysicsError for an unknown name."""
        first = 0
        for f in self.fields:
            if isinstance(name, str) and f.name == name:
                return f, first
            first += f.components
        known = ", ".join(f.name for f in self.fields) or "none"
        raise PhysicsError(f"there is no auxiliary field {shown(name)}; the physics declares: {known}")

    def points(self, field, mesh, nodes: np.ndarray, centroids: np.ndarray) -> np.ndarray:
        """Coordinates of a field's values [cell, row, dim]: centroids if constant in the cell, else nodes."""
        return centroids[:, None, :] if field.space == "cell" else nodes

    def onto(self, element: ReferenceElement, rows: np.ndarray, num_cells: int):
        """Name and values [cell, row, component] of each field in rows [row, stride].

        Nodal ones are taken at the nodes of another element, as a discretization with that element wants them.
        """
        table, first = self.element.tabulate(element.nodes, 0)[0], 0  # [node there, node]
        for field in self.fields:
            starts = self.starts[first : first + field.components]
            count = 1 if field.space == "cell" else self.element.num_basis
            values = np.stack([rows[start : start + count, :num_cells].T for start in starts], axis=-1)
            if field.space != "cell":
                values = np.einsum("nb,cbk->cnk", table, values, optimize=True)
            yield field.name, values
            first += field.components

    def at(self, points: np.ndarray, rows: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Values [cell, point, component] of all fields at reference points [point, dim] of cells, from rows
        [row, stride]."""
        table, found = self.element.tabulate(points, 0)[0], np.empty((len(cells), len(points), self.num_components))
        for component, (start, end) in enumerate(zip(self.starts, self.starts[1:], strict=False)):
            values = rows[start:end, cells].T
            found[:, :, component] = values if end == start + 1 else values @ table.T
        return found

    def place(self, rows: np.ndarray, name: str, values: np.ndarray) -> None:
        """Write values [cell, row, component] of a field into rows [row, stride]."""
        field, first = self.field(name)
        for c in range(field.components):
            start = self.starts[first + c]
            rows[start : self.starts[first + c + 1], : len(values)] = values[:, :, c].T
