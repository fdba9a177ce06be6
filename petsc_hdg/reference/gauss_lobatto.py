"""Gauss-Lobatto rules of tensor cells, whose points are the nodes of the Lagrange element of the same degree."""

from __future__ import annotations

import basix
import numpy as np

from .element import cell_dim, facet_cell, on_facets
from .quadrature import Quadrature


def gauss_lobatto(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Points [degree + 1], ascending on (0, 1), and weights: exact for polynomials of degree 2 `degree` - 1."""
    points, weights = basix.make_quadrature(
        basix.CellType.interval, 2 * degree - 1, basix.QuadratureType.gll, basix.PolysetType.standard
    )
    order = np.argsort(points[:, 0])
    return np.ascontiguousarray(points[order, 0]), np.ascontiguousarray(weights[order])


def tensor_points(points: np.ndarray, dim: int) -> np.ndarray:
    """Points [n^dim, dim] of the tensor product of `points` [n], the first coordinate fastest."""
    grids = np.meshgrid(*[points] * dim, indexing="ij")
    return np.stack([g.ravel(order="F") for g in grids], axis=1)


def tensor_weights(weights: np.ndarray, dim: int) -> np.ndarray:
    """Weights [n^dim] at `tensor_points`."""
    product = np.ones(1)
    for _ in range(dim):
        product = np.outer(weights, product).ravel()
    return product


def lobatto_cell_quadrature(cell: str, degree: int) -> Quadrature:
    """The rule on a quadrilateral or hexahedron, points in tensor order."""
    points, weights = gauss_lobatto(degree)
    dim = cell_dim(cell)
    return Quadrature(tensor_points(points, dim), tensor_weights(weights, dim))


def lobatto_facet_quadrature(cell: str, degree: int) -> tuple[list[Quadrature], np.ndarray]:
    """Rules on each facet of a quadrilateral or hexahedron, points in its tensor order, and outward normals."""
    points, weights = gauss_lobatto(degree)
    dim = cell_dim(cell)
    places = on_facets(cell, tensor_points(points, dim - 1))
    scaled = tensor_weights(weights, dim - 1)
    normals = np.asarray(basix.cell.facet_outward_normals(basix.CellType[cell]))
    return [Quadrature(p, scaled) for p in places], normals


def is_tensor(cell: str) -> bool:
    """Whether a cell is a tensor product of intervals."""
    return facet_cell(cell) == "quadrilateral" or cell == "quadrilateral"
