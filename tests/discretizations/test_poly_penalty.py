"""Constants of trace inequalities on polytopes, and their sizes."""

from __future__ import annotations

import numpy as np
import pytest
from blended_physics import CONSTANTS, blended
from petsc4py import PETSc
from sample_meshes import SHAPES, box_mesh
from sample_polytopes import assembled, grown, polytopic
from scipy.linalg import eigh

from petsc_hdg.discretizations.poly.outline import cell_points, facet_points, find_outline
from petsc_hdg.discretizations.poly.penalty import FEW, _summed, trace_constants
from petsc_hdg.mesh import Mesh
from petsc_hdg.mesh.polytopes import Polytopes


def one_polytope(mesh) -> Polytopes:
    return Polytopes(np.zeros(mesh.num_cells, np.int32), 1)


def square(faces: int = 2, lower=(0.0, 0.0), upper=(1.0, 1.0)) -> Mesh:
    return Mesh.box((faces, faces), lower=lower, upper=upper, comm=PETSc.COMM_SELF)


def turned(mesh, angle: float) -> Mesh:
    """The mesh itself, turned in the plane."""
    c, s = np.cos(angle), np.sin(angle)
    mesh.geometry.nodes = mesh.geometry.nodes @ np.array([[c, -s], [s, c]])
    return mesh


def by_monomials(outline, polytopes, degree: int) -> np.ndarray:
    """The constants [polytope] from monomials around a point of each, and dense eigenvalues."""
    dim, found = outline.mesh.dim, []
    powers = np.array([e for e in np.ndindex(*(degree,) * dim) if sum(e) < degree])
    for k in range(polytopes.count):
        cells = np.flatnonzero(polytopes.of_cell == k)
        centre = cell_points(outline.mesh, cells, 1)[0].mean(axis=(0, 1))
        items = slice(outline.start[k], outline.start[k + 1])
        inside = cell_points(outline.mesh, cells, 2 * degree)
        around = facet_points(outline.mesh, outline.cell[items], outline.facet[items], 2 * degree)
        grams = []
        for x, weight in (inside, around[:2]):
            values = np.prod((x[..., None, :] - centre) ** powers, axis=-1)
            grams.append(np.einsum("cq,cqa,cqb->ab", weight, values, values))
        found.append(eigh(grams[1], grams[0], eigvals_only=True)[-1])
    return np.array(found)


@pytest.mark.parametrize("cell", ["triangle", "tetrahedron", "quadrilateral"])
def test_constants_are_the_largest_eigenvalues(cell):
    mesh = box_mesh(cell)
    count = 5
    polytopes = Polytopes((np.arange(mesh.num_cells) * count // mesh.num_cells).astype(np.int32), count)
    outline = find_outline(mesh, polytopes)
    assert np.diff(outline.start).min() > mesh.dim + 1
    mixed = np.array([1, 2, 3, 3, 4])
    expected = [by_monomials(outline, polytopes, p)[k] for k, p in enumerate(mixed)]
    np.testing.assert_allclose(trace_constants(outline, polytopes, mixed), expected, rtol=1e-9)


def test_constants_of_a_square():
    """On (0, 1)²: |∂K|/|K| = 4; for P_1, v = x - 1/2 gives (1/2 + 1/6) / (1/12) = 8. Q_1 derivatives hold both."""
    mesh = square()
    polytopes = one_polytope(mesh)
    outline = find_outline(mesh, polytopes)
    assert len(outline.cell) == 8
    found = [trace_constants(outline, polytopes, np.array([p]))[0] for p in (0, 1, 2)]
    np.testing.assert_allclose(found, [4, 4, 8], rtol=1e-12)
    np.testing.assert_allclose(trace_constants(outline, polytopes, np.array([1]), "tensor"), 8, rtol=1e-12)


def test_slivers_keep_their_constants():
    """A strip a million times as long as wide, along an axis and across its box."""
    found = []
    for angle in (0.0, 0.7):
        mesh = turned(square(lower=(0.0, 0.0), upper=(1.0, 1e-6)), angle)
        polytopes = one_polytope(mesh)
        found.append(trace_constants(find_outline(mesh, polytopes), polytopes, np.array([5]))[0])
    assert found[0] == pytest.approx(found[1], rel=1e-6) and found[0] > 2e6


def l_shape(arm: float = 0.5) -> tuple[Mesh, Polytopes]:
    """Two polytopes of the unit square: an L with arms of some width, and the rest."""
    mesh = square(4)
    middles = mesh.geometry.nodes[mesh.geometry.cell_nodes].mean(axis=1)
    return mesh, Polytopes((middles > arm).all(axis=1).astype(np.int32), 2)


def test_shapes():
    """Two L's: an L of arms 1/2 in a square has the diagonal as diameter. One cube."""
    mesh, polytopes = l_shape()
    outline = find_outline(mesh, polytopes)
    np.testing.assert_allclose(np.bincount(polytopes.of_cell, outline.measures.volumes), [0.75, 0.25])
    np.testing.assert_allclose(np.bincount(outline.polytope, outline.area), [4.0, 2.0])
    np.testing.assert_allclose(outline.diameters(), [np.sqrt(2), np.sqrt(0.5)])
    np.testing.assert_allclose(outline.radii(polytopes), [0.375, 0.25])
    assert outline.start.tolist() == [0, 16, 24]
    cube = Mesh.box((2, 2, 2), comm=PETSc.COMM_SELF)
    outline = find_outline(cube, one_polytope(cube))
    values = [
        outline.measures.volumes.sum(),
        outline.area.sum(),
        *outline.diameters(),
        *outline.radii(one_polytope(cube)),
    ]
    np.testing.assert_allclose(values, [1, 6, np.sqrt(3), 0.5])


@pytest.mark.parametrize("cell", SHAPES)
def test_shapes_of_single_cells(cell):
    mesh = box_mesh(cell)
    polytopes = Polytopes.of_cells(mesh)
    outline = find_outline(mesh, polytopes)
    corners = mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells]]
    edges = np.linalg.norm(corners[:, :, None] - corners[:, None], axis=3).max(axis=(1, 2))
    np.testing.assert_allclose(outline.diameters(), edges)
    assert outline.measures.volumes.sum() == pytest.approx(1.0) and (outline.radii(polytopes) < edges / 2).all()


@pytest.mark.parametrize("scale, positive", [(1, True), (0.51, True), (0.1, False)])
def test_matrices_of_diffusion_are_positive(scale, positive):
    """On ragged polytopes of mixed degrees, down to the factor 1/2 that theory asks for, and far below it no more."""
    for seed in range(3):
        mesh = box_mesh("triangle", (12, 12), seed=seed)
        operator = polytopic(mesh, grown(mesh, 14, seed, (1, 2)), blended(2), 2, poly_penalty_scale=scale)
        operator.set_constants(list({**CONSTANTS, "speed": 0.0}.values()))
        matrix = assembled_at_zero(operator)
        assert np.abs(matrix - matrix.T).max() < 1e-12 * np.abs(matrix).max()
        assert (np.linalg.eigvalsh(matrix)[0] > 0) == positive


def assembled_at_zero(operator) -> np.ndarray:
    operator.linearize(operator.arrays.zeros(operator.dofmap.num_owned))
    return assembled(operator)


@pytest.mark.parametrize("most", [3, FEW + 1])
def test_sums_of_items(most):
    """Of polytopes of few items and of one with many."""
    counts = np.array([2, most, 1, 3, 1])
    blocks = np.random.default_rng(0).uniform(-1, 1, (counts.sum(), 2, 2))
    first = np.cumsum(counts) - counts
    expected = [blocks[a : a + n].sum(axis=0) for a, n in zip(first, counts, strict=True)]
    np.testing.assert_allclose(_summed(blocks, first), expected, rtol=0, atol=1e-14)
