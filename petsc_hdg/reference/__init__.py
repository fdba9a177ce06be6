"""Reference cells, their elements and quadrature, over fenics-basix."""

from .element import CELLS, ReferenceElement, Tabulation, cell_dim, facet_cell, facet_count, on_facets, tabulate
from .quadrature import (
    Quadrature,
    cell_quadrature,
    facet_quadrature,
    gauss_lobatto,
    inside,
    is_tensor,
    lobatto_cell_quadrature,
    lobatto_facet_quadrature,
    symmetric_quadrature,
    tensor_points,
)

__all__ = [
    "CELLS",
    "Quadrature",
    "ReferenceElement",
    "Tabulation",
    "cell_dim",
    "cell_quadrature",
    "facet_cell",
    "facet_count",
    "facet_quadrature",
    "gauss_lobatto",
    "inside",
    "is_tensor",
    "lobatto_cell_quadrature",
    "lobatto_facet_quadrature",
    "on_facets",
    "symmetric_quadrature",
    "tabulate",
    "tensor_points",
]
