"""-cg_stabilization supg: layers, orders, agreement with matrices by numpy, runs in time, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from run_streamlines import source

import petsc_hdg as fe
from petsc_hdg.errors import OptionError, PhysicsError

SCRIPT = Path(__file__).with_name("run_streamlines.py")
pytestmark = pytest.mark.filterwarnings("ignore:the cell Péclet number")


def solved(physics, mesh, degree: int, kind: str = "supg", **options):
    problem = fe.Problem(mesh, physics, backend="cg_gpu", degree=degree, cg_stabilization=kind, **options)
    return problem, problem.solve()


def box(faces: tuple, simplex: bool) -> fe.Mesh:
    return fe.Mesh.box(faces, simplex=simplex, comm=PETSc.COMM_SELF)


@pytest.mark.full("faces0", "faces1", "faces3", "faces4", "faces5")
@pytest.mark.parametrize(
    "faces, simplex, degree",
    [((20, 20), True, 1), ((20, 20), True, 2), ((20, 20), False, 1), ((20, 20), False, 2)]
    + [((6, 6, 6), True, 1), ((6, 6, 6), False, 1)],
)
def test_no_oscillation_comes_out_of_layers(faces, simplex, degree):
    """At a third of the domain's width from layers, where Galerkin's method is wrong by the size of the solution."""
    dim, wind = len(faces), (2.0, 1.0, 1.5)[: len(faces)]
    points = np.random.default_rng(1).uniform(0.05, 0.65, (200, dim))
    times = np.sort(points / wind, axis=1)
    points = points[times[:, 1] - times[:, 0] > 0.1]  # the solution has a kink where two times are the same
    expected = (points / wind).min(axis=1)
    mesh, worst = box(faces, simplex), {}
    for kind in ("supg", "none"):
        problem, u = solved(source(wind), mesh, degree, kind)
        worst[kind] = np.abs(problem.at(u, points)["u"].ravel() - expected).max()
    assert worst["supg"] < 0.03 and worst["none"] > 0.3, worst


def smooth(kappa: float) -> fe.Physics:
    """u = sin(3 x_0 + 1) cos(2 x_1) in the wind (1 + sin x_1, 1 - x_0)."""
    f0 = """
    PetscReal s = sin(3*x[0] + 1), S = cos(3*x[0] + 1), c = cos(2*x[1]), C = sin(2*x[1]);
    f0[0] = (1 + sin(x[1]))*(u_x[0] - 3*S*c) + (1 - x[0])*(u_x[1] + 2*s*C) - 13*kappa*s*c;
    """
    exact, flux = "u[0] = sin(3*x[0] + 1)*cos(2*x[1]);", "for (d = 0; d < dim; ++d) f1[d] = kappa*u_x[d];"
    around = [fe.Dirichlet("boundary", "exact")]
    return fe.Physics({"u": 1}, f0, flux, constants={"kappa": kappa}, boundary=around, exact=exact)


@pytest.mark.full("False", "True-1", "True-3", "1.0")
@pytest.mark.parametrize("kappa", [1e-7, 1.0])
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("simplex", [True, False])
def test_orders(simplex, degree, kappa):
    errors = []
    for count in (6, 12):
        problem, u = solved(smooth(kappa), box((count, count), simplex), degree)
        errors.append(problem.errors(u)["L2"])
    assert np.log2(errors[0] / errors[1]) > degree + 0.75 and errors[1] < 0.1 * 8.0**-degree, errors


def bilinear(dim: int, conservative: bool, in_time: bool = False) -> fe.Physics:
    """u = T (1 + x_0 x_1) in the wind (1 + x_1, 1/2, x_0), whose residual has no second derivatives."""
    wind, factor = ("1 + x[1]", "0.5", "x[0]")[:dim], "(2 + sin(t))" if in_time else "1"
    source_terms = " + ".join(f"({b})*x[{1 - d}]*{factor}" for d, b in enumerate(wind[:2]))
    convection = "0" if conservative else " + ".join(f"({b})*u_x[{d}]" for d, b in enumerate(wind))
    rate = "u_t[0] - cos(t)*(1 + x[0]*x[1]) + " if in_time else ""
    flux = f"PetscReal b[3] = {{{', '.join(wind)}}}; for (d = 0; d < dim; ++d) f1[d] = 1e-5*u_x[d]"
    return fe.Physics(
        {"u": 1},
        f"f0[0] = {rate}{convection} - ({source_terms});",
        f"{flux}{' - b[d]*u[0]' if conservative else ''};",
        boundary=[fe.Dirichlet("boundary", "exact")],
        exact=f"u[0] = {factor}*(1 + x[0]*x[1]);",
    )


@pytest.mark.full("faces2", "faces5")
@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize(
    "faces, simplex, degree, options",
    [((4, 3), False, 1, {}), ((4, 3), True, 2, {}), ((3, 2, 2), False, 1, {}), ((2, 2, 1), True, 2, {})]
    + [((4, 3), False, 3, {"cg_condense": True}), ((4, 3), False, 2, {"pmat": "none"})],
)
def test_the_residual_is_consistent(faces, simplex, degree, options, conservative):
    problem, u = solved(bilinear(len(faces), conservative), box(faces, simplex), degree, **options)
    assert problem.errors(u)["L2"] < 1e-9


def test_degree_one_against_numpy():
    """P1 on distorted triangles, matrices by barycentric gradients: h of a triangle by Σ (b·∇λ)²."""
    kappa, wind = 2e-2, np.array([2.0, 1.0])
    mesh = box((7, 5), True)
    nodes, cells = mesh.geometry.nodes, mesh.topology.cell_vertices
    corners = nodes[cells]
    frame = np.concatenate([np.ones((len(cells), 3, 1)), corners], axis=2)
    slopes, area = np.linalg.inv(frame)[:, 1:], np.abs(np.linalg.det(frame)) / 2  # [cell, dim, vertex]
    along = np.einsum("d,cdv->cv", wind, slopes)
    half = 1 / np.sqrt(2 * (along**2).sum(axis=1))
    tau = half * np.maximum(0, 1 - kappa / (wind @ wind * half))
    assert (tau > 0).any() and (tau < half).all()
    local = kappa * np.einsum("cdi,cdj->cij", slopes, slopes) + along[:, None] / 3
    local += tau[:, None, None] * along[:, :, None] * along[:, None]
    matrix, load = np.zeros((len(nodes), len(nodes))), np.zeros(len(nodes))
    np.add.at(matrix, (cells[:, :, None], cells[:, None]), area[:, None, None] * local)
    np.add.at(load, cells, area[:, None] * (1 / 3 + tau[:, None] * along))
    inner = np.flatnonzero(((nodes > 1e-12) & (nodes < 1 - 1e-12)).all(axis=1))
    expected = np.linalg.solve(matrix[np.ix_(inner, inner)], load[inner])
    problem, u = solved(source(tuple(wind), kappa), mesh, 1)
    np.testing.assert_allclose(problem.at(u, nodes[inner])["u"].ravel(), expected, rtol=0, atol=1e-10)


def test_time_derivatives_belong_to_the_residual():
    errors = []
    for steps in (8, 16):
        problem = fe.Problem(box((4, 4), False), bilinear(2, False, True), degree=1, cg_stabilization="supg")
        end = problem.solve_in_time(problem.interpolate("exact"), 1.0, 1 / steps)
        errors.append(problem.errors(end, 1.0)["L2"])
    assert errors[1] < 3e-4 and np.log2(errors[0] / errors[1]) > 1.9, errors


def test_other_options_and_ranks(mpirun):
    """The option stays in the problem that it is for, and the cells of a rank are measured as those of all."""
    mesh, given = box((4, 4), False), bilinear(2, False)
    problem, _ = solved(given, mesh, 1)
    other = problem.with_options(cg_stabilization="none")
    assert other.physics.digest == given.digest and problem.with_options(degree=2).solve() is not None
    alone, ranks = (json.loads(mpirun(count, SCRIPT).stdout.splitlines()[-1]) for count in (1, 3))
    for degree, values in alone.items():
        np.testing.assert_allclose(ranks[degree], values, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "given, match",
    [
        (fe.Physics({"u": 2}, "f0[0] = u_x[2]; f0[1] = u[1];"), "a derivative of 'u' convects another component"),
        (fe.Physics({"u": 1}, None, "f1[0] = u_t[0] + u_x[0];"), "reads u_t, whose gradient is not known"),
        (fe.Physics({"u": 1}, None, "f1[0] = exp(u[0]);"), "exp of a value .* has no second derivative; leave"),
    ],
)
def test_what_is_refused(given, match):
    with pytest.raises(OptionError, match=f"^-cg_stabilization supg: .*{match}"):
        fe.Problem(box((2, 2), False), given, cg_stabilization="supg")


def test_explicit_methods_are_told_why():
    problem = fe.Problem(box((2, 2), False), bilinear(2, False, True), cg_stabilization="supg")
    ts = PETSc.TS().create(PETSc.COMM_SELF)
    ts.setType("rk")
    with pytest.raises(PhysicsError, match="reads u_t, as f1 does by -cg_stabilization supg"):
        problem.attach(ts)
    ts.destroy()
