"""What a cell costs in a product with the Jacobian, by scheme: by these numbers ranks are balanced."""

from __future__ import annotations

import numpy as np

from ..reference import facet_quadrature
from .cg.tensor import line_flops


def cell_costs(disc) -> np.ndarray:
    """Multiplications of a product in each owned cell of a Discretization [num_cells], for one component.

    Polytopes: the square of the number of their functions, for each of their base cells. Condensed schemes: the square
    of the number of unknowns of a cell's trace, essential ones left out. Others: tables at quadrature points, inside
    and on facets that have terms. Curved cells cost what straight ones do beside them: the cells of a rank share a
    kernel.
    """
    if disc.is_polytopic:
        return disc.num_basis(disc.degrees)[disc.polytopes.of_cell].astype(float) ** 2
    if disc.is_condensed:
        dofmap = disc.dofmap
        free = dofmap.compact[dofmap.cell_dofs] < dofmap.num_owned + dofmap.num_ghosts
        return (free.sum(axis=1) / disc.components).astype(float) ** 2
    inside, on_facet = _by_points(disc)
    return inside + on_facet * _sides(disc).sum(axis=1)


def _by_points(disc) -> tuple[float, float]:
    """Multiplications inside a cell, and for one side of one of its facets."""
    functions = sum(space.element.num_basis for space in disc.spaces)
    if disc.has_penalties and not disc.mesh.shape.is_simplex:  # sums factorize
        line = functions ** (1 / disc.dim)
        return 4 * disc.dim * line * functions, 2.0 * functions
    width = 2 * (1 + disc.dim) * functions
    rule = facet_quadrature(disc.mesh.cell, disc.quadrature_degree)[0][0]
    inside = width * disc.quadrature.num_points
    if disc.variant == "tensor":
        inside = line_flops(disc) * len(disc.spaces) / (2 * disc.physics.num_components)
    return float(inside), float(width * rule.num_points)


def _sides(disc) -> np.ndarray:
    """Sides that a cell evaluates on each of its facets [num_cells, facet]: its own, and its neighbour's."""
    mesh = disc.mesh
    sides = np.zeros((mesh.num_cells, mesh.topology.entity[mesh.dim - 1].shape[1]))
    if disc.has_penalties:
        near = disc.neighbours.neighbour[: mesh.num_cells]
        essential = (disc.neighbours.kinds[:, :-1] >= 0).any(axis=1)
        sides[near >= 0] = 2
        boundary = near < -1
        sides[boundary] = essential[-2 - near[boundary]]
    cells, facets, _ = disc.natural_facets
    np.add.at(sides, (cells, facets), 1)
    return sides
