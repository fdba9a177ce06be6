"""L2 projection on the functions of polytopes."""

from __future__ import annotations

import numpy as np

from ..dofmap import element_nodes
from ..legendre import tabulate

CHUNK = 1 << 22  # numbers of a table made at once


def by_degree(disc) -> list[np.ndarray]:
    """Owned polytopes of each degree that occurs, ascending."""
    return [np.flatnonzero(disc.degrees == p) for p in np.unique(disc.degrees)]


def project(disc, values: np.ndarray) -> np.ndarray:
    """Unknowns [owned] of the L2 projection of values [base cell, quadrature point, component]."""
    out = np.zeros(disc.dofmap.num_owned)
    for polytopes in by_degree(disc):
        mass, moments = _sums(disc, polytopes, values)
        found = np.linalg.solve(mass, moments)  # [polytope, function, component]
        first, size = disc.numbering.first[polytopes], mass.shape[1] * values.shape[2]
        out[first[:, None] + np.arange(size)] = np.swapaxes(found, 1, 2).reshape(len(polytopes), size)
    return out


def quadrature_points(disc) -> np.ndarray:
    """Physical coordinates [base cell, point, dim] of the quadrature points."""
    return element_nodes(disc.mesh, disc.quadrature.points)


def _sums(disc, polytopes, values):
    """Mass matrices [polytope, function, function] and moments [polytope, function, component] of one degree."""
    size = int(disc.numbering.sizes[polytopes[0]])
    components = values.shape[2]
    place = np.full(disc.polytopes.count, -1)
    place[polytopes] = np.arange(len(polytopes))
    cells = np.flatnonzero(place[disc.polytopes.of_cell] >= 0)
    mass, moments = np.zeros((len(polytopes), size, size)), np.zeros((len(polytopes), size, components))
    step = max(1, CHUNK // (disc.quadrature.num_points * size))
    for part in np.split(cells, range(step, len(cells), step)):
        polytope = disc.polytopes.of_cell[part]
        x = element_nodes(disc.mesh, disc.quadrature.points, part)
        basis = tabulate(disc.exponents[:size], disc.box_coordinates(polytope, x))[0]
        weighted = basis * (disc.quadrature.weights * _measures(disc, part))[:, :, None]
        np.add.at(mass, place[polytope], np.swapaxes(weighted, 1, 2) @ basis)
        np.add.at(moments, place[polytope], np.swapaxes(weighted, 1, 2) @ values[part])
    return mass, moments


def _measures(disc, cells) -> np.ndarray:
    """|det J| [cell, point] of base cells at the quadrature points."""
    table = disc.fine.geometry_element.tabulate(disc.quadrature.points)[1:]
    nodes = disc.mesh.geometry.nodes[disc.mesh.geometry.cell_nodes[cells]]
    return np.abs(np.linalg.det(np.einsum("rqb,cbd->cqdr", table, nodes, optimize=True)))
