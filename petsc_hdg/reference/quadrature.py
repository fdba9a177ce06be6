"""Quadrature on reference cells and on each of their facets."""

from __future__ import annotations

from dataclasses import dataclass

import basix
import numpy as np

from .element import cell_dim, facet_cell


@dataclass(frozen=True)
class Quadrature:
    """Points [point, dim] in reference coordinates of the cell, weights [point] of the reference cell or facet."""

    points: np.ndarray
    weights: np.ndarray

    @property
    def num_points(self) -> int:
        return len(self.weights)


def _rule(cell: str, degree: int) -> Quadrature:
    points, weights = basix.make_quadrature(basix.CellType[cell], degree)
    return Quadrature(np.asarray(points), np.asarray(weights))


def cell_quadrature(cell: str, degree: int) -> Quadrature:
    """Rule exact for polynomials of total (tensor cells: each) degree `degree`."""
    return _rule(cell, degree)


def symmetric_quadrature(cell: str, degree: int) -> Quadrature:
    """A rule for norms, the same for any order of the cell's vertices.

    Above degree 8 there is no symmetric rule for tetrahedra in basix: the rule of degree 8 is applied to the four parts
    that the centroid makes, which is as accurate for smooth functions.
    """
    if cell != "tetrahedron" or degree <= 8:
        return _rule(cell, degree)
    rule = _rule(cell, 8)
    corners = basix.geometry(basix.CellType[cell])
    barycentric = np.column_stack([1 - rule.points.sum(axis=1), rule.points])
    parts = []
    for left_out in range(4):
        part = corners.copy()
        part[left_out] = corners.mean(axis=0)
        parts.append(barycentric @ part)
    return Quadrature(np.concatenate(parts), np.tile(rule.weights / 4, 4))


def facet_quadrature(cell: str, degree: int) -> tuple[list[Quadrature], np.ndarray]:
    """Rules on each facet of a reference cell.

    Returns
        rules    one Quadrature a facet: points in the cell's reference coordinates, weights that measure it there
        normals  [facet, dim] outward unit normals of the reference cell
    """
    kind = basix.CellType[cell]
    rule = _rule(facet_cell(cell), degree)
    dim = cell_dim(cell)
    vertices = basix.geometry(kind)
    rules = []
    for facet in basix.topology(kind)[dim - 1]:
        corner = vertices[facet]
        tangents = np.stack([corner[i + 1] - corner[0] for i in range(dim - 1)], axis=1)
        measure = np.sqrt(np.linalg.det(tangents.T @ tangents))
        rules.append(Quadrature(corner[0] + rule.points @ tangents.T, rule.weights * measure))
    return rules, np.asarray(basix.cell.facet_outward_normals(kind))
