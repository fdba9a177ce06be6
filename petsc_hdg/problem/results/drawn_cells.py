"""Cells as pictures take them, of one shape: those of several, prisms and pyramids are squares or cubes some of whose
sides have collapsed, on which the same functions are polynomials of the same degree in each direction."""

from __future__ import annotations

import numpy as np

from ...errors import OptionError
from ...output.arrays import at_nodes
from ...reference import CELLS, ReferenceElement, collapse
from ...value_checks import shown
from .derived_fields import Derived, State


class DrawnCells:
    """This rank's cells, from the states of the parts of the mesh.

    cell, degree: shape, and degree of the nodes.   coordinates [cell, node, dim] of these.
    fields: the fields of the solution and the outputs of each part, by name.
    """

    def __init__(self, states: list[State], outputs):
        self._states, first = states, states[0]
        self.fields = [{field.name: field for field in state.all(outputs)} for state in states]
        self.cell, self.degree, self._tables = first.mesh.cell, first.element.degree, None
        if len(states) > 1 or self.cell not in CELLS:
            self.cell = "quadrilateral" if first.dim == 2 else "hexahedron"
            nodes = ReferenceElement(self.cell, self.degree).nodes
            self._tables = [state.element.tabulate(collapse(state.mesh.cell, nodes), 0)[0] for state in states]
        self.coordinates = self._joined([state.coordinates for state in states])

    def of_field(self, name: str) -> np.ndarray:
        """Values [cell, node, component] of one of the fields."""
        pairs = zip(self._states, self.fields, strict=True)
        return self._joined([fields[name].sample(state.element.nodes) for state, fields in pairs])

    def values(self, given):
        """Values [cell, node, component] of a text or a field; what pictures take of arrays, those at nodes in a list
        of the arrays of each part where there are several. Raises OptionError."""
        if isinstance(given, str | Derived):
            return self._joined([state.nodal(given) for state in self._states])
        parts = given if isinstance(given, list | tuple) else [given]
        if given is None or self._tables is None or np.ndim(parts[0]) < 2:
            return given
        if len(parts) != len(self._states):
            raise OptionError(
                f"Values at nodes to draw are given as {shown(given)}; give a list of arrays [cell, node], one of each "
                "shape, as problem.cell_values has them."
            )
        pairs = zip(parts, self._states, strict=True)
        return self._joined([at_nodes("values", of, each.element, each.mesh.num_cells) for of, each in pairs])

    def _joined(self, parts: list[np.ndarray]) -> np.ndarray:
        """Values [cell, node, component] of all cells from those of each part."""
        if self._tables is None:
            return parts[0]
        return np.concatenate([table @ of for table, of in zip(self._tables, parts, strict=True)])
