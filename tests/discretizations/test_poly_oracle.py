"""The polytopic operator against a plain numpy assembly of the paper's scheme, on random agglomerates."""

from __future__ import annotations

import numpy as np
import pytest
from polytopic_oracle import Equation, PolytopicOracle
from sample_meshes import box_mesh
from sample_polytopes import assembled, columns, constant, grown, polytopic

from petsc_hdg.discretizations.poly.outline import facet_points, find_outline
from petsc_hdg.discretizations.poly.penalty import trace_constants
from petsc_hdg.physics import Dirichlet, Neumann, Physics, Robin

TOLERANCE = 1e-12  # of the largest entry
DEGREES = {2: (1, 2, 3), 3: (1, 2)}

TENSOR = {2: [[1.3, 0.2], [0.2, 0.6]], 3: [[1.3, 0.2, 0.1], [0.2, 0.6, 0.0], [0.1, 0.0, 0.9]]}
WIND = [1.0, -0.7, 0.4]

# The tensor grows with x, the reaction with x², so that the rules' degree is that of the terms plus 2.
TEXTS = {
    2: """
        f1[0] = (1 + x[0])*(1.3*u_x[0] + 0.2*u_x[1]);
        f1[1] = (1 + x[0])*(0.2*u_x[0] + 0.6*u_x[1]);
    """,
    3: """
        f1[0] = (1 + x[0])*(1.3*u_x[0] + 0.2*u_x[1] + 0.1*u_x[2]);
        f1[1] = (1 + x[0])*(0.2*u_x[0] + 0.6*u_x[1]);
        f1[2] = (1 + x[0])*(0.1*u_x[0] + 0.9*u_x[2]);
    """,
}
ALONG = {2: "1.0*{0}[0] - 0.7*{0}[1]", 3: "1.0*{0}[0] - 0.7*{0}[1] + 0.4*{0}[2]"}


def conditions(dim: int) -> list:
    """Dirichlet data on inflow and outflow, Neumann data, and a side without conditions (outflow only)."""
    return [
        Dirichlet("left", "g[0] = 1 + x[1];"),
        Dirichlet("top", "g[0] = x[0]*x[0];"),
        Neumann("right", "g[0] = 0.5 - x[1];"),
        *([Dirichlet("back", "g[0] = x[0];"), Dirichlet("front", "g[0] = x[1];")] if dim == 3 else []),
    ]


def physics(dim: int) -> Physics:
    reaction = f"f0[0] = {ALONG[dim].format('u_x')} + (0.5 + x[0]*x[1])*u[0] - (1 + x[0]*x[1]);"
    return Physics({"u": 1}, reaction, TEXTS[dim], boundary=conditions(dim), name=f"advection {dim}")


def kind(x: np.ndarray, n: np.ndarray) -> str:
    """The condition at places of the boundary [point, dim] by the outward normal."""
    axis = int(np.abs(n).argmax())
    side = (("left", "right"), ("bottom", "top"), ("back", "front"))[axis][int(n[axis] > 0)]
    return {"right": "neumann", "bottom": "none"}.get(side, "dirichlet")


def data(x: np.ndarray) -> np.ndarray:
    """Dirichlet data [point] of `conditions`."""
    found = np.where(np.isclose(x[:, 0], 0.0), 1 + x[:, 1], x[:, 0] ** 2)
    if x.shape[1] == 3:
        found = np.where(np.isclose(x[:, 2], 0.0), x[:, 1], np.where(np.isclose(x[:, 2], 1.0), x[:, 0], found))
    return found


def equation(dim: int, **changes) -> Equation:
    wind = np.array(WIND[:dim])
    terms = {
        "tensor": lambda x: (1 + x[:, 0])[:, None, None] * np.array(TENSOR[dim]),
        "wind": lambda x: np.broadcast_to(wind, x.shape),
        "reaction": lambda x: 0.5 + x[:, 0] * x[:, 1],
        "source": lambda x: 1 + x[:, 0] * x[:, 1],
        "dirichlet": data,
        "neumann": lambda x: 0.5 - x[:, 1],
        "kind": kind,
    }
    return Equation(**{**terms, **changes})


def oracle(operator, given: Equation) -> PolytopicOracle:
    """The oracle on the polytopes of an operator, with its order of functions."""
    disc = operator.discretization
    powers = [disc.exponents[: disc.num_basis(p)] for p in disc.degrees]
    mesh = disc.mesh
    return PolytopicOracle(
        mesh.geometry.nodes, mesh.geometry.cell_nodes[: mesh.num_cells], disc.polytopes.of_cell, powers, given
    )


def sigma_of(operator, speed) -> np.ndarray:
    """Penalties [cell, facet] of the kernels without the part of upwinding; facets lie across from corners."""
    return operator.fine.penalties()[0].T - 0.5 * speed


def speeds(operator, wind) -> np.ndarray:
    """|w·n| [cell, facet] of a constant wind [dim]."""
    mesh = operator.discretization.mesh
    corners = mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells]]
    found = np.empty(corners.shape[:2])
    for facet in range(corners.shape[1]):
        on = np.delete(corners, facet, axis=1)
        normal = np.linalg.svd(on[:, 1:] - on[:, :1])[2][:, -1]
        found[:, facet] = np.abs(normal @ wind)
    return found


def compare(operator, given: Equation, speed, upwind=None) -> float:
    """Largest difference of matrices (the product's, the assembled one) and right-hand sides over the largest entries.

    speed [cell, facet]: of which the penalties of the kernels have half;  upwind: what the oracle takes, or |w·n|.
    """
    reference, matrix = oracle(operator, given), columns(operator)
    sigma = sigma_of(operator, speed)
    expected, load = reference.matrix(sigma, upwind), reference.load(sigma, upwind)
    assert np.abs(load).max() > 0.1 and np.abs(expected).max() > 0.1
    faults = [np.abs(m - expected).max() / np.abs(expected).max() for m in (matrix, assembled(operator))]
    return max(*faults, np.abs(constant(operator) + load).max() / np.abs(load).max())


CASES = [("triangle", (4, 3), 7, seed) for seed in range(8)] + [("triangle", (5, 5), 3, seed) for seed in range(8, 12)]
CASES += [("tetrahedron", (2, 2, 2), 6, seed) for seed in range(12, 18)]
CASES += [("tetrahedron", (3, 2, 2), 2, seed) for seed in range(18, 20)]


def test_there_are_twenty_random_agglomerations():
    assert len({seed for *_, seed in CASES}) == len(CASES) == 20
    assert {cell for cell, *_ in CASES} == {"triangle", "tetrahedron"}


@pytest.mark.parametrize("cell, faces, count, seed", CASES)
@pytest.mark.full
def test_the_papers_scheme(cell, faces, count, seed):
    """The matrix = the matrix-free product = the oracle."""
    mesh = box_mesh(cell, faces, seed=seed)
    degrees = DEGREES[mesh.dim]
    polytopes = grown(mesh, count, seed, degrees)
    most = max(degrees)
    operator = polytopic(mesh, polytopes, physics(mesh.dim), most, quadrature_degree=2 * most + 2)
    assert compare(operator, equation(mesh.dim), speeds(operator, WIND[: mesh.dim])) < TOLERANCE


def test_penalties_by_the_formula():
    """σ = max(C_K n·a n) of both sides, twice that with Dirichlet data."""
    mesh = box_mesh("triangle", (4, 3), seed=2)
    operator = polytopic(mesh, grown(mesh, 7, 2, (1, 2, 3)), physics(2), 3, quadrature_degree=8)
    columns(operator)
    disc = operator.discretization
    outline = find_outline(mesh, disc.polytopes)
    constants = trace_constants(outline, disc.polytopes, disc.degrees)
    behind = disc.fine.neighbours.neighbour[outline.cell, outline.facet]
    x, _, n = facet_points(mesh, outline.cell, outline.facet, 8)
    kappa = ((1 + x[..., 0]) * np.einsum("iqd,de,iqe->iq", n, TENSOR[2], n)).max(axis=1)
    largest = constants[outline.polytope]
    there = behind >= 0
    largest[there] = np.maximum(largest[there], constants[disc.polytopes.of_cell[behind[there]]])
    kinds = disc.fine.neighbours.kinds[np.where(behind < -1, -2 - behind, 0)]
    largest[(behind < -1) & (kinds[:, 0] >= 0)] *= 2
    assert disc.fine.penalty_factor(disc.mesh.cell, 2) == 1
    found = sigma_of(operator, speeds(operator, WIND[:2]))[outline.cell, outline.facet]
    checked = there | ((behind < -1) & (kinds[:, 0] >= 0))
    assert checked.sum() > 10 and there.any()
    np.testing.assert_allclose(found[checked], (kappa * largest)[checked], rtol=1e-10)


def swirl(x: np.ndarray) -> np.ndarray:
    """A wind [point, 2] of divergence 1 that blows in on the left and out at the bottom and on the right."""
    return np.stack([0.5 + x[:, 0], -0.7 - 0.2 * x[:, 0]], axis=1)


def largest_speeds(operator, wind) -> np.ndarray:
    """Largest |w·n| [cell, facet] at the facet points of the kernels."""
    mesh = operator.discretization.mesh
    cells, facets = np.indices((mesh.num_cells, mesh.dim + 1)).reshape(2, -1)
    x, _, n = facet_points(mesh, cells, facets, operator.discretization.quadrature_degree)
    along = np.einsum("iqd,iqd->iq", wind(x.reshape(-1, mesh.dim)).reshape(x.shape), n)
    return np.abs(along).max(axis=1).reshape(mesh.num_cells, -1)


# The wind (blow + turn x, -0.7 - 0.2 turn x), of divergence `turn`, written into f0 (`along`) or into f1 (`carried`).
WINDS = Physics(
    {"u": 1},
    "f0[0] = along*((blow + turn*x[0])*u_x[0] - (0.7 + 0.2*turn*x[0])*u_x[1]) + fade*u[0] - 1;",
    """
        f1[0] = kappa*u_x[0] - carried*(blow + turn*x[0])*u[0];
        f1[1] = kappa*u_x[1] + carried*(0.7 + 0.2*turn*x[0])*u[0];
    """,
    boundary=[
        *conditions(2)[:2],
        Robin("right", "f0[0] = -heat*(0.5 - x[1]) + carried*(blow + turn*x[0])*u[0];"),
        Robin("bottom", "f0[0] = carried*(0.7 + 0.2*turn*x[0])*u[0];"),
    ],
    constants=dict.fromkeys(("along", "carried", "blow", "turn", "fade", "kappa", "heat"), 0.0),
    name="winds",
)


def windy(mesh, degrees, **constants):
    """The operator of WINDS with some constants, the largest degree 2."""
    operator = polytopic(mesh, grown(mesh, 8, 9, degrees), WINDS, 2, quadrature_degree=6)
    operator.set_constants(list(({**WINDS.constants} | constants).values()))
    return operator


@pytest.mark.parametrize("form", ["along", "carried"])
def test_winds_that_vary(form):
    """Both forms of convection are the paper's scheme, with the largest |w·n| of a facet in the upwind jump: what that
    adds to the paper's is symmetric and positive semidefinite, and not large."""
    fade = {"along": 2.0, "carried": 1.0}[form]
    operator = windy(
        box_mesh("triangle", (4, 3), seed=5), (1, 2), **{form: 1.0}, blow=0.5, turn=1.0, fade=fade, kappa=0.3, heat=1.0
    )
    given = equation(
        2,
        tensor=lambda x: np.broadcast_to(0.3 * np.eye(2), (len(x), 2, 2)),
        wind=swirl,
        reaction=lambda x: np.full(len(x), 2.0),
        source=lambda x: np.ones(len(x)),
    )
    speed = largest_speeds(operator, swirl)
    assert compare(operator, given, speed, speed) < TOLERANCE
    reference, sigma = oracle(operator, given), sigma_of(operator, speed)
    papers = reference.matrix(sigma)
    more = columns(operator) - papers
    values = np.linalg.eigvalsh((more + more.T) / 2)
    assert np.abs(more - more.T).max() < 1e-12 * np.abs(papers).max()
    assert values[0] > -1e-12 * values[-1] and 1e-4 < values[-1] < 0.1 * np.linalg.norm(papers, 2)


def test_pure_advection_and_degree_zero():
    """Without diffusion nothing is left but upwinding; polytopes of degree 0 are finite volumes."""
    operator = windy(box_mesh("triangle", (4, 3), seed=9), (0, 1, 2), along=1.0, blow=1.0, fade=1.0)
    assert set(operator.discretization.degrees) == {0, 1, 2}
    given = equation(
        2,
        tensor=lambda x: np.zeros((len(x), 2, 2)),
        reaction=lambda x: np.ones(len(x)),
        source=lambda x: np.ones(len(x)),
        neumann=lambda x: np.zeros(len(x)),
    )
    speed = speeds(operator, WIND[:2])
    assert compare(operator, given, speed) < TOLERANCE
    penalties = operator.fine.penalties()[0].T
    np.testing.assert_allclose(penalties[penalties > 0], speed[penalties > 0] / 2, rtol=1e-12)


def test_tensor_space():
    mesh = box_mesh("triangle", (4, 3), seed=4)
    settings = {"poly_space": "tensor", "quadrature_degree": 6}
    operator = polytopic(mesh, grown(mesh, 6, 4, (0, 1)), physics(2), 1, **settings)
    assert operator.discretization.num_basis(1) == 4
    assert compare(operator, equation(2), speeds(operator, WIND[:2])) < TOLERANCE
