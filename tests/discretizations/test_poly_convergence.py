"""Orders of polytopic DG on agglomerates by METIS: L2 p + 1, DG norm p; and solutions of the space on 3 to 60 facets.

One physics a dimension serves all (see blended_physics), so that each degree is compiled once.
"""

from __future__ import annotations

import numpy as np
import pytest
from blended_physics import CONSTANTS, blended
from petsc_options import petsc_options
from sample_meshes import box_mesh
from sample_polytopes import grown

import petsc_hdg as fe
from petsc_hdg.discretizations.poly.legendre import tabulate
from petsc_hdg.discretizations.poly.outline import facet_points, find_outline
from petsc_hdg.mesh.polytopes import Polytopes
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem

# (dim, degree): squares or cubes along each axis, and polytopes, of the coarse and of the fine mesh
MESHES = {
    (2, 1): ((24, 288), (48, 1152)),
    (2, 2): ((12, 72), (24, 288)),
    (2, 3): ((24, 72), (48, 288)),
    (2, 4): ((24, 72), (48, 288)),
    (3, 1): ((8, 512), (12, 1728)),
    (3, 2): ((6, 216), (9, 729)),
    (3, 3): ((3, 27), (6, 216)),
}
ALMOST = 0.25  # that an order may be less by


def solved(mesh, degree: int, constants: dict, **options):
    """A problem with its constants, and its solution by LU."""
    with petsc_options(ksp_type="preonly", pc_type="lu"):
        given = Options(backend="poly_gpu", degree=degree, check_kernels=False, **options)
        problem = Problem(mesh, blended(mesh.dim), given)
        problem.set_constants(**{**CONSTANTS, **constants})
        return problem, problem.solve()


def agglomerated(dim: int, degree: int, level: int, degrees=None):
    """A distorted box in polytopes by METIS."""
    faces, count = MESHES[dim, degree][level]
    mesh = box_mesh({2: "triangle", 3: "tetrahedron"}[dim], (faces,) * dim)
    return fe.agglomerate(mesh, count, degrees=degrees)


def jumps(problem, u) -> float:
    """Σ_F ∫ σ [u]² of interior facets, σ as the kernels have it."""
    disc, near = problem.discretization, problem.discretization.fine.neighbours
    cells, facets = np.nonzero(near.neighbour >= 0)
    x, weight, _ = facet_points(disc.mesh, cells, facets, 2 * disc.fine_degree)
    values = u.getArray(readonly=True)
    sides = []
    for polytope in (disc.numbering.polytope_of[cells], disc.numbering.polytope_of[near.neighbour[cells, facets]]):
        table = tabulate(disc.exponents, disc.box_coordinates(polytope, x))[0]
        used = np.arange(table.shape[2]) < disc.numbering.sizes[polytope][:, None]
        rows = np.where(used, disc.numbering.first[polytope][:, None] + np.arange(table.shape[2]), 0)
        sides.append(np.einsum("iqb,ib->iq", table, np.where(used, values[rows], 0.0)))
    sigma = problem.operator.fine.penalties()[0][facets, cells]
    return float(np.einsum("i,iq,iq->", sigma, weight, (sides[0] - sides[1]) ** 2) / 2)


def norms(dim: int, level: int, degree: int, constants: dict, degrees=None, **options) -> tuple[float, float, int]:
    """L2 error, DG norm of the error (of u, eps |∇u|² and jumps with σ), number of polytopes."""
    problem, u = solved(agglomerated(dim, degree, level, degrees), degree, constants, **options)
    assert problem.discretization.largest == (degree if degrees is None else np.max(problem.discretization.degrees))
    errors = problem.errors(u)
    eps = constants.get("eps", 1.0)
    dg = np.sqrt(errors["L2"] ** 2 + eps * errors["H1"] ** 2 + jumps(problem, u))
    return errors["L2"], float(dg), problem.discretization.polytopes.count


def orders(dim: int, degree: int, constants: dict, degrees=None, **options):
    """Orders in L2 and in the DG norm, and the errors of the fine mesh."""
    found = [norms(dim, level, degree, constants, degrees, **options) for level in (0, 1)]
    finer = np.log(found[1][2] / found[0][2]) / dim
    rates = [float(np.log(found[0][k] / found[1][k]) / finer) for k in (0, 1)]
    return rates, found[1][:2]


def _rows(table: list[tuple]) -> list:
    """Rows, whose long ones are not quick: those in space."""
    return [pytest.param(*row, marks=pytest.mark.full if row[0] == 3 else ()) for row in table]


def test_the_table_is_complete():
    assert set(MESHES) == {(2, p) for p in (1, 2, 3, 4)} | {(3, p) for p in (1, 2, 3)}
    cells = {2: 2, 3: 6}
    for (dim, _), meshes in MESHES.items():
        for faces, count in meshes:
            assert cells[dim] * faces**dim / count >= 4


@pytest.mark.full("2-1", "2-3", "2-4")
@pytest.mark.parametrize("dim, degree", _rows(list(MESHES)))
def test_diffusion(dim, degree, record_property):
    rates, errors = orders(dim, degree, {})
    record_property("orders", [round(r, 2) for r in rates])
    assert rates[0] >= degree + 1 - ALMOST and rates[1] >= degree - ALMOST, (rates, errors)


ADVECTION = [(dim, degree, 0.0) for dim, degree in MESHES] + [(2, 2, 1e-6), (2, 3, 1e-6), (3, 1, 1e-6)]


@pytest.mark.parametrize("dim, degree, eps", _rows(ADVECTION))
def test_advection(dim, degree, eps, record_property):
    """Little diffusion and none: p + 1/2 in the DG norm, whose jumps have the weight |w·n| / 2, and not less in L2."""
    rates, errors = orders(dim, degree, {"eps": eps})
    record_property("orders", [round(r, 2) for r in rates])
    assert rates[0] >= degree + 0.5 - ALMOST and rates[1] >= degree + 0.5 - ALMOST, (rates, errors)


@pytest.mark.full
@pytest.mark.parametrize("dim, degree", [(2, 3), (3, 3)])
def test_mixed_degrees(dim, degree, record_property):
    """A third of the polytopes has a degree less, and so have the orders; errors lie between those of both degrees."""

    def degrees(x):
        return degree - (np.arange(len(x)) % 3 == 0)

    rates, errors = orders(dim, degree, {}, degrees)
    record_property("orders", [round(r, 2) for r in rates])
    assert rates[0] >= degree - ALMOST and rates[1] >= degree - 1 - ALMOST, (rates, errors)
    uniform = [norms(dim, 1, degree, {}, p)[0] for p in (degree - 1, degree)]
    assert uniform[1] < errors[0] < uniform[0]


def uneven(dim: int, degree: int):
    """Polytopes of 3 (4) to 60 facets and more, with degrees p and p + 1 up to the highest of the table: a few large
    ones that grew at random, out of which single cells are cut."""
    mesh = box_mesh(*{2: ("triangle", (20, 20)), 3: ("tetrahedron", (4, 4, 3))}[dim])
    given = grown(mesh, 8, 5)
    random = np.random.default_rng(6)
    single = random.permutation(mesh.num_cells)[:25]
    of_cell = given.of_cell.copy()
    of_cell[single] = given.count + np.arange(25)
    of_cell = np.unique(of_cell, return_inverse=True)[1].astype(np.int32)
    count = int(of_cell.max()) + 1
    degrees = degree + (random.integers(2, size=count) if (dim, degree + 1) in MESHES else 0) * np.ones(count, int)
    return mesh, Polytopes(of_cell, count, degrees)


@pytest.mark.parametrize("dim, degree", MESHES)
@pytest.mark.full
def test_solutions_of_the_space(dim, degree):
    mesh, mesh.polytopes = uneven(dim, degree)
    facets = np.diff(find_outline(mesh, mesh.polytopes).start)
    assert facets.min() == dim + 1 and facets.max() >= 60
    constants = {"smooth": 0.0} | {f"q{k}": 0.5 / k for k in range(1, degree + 1)}
    problem, u = solved(mesh, degree, constants)
    errors = problem.errors(u)
    assert errors["L2"] < 1e-10 and errors["H1"] < 1e-9, errors
