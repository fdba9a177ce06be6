"""Elements and quadrature of the reference cells against closed formulas."""

from __future__ import annotations

from math import factorial

import basix
import numpy as np
import pytest

from petsc_hdg.reference import (
    CELLS,
    ReferenceElement,
    cell_dim,
    cell_quadrature,
    entity_shapes,
    facet_cell,
    facet_count,
    facet_quadrature,
    tabulate,
)

SIMPLEX = {"triangle": True, "quadrilateral": False, "tetrahedron": True, "hexahedron": False}
FACETS = {"triangle": 3, "quadrilateral": 4, "tetrahedron": 4, "hexahedron": 6}
EPS = np.finfo(float).eps


def test_every_cell_is_here():
    assert set(CELLS) == set(SIMPLEX) == set(FACETS)


def integral(cell: str, powers) -> float:
    """∫ of a monomial over the reference cell."""
    if SIMPLEX[cell]:
        return np.prod([float(factorial(p)) for p in powers]) / factorial(sum(powers) + len(powers))
    return float(np.prod([1.0 / (p + 1) for p in powers]))


def random_points(cell: str, count: int = 7) -> np.ndarray:
    points = np.random.default_rng(2).dirichlet(np.ones(cell_dim(cell) + 1), count)[:, 1:]
    return np.ascontiguousarray(points)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("degree", (1, 2, 3, 4))
def test_element(cell, degree):
    element, dim = ReferenceElement(cell, degree), cell_dim(cell)
    simplex_count = {2: (degree + 1) * (degree + 2) // 2, 3: (degree + 1) * (degree + 2) * (degree + 3) // 6}
    assert element.num_basis == (simplex_count[dim] if SIMPLEX[cell] else (degree + 1) ** dim)
    np.testing.assert_allclose(element.tabulate(element.nodes, 0)[0], np.eye(element.num_basis), atol=200 * EPS)
    table = tabulate(element, random_points(cell))
    np.testing.assert_allclose(table.values.sum(axis=1), 1, atol=100 * EPS)
    np.testing.assert_allclose(table.gradients.sum(axis=1), 0, atol=2000 * EPS)
    for powers in np.eye(dim, dtype=int) * degree:  # x^degree is in the space: values and gradients are exact
        nodal, x = np.prod(element.nodes**powers, axis=1), random_points(cell)
        np.testing.assert_allclose(table.values @ nodal, np.prod(x**powers, axis=1), atol=500 * EPS)
        axis = int(np.argmax(powers))
        np.testing.assert_allclose(
            table.gradients[:, :, axis] @ nodal, degree * x[:, axis] ** (degree - 1), atol=5000 * EPS
        )
    assert sorted(b for on in element.entity_dofs for e in on for b in e) == list(range(element.num_basis))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("degree", (0, 1, 2, 4, 8, 12))
def test_cell_quadrature(cell, degree):
    rule, dim = cell_quadrature(cell, degree), cell_dim(cell)
    assert rule.points.shape == (rule.num_points, dim)
    for powers in {
        (degree,) + (0,) * (dim - 1),
        (0,) * (dim - 1) + (degree,),
        (degree // 2, degree - degree // 2) + (0,) * (dim - 2),
    }:
        got = rule.weights @ np.prod(rule.points ** np.array(powers), axis=1)
        assert got == pytest.approx(integral(cell, powers), rel=1e-13)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("degree", (2, 5))
def test_facet_quadrature_obeys_the_divergence_theorem(cell, degree):
    rules, normals = facet_quadrature(cell, degree)
    dim = cell_dim(cell)
    assert len(rules) == facet_count(cell) == FACETS[cell] and facet_cell(cell) in (
        "interval",
        "triangle",
        "quadrilateral",
    )
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=10 * EPS)
    powers = np.array([degree - 1] + [1] * 1 + [0] * (dim - 2))
    for axis in range(dim):
        flux = sum(
            n[axis] * (r.weights @ np.prod(r.points**powers, axis=1)) for r, n in zip(rules, normals, strict=True)
        )
        lower = powers.copy()
        lower[axis] -= 1
        expected = powers[axis] * integral(cell, lower) if powers[axis] else 0.0
        assert flux == pytest.approx(expected, abs=50 * EPS)


@pytest.mark.parametrize("degree", (1, 2, 3))
@pytest.mark.parametrize("cell", ("prism", "pyramid"))
def test_prisms_and_pyramids_have_the_nodes_of_their_neighbours(cell, degree):
    element, vertices = ReferenceElement(cell, degree), ReferenceElement(cell, 1).nodes
    np.testing.assert_allclose(element.tabulate(element.nodes, 0)[0], np.eye(element.num_basis), atol=200 * EPS)
    x = np.random.default_rng(0).uniform(0.1, 0.4, (20, 3))
    table = tabulate(element, x)
    np.testing.assert_allclose(table.values @ element.nodes, x, atol=100 * EPS)
    np.testing.assert_allclose(np.einsum("pbd,bc->pcd", table.gradients, element.nodes), [np.eye(3)] * 20, atol=5e-13)
    for shape, corners, closure in zip(entity_shapes(cell)[2], *faces_of(cell), strict=True):
        here = np.concatenate([element.entity_dofs[d][k] for d, on in enumerate(closure) for k in on]).astype(int)
        frame = vertices[corners[1:3]] - vertices[corners[0]]
        other = vertices[corners[0]] + ReferenceElement(shape, degree).nodes @ frame
        found, expected = (np.array(sorted(map(tuple, np.round(nodes, 12)))) for nodes in (element.nodes[here], other))
        np.testing.assert_allclose(found, expected, atol=1e-11)


def faces_of(cell: str) -> tuple[list, list]:
    """Vertices of the faces of a reference cell, and the entities of each dimension in their closures."""
    kind = basix.CellType[cell]
    return basix.topology(kind)[2], [on[:3] for on in basix.cell.sub_entity_connectivity(kind)[2]]


@pytest.mark.parametrize("cell", ("prism", "pyramid"))
def test_rules_on_facets_of_two_shapes(cell):
    rules, normals = facet_quadrature(cell, 4)
    assert len({rule.num_points for rule in rules}) == 1
    areas = {"prism": [0.5, 1, 1, 2**0.5, 0.5], "pyramid": [1, 0.5, 0.5, 0.5**0.5, 0.5**0.5]}[cell]
    np.testing.assert_allclose([rule.weights.sum() for rule in rules], areas, rtol=1e-13)
    inside = cell_quadrature(cell, 4)
    outward = sum(rule.weights @ (rule.points**4 @ normal) for rule, normal in zip(rules, normals, strict=True))
    assert outward == pytest.approx(4 * inside.weights @ (inside.points**3).sum(axis=1), rel=1e-12)
