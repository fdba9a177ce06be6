"""Mass and stiffness matrices of polytopes against exact integrals, by Green's formula over their surfaces."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import legendre
from petsc4py import PETSc
from polytopic_oracle import simplex_rule
from sample_meshes import box_mesh
from sample_polytopes import assembled, columns, grown, polytopic

from petsc_hdg.mesh import Mesh
from petsc_hdg.mesh.polytopes import Polytopes
from petsc_hdg.physics import Physics

ROUNDING = 1e-13  # of the largest entry
POLYGONS = (3, 4, 5, 8, 13, 21, 34, 60)  # numbers of facets


def matrix_physics(dim: int) -> Physics:
    """m u - ∇·(k ∇u) without conditions: the mass matrix with m = 1, k = 0, the stiffness matrix with m = 0, k = 1."""
    return Physics(
        {"u": 1},
        "f0[0] = m*u[0];",
        "for (d = 0; d < dim; ++d) f1[d] = k*u_x[d];",
        constants={"m": 1.0, "k": 0.0},
        name=f"mass or stiffness {dim}",
    )


def polygon(sides: int) -> Mesh:
    """A polygon without convexity around a midpoint, in triangles."""
    random = np.random.default_rng(sides)
    angles = 2 * np.pi * (np.arange(sides) + random.uniform(-0.2, 0.2, sides)) / sides
    radii = random.uniform(0.4, 1.0, sides)
    rim = radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    places = np.concatenate([rim * [2.0, 0.5] + [3.0, -1.0], [[3.0, -1.0]]])
    around = np.arange(sides)
    cells = np.stack([around, (around + 1) % sides, np.full(sides, sides)], axis=1)
    return Mesh.from_cells(cells, places, cell="triangle", comm=PETSc.COMM_SELF)


def polyhedron(faces) -> Mesh:
    """A box in tetrahedra with all vertices moved."""
    mesh = box_mesh("tetrahedron", faces)
    random = np.random.default_rng(8)
    mesh.geometry.nodes = mesh.geometry.nodes + random.uniform(-0.08, 0.08, mesh.geometry.nodes.shape)
    return mesh


def surface(mesh, cells: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Corners [corner, dim] and outward unit normal [dim] of the facets of one cell only among `cells`."""
    found: dict[tuple, list] = {}
    for cell in mesh.geometry.cell_nodes[cells]:
        for corner in range(len(cell)):
            found.setdefault(tuple(sorted(np.delete(cell, corner))), []).append(cell[corner])
    facets = []
    for vertices, tops in found.items():
        if len(tops) == 1:
            corners = mesh.geometry.nodes[list(vertices)]
            normal = np.linalg.svd(corners[1:] - corners[0])[2][-1]
            inward = (mesh.geometry.nodes[tops[0]] - corners[0]) @ normal
            facets.append((corners, -normal * np.sign(inward)))
    return facets


def by_green(mesh, cells, powers, which: str) -> np.ndarray:
    """Matrix [function, function] of a polytope: each integrand is a product of polynomials of one coordinate, so that
    ∫_K a(x) b(y) = ∫_∂K A(x) b(y) n_x with A' = a, and rules on facets are exact."""
    facets, dim = surface(mesh, cells), mesh.dim
    nodes = mesh.geometry.nodes[mesh.geometry.cell_nodes[cells]].reshape(-1, dim)
    lower, upper = nodes.min(axis=0), nodes.max(axis=0)
    half = (upper - lower) / 2
    rules = [simplex_rule(corners, int(2 * powers.max() * dim + 2)) for corners, _ in facets]
    x = np.concatenate([places for places, _ in rules])
    weight = np.concatenate([w * normal[0] for (_, w), (_, normal) in zip(rules, facets, strict=True)])
    xi = (x - lower) / half - 1
    unit = np.eye(int(powers.max()) + 1)
    lines = [unit[p] * np.sqrt(2 * p + 1) for p in range(len(unit))]

    def integral(first, second) -> float:
        """∫_K Π_d first_d second_d, each a Legendre series."""
        factors = [legendre.legmul(a, b) for a, b in zip(first, second, strict=True)]
        total = weight * half[0] * legendre.legval(xi[:, 0], legendre.legint(factors[0]))
        for d in range(1, dim):
            total = total * legendre.legval(xi[:, d], factors[d])
        return total.sum()

    def function(b: int, along: int | None = None) -> list:
        """The lines of a function, or of its derivative along an axis."""
        return [legendre.legder(lines[p]) / half[d] if d == along else lines[p] for d, p in enumerate(powers[b])]

    axes = [None] if which == "mass" else range(dim)
    count = len(powers)
    out = np.zeros((count, count))
    for i in range(count):
        for j in range(i + 1):
            out[i, j] = out[j, i] = sum(integral(function(i, d), function(j, d)) for d in axes)
    return out


def difference(operator, which: str) -> float:
    """Largest difference, over the largest entry of a block, of blocks by the product and by the assembled matrix from
    Green's; polytopes without neighbours, or the mass matrix."""
    disc = operator.discretization
    operator.set_constants([float(which == "mass"), float(which == "stiffness")])
    found = columns(operator), assembled(operator)
    worst = 0.0
    for k in range(disc.polytopes.count):
        rows = slice(disc.numbering.first[k], disc.numbering.first[k + 1])
        powers = disc.exponents[: disc.num_basis(disc.degrees[k])]
        exact = by_green(disc.mesh, np.flatnonzero(disc.polytopes.of_cell == k), powers, which)
        for matrix in found:
            worst = max(worst, np.abs(matrix[rows, rows] - exact).max() / np.abs(exact).max())
            matrix[rows, rows] = 0.0
    assert all(np.abs(matrix).max() < 1e-15 for matrix in found), "blocks off the diagonal"
    return worst


@pytest.mark.parametrize("sides", POLYGONS)
def test_polygons(sides):
    mesh = polygon(sides)
    operator = polytopic(mesh, Polytopes(np.zeros(sides, np.int32), 1), matrix_physics(2), 4)
    assert len(surface(mesh, np.arange(sides))) == sides
    for which in ("mass", "stiffness"):
        assert difference(operator, which) < ROUNDING, which


@pytest.mark.parametrize("faces", [(1, 1, 1), (2, 2, 1), (3, 2, 2)])
def test_polyhedra(faces):
    mesh = polyhedron(faces)
    operator = polytopic(mesh, Polytopes(np.zeros(mesh.num_cells, np.int32), 1), matrix_physics(3), 2)
    for which in ("mass", "stiffness"):
        assert difference(operator, which) < ROUNDING, which


@pytest.mark.parametrize("space", ["total", "tensor"])
def test_masses_of_many_polytopes(space):
    """Polytopes of mixed degrees side by side: no block couples two of them."""
    mesh = box_mesh("triangle", (6, 5))
    degrees = (0, 1, 2, 3, 4) if space == "total" else (0, 1, 2)
    operator = polytopic(mesh, grown(mesh, 9, 4, degrees), matrix_physics(2), max(degrees), poly_space=space)
    assert difference(operator, "mass") < ROUNDING
