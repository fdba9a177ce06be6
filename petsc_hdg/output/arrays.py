"""Nodal arrays as the writers take them, checked."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..errors import OptionError
from ..reference import CELLS, ReferenceElement

MOST_DEGREE = 17
FACETS = ("interval", "triangle", "quadrilateral")


def element_for(cell: str, degree: int, facets: bool = False) -> ReferenceElement:
    """The element whose nodes the arrays are given at. Raises OptionError for an unknown shape or a degree below 1."""
    known, kind = (FACETS, "facets") if facets else (CELLS, "cells")
    if cell not in known:
        raise OptionError(f"Output of {kind} of shape '{cell}' was asked for; accepted shapes are {', '.join(known)}.")
    if not isinstance(degree, int | np.integer) or degree < 1:
        raise OptionError(
            f"Output of degree {degree} was asked for; give a whole number from 1 (constants on cells: cell_data)."
        )
    return ReferenceElement(cell, int(degree))


def nodal(name: str, values, element: ReferenceElement, num_cells: int | None = None) -> np.ndarray:
    """Values [cell, node, component] float64 from [cell, node] or [cell, node, component]. Raises OptionError."""
    found = _floats(name, values)
    if found.ndim == 2:
        found = found[..., None]
    cells = "cell" if num_cells is None else num_cells
    if found.ndim != 3 or found.shape[1] != element.num_basis or num_cells not in (None, len(found)):
        raise OptionError(
            f"'{name}' has shape {list(np.shape(values))}; with {element.cell} cells of degree {element.degree}"
            f" it takes [{cells}, {element.num_basis}] or [{cells}, {element.num_basis}, component]."
        )
    return found


def at_nodes(name: str, values, element: ReferenceElement, num_cells: int) -> np.ndarray:
    """Values [cell, node, component] float64 at an element's nodes, from [cell], or from [cell, node] or
    [cell, node, component] at the nodes of any degree. Raises OptionError."""
    found = _floats(name, values)
    found = found[:, None] if found.ndim == 1 else found
    given = _of_size(element.cell, found.shape[1]) if found.ndim > 1 else None
    if given is None or given == element:
        return nodal(name, found, element, num_cells)
    found = nodal(name, found, given, num_cells)
    return np.einsum("pn,cnk->cpk", given.tabulate(element.nodes, 0)[0], found)


def _of_size(cell: str, num_basis: int) -> ReferenceElement | None:
    """The Lagrange element of a shape with so many nodes."""
    for degree in range(MOST_DEGREE + 1):
        element = ReferenceElement(cell, degree)
        if element.num_basis >= num_basis:
            return element if element.num_basis == num_basis else None
    return None


def coordinates(points, element: ReferenceElement, name: str = "points", facets: bool = False) -> np.ndarray:
    """Node places [cell, node, dim] float64, dim being one more than the shape's for facets. Raises OptionError."""
    found, dim = nodal(name, points, element), element.dim + facets
    if np.ndim(points) != 3 or found.shape[2] != dim:
        shape, kind = list(np.shape(points)), "facets" if facets else "cells"
        raise OptionError(f"'{name}' has shape {shape}; {element.cell} {kind} take [cell, node, {dim}].")
    return found


def cellwise(name: str, values, num_cells: int) -> np.ndarray:
    """Values [cell, component], whole numbers as int32 and others as float64. Raises OptionError."""
    found = np.asarray(values)
    found = np.asarray(found, np.int32) if found.dtype.kind in "biu" else _floats(name, found)
    if found.ndim not in (1, 2) or len(found) != num_cells:
        shape = list(np.shape(values))
        raise OptionError(f"'{name}' has shape {shape}; it takes [{num_cells}] or [{num_cells}, component].")
    return found if found.ndim == 2 else found[:, None]


def named(what: str, given) -> Mapping:
    """`given` if it maps names to arrays. Raises OptionError."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
        raise OptionError(f"'{what}' is a {type(given).__name__}; a mapping from names to arrays is accepted.")
    return given


def _floats(name: str, values) -> np.ndarray:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"'{name}' cannot be read as an array of real numbers.") from None
