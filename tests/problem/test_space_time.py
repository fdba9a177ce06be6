"""Space-time slabs: exactness, orders in time and space, local steps, the three Jacobians, ranks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from petsc_options import petsc_options
from sample_space_time import (
    ORDERS,
    blobs,
    cyclic_steps,
    heat,
    heat_at_start,
    moving,
    moving_at_start,
    nonlinear,
    problem_of,
    squares,
)

import petsc_hdg as fe
from petsc_hdg.errors import OptionError
from petsc_hdg.operators.slab import SlabMatrix
from petsc_hdg.problem import SpaceTime

SCRIPT = Path(__file__).with_name("run_space_time.py")
MOVING, HEAT, NONLINEAR = moving(), heat(), nonlinear()


def exact_in(problem, degree: int, space: str) -> None:
    """Choose the solution of `moving` of a degree in time that the space-time space holds."""
    values = {name: float(degree > k) for k, name in enumerate(ORDERS[:3])}
    problem.set_constants(**values, rich=float(space == "tensor"))


# Exactness ------------------------------------------------------------------------------------------------------------

EXACT = [
    (0, "tensor", None, None),
    (1, "tensor", [1, 2, 3], None),
    (3, "tensor", None, [2, 3]),
    (3, "tensor", [2, 1], None),
    (2, "total", None, None),
    pytest.param(2, "total", [3, 1, 2], [2, 3], marks=pytest.mark.full),
]


@pytest.mark.full("3-tensor", "cycle5")
@pytest.mark.parametrize("degree, space, cycle, degrees", EXACT)
def test_space_time_polynomials_are_found(degree, space, cycle, degrees):
    """A time-dependent wind, diffusion and Dirichlet data; the solution lies in the space."""
    at = None if degrees is None else (lambda x: np.where(x[:, 0] > 0.5, *degrees))
    problem = problem_of(MOVING, blobs, 2, degrees=at)
    exact_in(problem, degree, space)
    steps = None if cycle is None else cyclic_steps(problem, cycle)
    space_time = SpaceTime(problem, degree, space, steps)
    norms = space_time.norms()
    u = space_time.march(problem.interpolate(moving_at_start), 0.0, 0.7, 2, norms)
    assert problem.errors(u, 0.7)["L2"] < 1e-11
    assert norms.values["L2(L2)"] < 1e-10 and norms.values["L2(H1)"] < 1e-9, norms.values
    if degree:
        assert problem.errors(u, 0.6)["L2"] > 1e-3, "the solution moves"


@pytest.mark.parametrize("backend", ["cg_gpu", "sipg_gpu"])
def test_other_schemes(backend):
    problem = problem_of(MOVING, None, 2, faces=3, backend=backend)
    exact_in(problem, 2, "tensor")
    space_time = SpaceTime(problem, 2)
    norms = space_time.norms()
    space_time.march(problem.interpolate(moving_at_start), 0.0, 0.5, 2, norms)
    assert norms.values["L2(L2)"] < 1e-10, norms.values


def test_other_times_of_a_slab():
    problem = problem_of(MOVING, blobs, 2)
    exact_in(problem, 1, "tensor")
    space_time = SpaceTime(problem, 1, local_steps=cyclic_steps(problem, [1, 2]))
    u = space_time.step(problem.interpolate(moving_at_start), 0.0, 0.4)
    for t in (0.0, 0.13, 0.2, 0.4):
        assert problem.errors(space_time.at(t), t)["L2"] < 1e-10
    assert (space_time.at(0.4) - u).norm() < 1e-12
    with pytest.raises(OptionError, match=r"the last slab is \(0, 0.4\), and t = 0.5"):
        space_time.at(0.5)
    slab, space = space_time.slab, problem.operator
    assert slab.flops > 2 * space.flops
    assert slab.diagonal_flops / slab.flops == pytest.approx(2 * space.diagonal_flops / space.flops)


# Orders ---------------------------------------------------------------------------------------------------------------

# degree: slabs of [0, 1], least orders of L2(L2) and at nodes, largest errors of the last
IN_TIME = {
    0: ([8, 16], 0.9, 0.9, 0.05, 0.1),
    1: ([8, 16], 1.85, 2.75, 1e-3, 3e-4),
    2: ([4, 8], 2.8, 4.3, 1e-4, 2e-5),
    3: ([2, 4], 3.8, 5.0, 4e-5, 7e-6),
}


def marched(problem, degree: int, slabs: int, **settings) -> dict[str, float]:
    space_time = SpaceTime(problem, degree, **settings)
    norms = space_time.norms()
    space_time.march(problem.interpolate(heat_at_start), 0.0, 1.0, slabs, norms)
    return norms.values


@pytest.fixture(scope="module")
def fine_heat():
    return problem_of(HEAT, squares(4), 6, faces=4)


@pytest.mark.full
@pytest.mark.parametrize("degree", IN_TIME)
def test_orders_in_time(fine_heat, degree, record_property):
    """q + 1 in L2(L2) and 2q + 1 at nodes of the slabs."""
    slabs, order, at_nodes, most, most_at_nodes = IN_TIME[degree]
    coarse, fine = (marched(fine_heat, degree, n) for n in slabs)
    found = {name: np.log2(coarse[name] / fine[name]) for name in ("L2(L2)", "max L2")}
    record_property("orders", found)
    assert found["L2(L2)"] > order and found["max L2"] > at_nodes, (found, fine)
    assert fine["L2(L2)"] < most and fine["max L2"] < most_at_nodes, fine


@pytest.mark.full
@pytest.mark.parametrize("degree", [1, 2])
def test_order_of_local_steps(fine_heat, degree):
    steps = cyclic_steps(fine_heat, [1, 2, 3])
    coarse, fine = (marched(fine_heat, degree, n, local_steps=steps) for n in (4, 8))
    plain = marched(fine_heat, degree, 8)
    assert np.log2(coarse["L2(L2)"] / fine["L2(L2)"]) > degree + 0.85
    assert fine["L2(L2)"] < plain["L2(L2)"], "smaller steps in some polytopes"


@pytest.mark.full
@pytest.mark.parametrize("space", ["tensor", "total"])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_orders_in_space_and_time(space, degree, record_property):
    """Polytopes and slabs halved together: p + 1 in L2(L2), p in L2(H1), with q = p."""
    errors, unknowns = [], []
    sizes = (8, 16) if degree == 1 else (2, 4)
    for n in sizes:
        problem = problem_of(HEAT, squares(n), degree, faces=2 * n)
        errors.append(marched(problem, degree, 2 * n, space=space))
        unknowns.append(SpaceTime(problem, degree, space).num_unknowns)
    found = {name: np.log2(errors[0][name] / errors[1][name]) for name in ("L2(L2)", "L2(H1)")}
    record_property("orders", found)
    assert found["L2(L2)"] > degree + 0.7 and found["L2(H1)"] > degree - 0.3, (found, errors)
    functions = {"tensor": [6, 18, 40], "total": [4, 10, 20]}[space][degree - 1]
    assert unknowns == [n * n * functions for n in sizes]


@pytest.mark.full
def test_total_degree_loses_little():
    """P_p has the errors of P_{p,p} times a number near one, with half the unknowns."""
    problem = problem_of(HEAT, squares(4), 2, faces=8)
    total, tensor = (marched(problem, 2, 8, space=space)["L2(L2)"] for space in ("total", "tensor"))
    assert tensor < total < 2 * tensor


# Conservation ---------------------------------------------------------------------------------------------------------


CLOSED = fe.Physics(
    {"u": 1},
    f0="f0[0] = u_t[0] - (1 + 2*t)*x[0];",
    f1="for (d = 0; d < dim; ++d) f1[d] = k*u_x[d] - (d + 1)*x[0]*(1 - x[0])*x[1]*(1 - x[1])*u[0];",
    constants={"k": 1.0},
    name="closed box",
)


@pytest.mark.full
def test_local_steps_conserve():
    """Without flux through the boundary, the integral of u grows by that of the source."""
    problem = problem_of(CLOSED, blobs, 2)
    space_time = SpaceTime(problem, 1, local_steps=cyclic_steps(problem, [1, 4, 3]))
    u0 = problem.interpolate(moving_at_start)
    u = space_time.march(u0, 0.0, 0.5, 2)
    growth = 0.5 * (0.5 + 0.5**2)
    assert abs(_integral(problem, u) - _integral(problem, u0) - growth) < 1e-11
    assert growth > 0.1 and (u - u0).norm() > 0.1


def _integral(problem, u) -> float:
    """∫ u: the residual's part with u_t = u, tested with 1."""
    with_rate, without = problem.create_vec(), problem.create_vec()
    for rate, out in ((u, with_rate), (problem.create_vec(), without)):
        problem.callbacks.ifunction(None, 0.0, problem.create_vec(), rate, out)
    return problem.interpolate(1.0).dot(with_rate - without)


# Jacobians ------------------------------------------------------------------------------------------------------------

JACOBIANS = [
    (MOVING, 0, "tensor", [1]),
    (MOVING, 2, "tensor", [1, 3, 2]),
    (MOVING, 3, "total", [1, 2]),
    (HEAT, 1, "tensor", [1, 2]),
    (NONLINEAR, 1, "tensor", [1, 2]),
    pytest.param(NONLINEAR, 2, "total", [1], marks=pytest.mark.full),
]


@pytest.mark.full("physics4", "physics5")
@pytest.mark.parametrize("physics, degree, space, cycle", JACOBIANS)
def test_products_matrix_and_differences_agree(physics, degree, space, cycle):
    problem = problem_of(physics, blobs, 2, faces=4)
    space_time = SpaceTime(problem, degree, space, cyclic_steps(problem, cycle))
    random = np.random.default_rng(5)

    def drawn(vector):
        vector.setArray(random.uniform(-0.5, 0.5, vector.getLocalSize()))
        return vector

    space_time.begin(drawn(problem.create_vec()), 0.1, 0.3)
    x, dx = drawn(space_time.create_vec()), drawn(space_time.create_vec())
    moved, f, low, product, by_matrix = (space_time.create_vec() for _ in range(5))
    space_time._residual(space_time.snes, x, f)  # penalties of nonlinear physics are those of the first state
    step = 1.0 if physics.is_linear else 1e-5
    for sign, out in ((1, f), (-1, low)):
        x.copy(moved)
        moved.axpy(sign * step, dx)
        space_time._residual(space_time.snes, moved, out)
    difference = (f - low) / (2 * step)
    space_time.linearize(x)
    space_time.jacobian.mult(dx, product)
    space_time.matrix.mult(dx, by_matrix)
    assert (product - by_matrix).norm() < 1e-12 * product.norm()
    assert (product - difference).norm() < (1e-12 if physics.is_linear else 1e-8) * product.norm()
    space_time.jacobian.multTranspose(dx, product)
    space_time.matrix.multTranspose(dx, by_matrix)
    assert (product - by_matrix).norm() < 1e-12 * product.norm()
    diagonals = [mat.getDiagonal() for mat in (space_time.jacobian, space_time.matrix)]
    assert (diagonals[0] - diagonals[1]).norm() < 1e-12 * diagonals[0].norm()


def test_a_linearization_takes_factors_back():
    """Both matrices are those of the state again after `scale`, also where the assembled one is kept otherwise."""
    space_time = SpaceTime(problem_of(HEAT, blobs, 1, faces=2), 1)
    space_time.begin(space_time.problem.create_vec(), 0.0, 0.1)
    x, products = space_time.create_vec(), []
    x.set(1.0)
    for _ in range(2):
        space_time.linearize(x)
        products += [mat * x for mat in (space_time.jacobian, space_time.matrix)]
        for mat in (space_time.jacobian, space_time.matrix):
            mat.scale(3.0)
    assert all((product - products[0]).norm() < 1e-12 * products[0].norm() for product in products)


@pytest.mark.parametrize("physics, times", [(HEAT, 1), (MOVING, 3)])
def test_matrices_of_steady_coefficients_are_assembled_once(physics, times, monkeypatch):
    calls, values = [], SlabMatrix.values
    monkeypatch.setattr(SlabMatrix, "values", lambda self: calls.append(1) or values(self))
    problem = problem_of(physics, blobs, 2)
    space_time = SpaceTime(problem, 1)
    u = space_time.march(problem.create_vec(), 0.0, 0.3, 3)
    assert len(calls) == times
    if physics is HEAT:
        space_time.step(u, 0.3, 0.35)
        assert len(calls) == 2, "another length"


@pytest.mark.full
def test_constants_that_change_are_seen():
    ends = []
    for values in ((1.0, 3.0), (3.0, 3.0)):
        problem = problem_of(CLOSED, blobs, 2)
        space_time, start = SpaceTime(problem, 1), problem.interpolate(moving_at_start)
        for value in values:
            problem.set_constants(k=value)
            end = space_time.step(start, 0.0, 0.1)
        ends.append(end)
    assert (ends[0] - ends[1]).norm() < 1e-12 * ends[1].norm()


def test_products_alone_solve_too():
    ends = []
    for pmat in ("auto", "none"):
        problem = problem_of(MOVING, blobs, 2, pmat=pmat)
        exact_in(problem, 1, "tensor")
        with petsc_options(**({"pc_type": "jacobi", "ksp_rtol": "1e-12"} if pmat == "none" else {})):
            space_time = SpaceTime(problem, 1)
            ends.append(space_time.march(problem.interpolate(moving_at_start), 0.0, 0.1, 2))
    assert space_time.linear_iterations > 10 and "matrix" not in space_time.__dict__
    assert (ends[0] - ends[1]).norm() < 1e-9 * ends[0].norm()


@pytest.mark.full
def test_nonlinear_physics():
    """Newton's method in each slab; more points in time change little."""
    problem = problem_of(NONLINEAR, blobs, 2, faces=4)
    ends = []
    with petsc_options(snes_rtol="1e-10", ksp_rtol="1e-10"):
        for points in (None, 4):
            space_time = SpaceTime(problem, 1, points=points)
            ends.append(space_time.march(problem.create_vec(), 0.0, 0.5, 2))
            assert 4 <= space_time.newton_iterations <= 16
    assert 0 < (ends[0] - ends[1]).norm() < 1e-2 * ends[0].norm()


# Ranks ----------------------------------------------------------------------------------------------------------------


def test_ranks(mpirun):
    """The same slab on 1 and 3 ranks: numbering, matrix and solution; 3 ranks by additive Schwarz."""
    alone, three = (json.loads(mpirun(n, SCRIPT).stdout.splitlines()[-1]) for n in (1, 3))
    assert three["sizes"] == alone["sizes"] and three["ranks"] == 3
    for name in ("matrix", "residual", "product"):
        assert abs(three[name] - alone[name]) < 1e-12 * alone[name], name
    for name in ("solution", "L2(L2)"):
        assert abs(three[name] - alone[name]) < 1e-8 * alone[name], name
    assert three["exact"] < 1e-9 and alone["exact"] < 1e-10
