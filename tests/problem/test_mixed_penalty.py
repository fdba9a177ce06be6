"""sipg_gpu on meshes of cells of several shapes, prisms and pyramids: oracle, matrices, orders, ranks, refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import run_mixed_penalty
from mixed_meshes import plane, solid
from petsc4py import PETSc
from petsc_options import petsc_options
from run_mixed import assert_same, state
from sample_meshes import box_mesh
from sample_physics import everything, give_everything, smooth_poisson
from test_mixed_meshes import LINEAR, SOLIDS, exact, mesh_of, of_solid

import petsc_hdg as fe
from petsc_hdg.device import VecAccess
from petsc_hdg.discretizations.oracle import Oracle, State
from petsc_hdg.discretizations.sipg.oracle import PenaltyOracle
from petsc_hdg.discretizations.sipg.scheme import InteriorPenalty, MixedPenalty
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.errors import OptionError
from petsc_hdg.operators import JacobianContext, create_operator
from petsc_hdg.options import Options

# Cells of all shapes at each degree, and of prisms and of pyramids alone.
EXACT = [*((name, degree) for name in ("plane", "all") for degree in (1, 2, 3)), ("prism", 3), ("pyramid", 1)]


def problem_of(name: str, physics: fe.Physics, degree: int, **options) -> fe.Problem:
    mesh = mesh_of(plane(4) if name == "plane" else solid(3, SOLIDS[name], across=(2, 1)))
    return fe.Problem(mesh, physics, Options(backend="sipg_gpu", degree=degree, **options))


def given(name: str, degree: int = 2, **options) -> tuple[fe.Problem, list[PETSc.Vec]]:
    """A problem with every input, two fields of different degree, state, rate and direction."""
    problem = problem_of(name, everything(), degree, check_kernels=False, **options)
    give_everything(problem)
    return problem, [state(problem, shift) for shift in (0.0, 1.0, 2.0)]


@pytest.mark.parametrize("name, degree", EXACT)
def test_linear_functions_are_exact(name, degree):
    """Kernels are compared with numpy at their first use, too."""
    problem = problem_of(name, LINEAR, degree, check_kernels=True)
    mesh, u, f = problem.mesh, problem.interpolate("exact"), problem.create_vec()
    assert isinstance(problem.discretization, MixedPenalty)
    assert problem.num_unknowns == sum(p.mesh.num_cells * p.num_dofs for p in problem.discretization.parts)
    problem.callbacks.residual(None, u, f)
    assert f.norm() < 2e-12 and max(problem.errors(u).values()) < 2e-12
    places = np.random.default_rng(1).random((20, mesh.dim))
    np.testing.assert_allclose(problem.at(u, places)["u"][:, 0], exact(places), atol=1e-12)
    assert problem.flux("left", u)[0] == pytest.approx(-2.0, rel=1e-12)
    assert problem.integral("u_x[1]*n[1]", u, over="bottom") == pytest.approx(1.0, rel=1e-12)
    with petsc_options(ksp_rtol="1e-12"):
        assert max(problem.errors(problem.solve()).values()) < 1e-8


@pytest.mark.parametrize("name", ("plane", "all"))
def test_residuals_and_products_are_those_of_numpy(name):
    problem, (u, rate, du) = given(name, pmat="none")
    calls, operator, disc = problem.callbacks, problem.operator, problem.discretization
    f, y = problem.create_vec(), problem.create_vec()
    calls.ifunction(None, 0.3, u, rate, f)
    calls.ijacobian(None, 0.3, u, rate, 1.5, calls.jacobian, calls.jacobian)
    calls.jacobian.mult(du, y)
    values, rates, along = (vector.getArray() for vector in (u, rate, du))
    where = {"constants": operator.constants, "t": 0.3, "shift": 1.5}
    whole = State(*(v[disc.extended_dofs] if v is values else v for v in (values, operator.aux_rows)), **where)
    whole = replace(whole, sigma=operator.penalties(), u_t=rates[disc.extended_dofs])
    for found, direction in ((f, None), (y, along)):
        expected = np.zeros(len(values))
        facets, numbers = PenaltyOracle(disc), disc.extended_numbers(np.arange(len(values))).T
        with_direction = whole if direction is None else replace(whole, du=direction[disc.extended_dofs])
        for cell, of in enumerate(numbers):
            rows = sum(facets.facet(cell, facet, with_direction) for facet in range(disc.num_facets_of_cell))
            assert (rows[of < 0] == 0).all()
            np.add.at(expected, of[of >= 0], rows[of >= 0])
        for part, own in zip(disc.parts, operator.parts, strict=True):
            numbers, oracle = part.dofmap.cell_numbers, Oracle(part)
            du_e = None if direction is None else direction[numbers]
            here = State(values[numbers], own.aux_rows, u_t=rates[numbers], du=du_e, **where)
            for cell, of in enumerate(numbers):
                np.add.at(expected, of, oracle.volume(cell, here))
        np.testing.assert_allclose(found.getArray(), expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("name", ("plane", "all"))
def test_matrices_are_those_of_products(name):
    problem, (u, rate, du) = given(name, pmat="aij")
    calls = problem.callbacks
    calls.ijacobian(None, 0.3, u, rate, 1.5, calls.jacobian, calls.assembled.mat)
    y, z = problem.create_vec(), problem.create_vec()
    for product in ("mult", "multTranspose"):
        for mat, out in ((calls.jacobian, y), (calls.assembled.mat, z)):
            getattr(mat, product)(du, out)
        assert (y - z).norm() < 1e-12 * y.norm()
    calls.jacobian.getDiagonal(y)
    assert (y - calls.assembled.mat.getDiagonal()).norm() < 1e-12 * y.norm()
    copy = problem.operator.in_precision("single")
    copy.compile()
    copy.follow()
    narrow = JacobianContext(copy, VecAccess(copy.arrays)).as_mat(y.getSizes(), y.comm, "seq")
    calls.jacobian.mult(du, y)
    narrow.mult(du, z)
    assert 0 < (y - z).norm() < 1e-5 * y.norm()


@pytest.mark.parametrize("cell", ("triangle", "quadrilateral", "tetrahedron", "hexahedron"))
def test_cells_of_one_shape_give_what_their_own_kernels_give(cell):
    mesh = box_mesh(cell, seed=3, order_seed=5, comm=PETSc.COMM_SELF)
    options = Options(backend="sipg_gpu", degree=2, quadrature_degree=4, check_kernels=False, sipg_kernel="split")
    problem = fe.Problem(mesh, smooth_poisson(), options)
    assert type(problem.discretization) is InteriorPenalty
    other = create_operator(MixedPenalty(mesh, problem.physics, options), problem.arrays)
    found = []
    for operator in (problem.operator, other):
        disc, arrays = operator.discretization, operator.arrays
        numbers = disc.dofmap.cell_numbers if disc is problem.discretization else disc.parts[0].dofmap.cell_numbers
        values, out = np.zeros(numbers.size), [arrays.empty(numbers.size) for _ in range(2)]
        values[numbers] = np.random.default_rng(4).random(numbers.shape)
        u = arrays.to_device(values, "x")
        operator.residual(u, out[0])
        operator.linearize(u)
        operator.diagonal(out[1])
        found.append([arrays.to_host(each, numbers.size)[numbers] for each in out])
        assert np.isclose(*operator.penalty.range(), rtol=100)
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(theirs, mine, atol=1e-12 * np.abs(mine).max())


@pytest.mark.parametrize(("degree", "variant"), [(2, "cell and tensor"), (5, "transpose and tensor")])
def test_kernels_meant_for_gpus_give_the_same(degree, variant):
    problem, _ = given("plane", degree=degree, pmat="none")
    meant = MixedPenalty(problem.mesh, problem.discretization.physics, problem.options, DeviceLimits(is_gpu=True))
    assert meant.variant == variant
    assert_same(problem, meant)


ORDERS = {
    **{("plane", degree): (4, 8) for degree in (1, 2, 3)},
    **{("all", degree): (3, 6) for degree in (1, 2)},
    **{(name, 3): (2, 4) for name in ("half", "prism")},
}
HALVES = SOLIDS | {"half": ("most", "hexahedron")}  # tetrahedra and pyramids in a half


@pytest.mark.full("all", "half")
@pytest.mark.parametrize("name, degree", ORDERS)
def test_orders(name, degree):
    """Orders p + 1 and p on distorted meshes, and errors like those of cg_gpu."""
    errors = []
    for n in ORDERS[name, degree]:
        mesh = mesh_of(plane(n) if name == "plane" else solid(n, HALVES[name], across=(2 * n // 3,) * 2))
        problem = fe.Problem(mesh, smooth_poisson(), degree=degree, backend="sipg_gpu", check_kernels=False)
        with petsc_options(ksp_rtol="1e-9"):
            errors.append(problem.errors(problem.solve()))
    order = {norm: np.log2(errors[0][norm] / errors[1][norm]) for norm in ("L2", "H1")}
    continuous = fe.Problem(mesh, smooth_poisson(), degree=degree, check_kernels=False)
    bound = continuous.errors(continuous.solve())
    assert order["L2"] > degree + 0.75 and order["H1"] > degree - 0.2, order
    assert errors[1]["L2"] < 1.3 * bound["L2"] and errors[1]["H1"] < 1.3 * bound["H1"], (errors, bound)


@pytest.mark.parametrize("name, degree", [("plane", 2), ("plane", 6), ("all", 1), ("prism", 3), ("pyramid", 3)])
def test_penalties_make_matrices_positive(name, degree):
    """With half of the penalty too, and not with a fifteenth."""
    least = []
    for scale in (1.0, 0.5, 1 / 15):
        mesh = mesh_of(plane(4)) if name == "plane" else of_solid(name, 2)
        options = dict(backend="sipg_gpu", pmat="aij", sipg_penalty_scale=scale, check_kernels=False)
        problem = fe.Problem(mesh, smooth_poisson(), Options(degree=degree, **options))
        calls, zero = problem.callbacks, problem.create_vec()
        calls.linearize(None, zero, calls.jacobian, calls.assembled.mat)
        dense = calls.assembled.mat.convert("dense").getDenseArray()
        np.testing.assert_allclose(dense, dense.T, atol=1e-11 * np.abs(dense).max())
        least.append(np.linalg.eigvalsh(dense).min())
    assert least[0] > 0 and least[1] > 0 > least[2]


def test_nonlinear_physics_with_data_by_region():
    """-∇·(k (1 + u²) ∇u) = 0 with u = x and k = 2 everywhere, or larger in the triangles alone."""
    physics = fe.Physics(
        {"u": 1},
        f0="f0[0] = 2*a[0]*x[0];",
        f1="for (d = 0; d < dim; ++d) f1[d] = a[0]*(1 + u[0]*u[0])*u_x[d];",
        auxiliary={"k": fe.Auxiliary(1, "nodal")},
        boundary=[fe.Dirichlet("boundary", "exact")],
        exact={"u": "u[0] = x[0];"},
    )
    problem = problem_of("plane", physics, 2)
    problem.set_auxiliary("k", {"of triangle": 2.0, "of quadrilateral": 2.0})
    assert max(problem.errors(problem.solve()).values()) < 1e-6
    problem.set_auxiliary("k", {"of triangle": 4.0, "of quadrilateral": 2.0})
    assert problem.integral("a[0]", problem.solve()) == pytest.approx(2 + 2 * 0.5, abs=0.2)


@pytest.mark.quick
def test_ranks_agree(mpirun):
    alone = run_mixed_penalty.main()
    found = json.loads(mpirun(3, Path(run_mixed_penalty.__file__), 7).stdout.splitlines()[-1])
    for name, expected in alone.items():
        for what, value in expected.items():
            tolerance = 1e-12 if what in ("F", "J", "Jt", "diagonal") else 1e-7
            assert found[name][what] == pytest.approx(value, rel=tolerance), (name, what)


REFUSED = {
    "degree": ("prism", dict(degree=4), "degree 4; sipg_gpu takes 1 to 3"),
    "degree in the plane": ("plane", dict(degree=7), "degree 7; sipg_gpu takes 1 to 6"),
    "fused": ("plane", dict(degree=1, sipg_kernel="fused"), "there: leave it out"),
    "tensor": ("plane", dict(degree=1, kernel="tensor"), "has no effect on sipg_gpu"),
}


@pytest.mark.parametrize("row", REFUSED)
def test_what_is_refused(row):
    name, options, text = REFUSED[row]
    with pytest.raises(OptionError, match=text):
        problem_of(name, smooth_poisson(), **options)


def test_steps_of_coefficients_are_auxiliary_fields():
    """A source may have steps."""
    steps = "(x[0] < 0.37 ? 1 : 2)"
    for f0, f1 in (("-1", steps), (f"-{steps}", "1")):
        f1 = f"for (d = 0; d < dim; ++d) f1[d] = {f1}*u_x[d];"
        physics = fe.Physics({"u": 1}, f0=f"f0[0] = {f0};", f1=f1, boundary=[fe.Dirichlet("boundary", 0.0)])
        if f0 == "-1":
            with pytest.raises(fe.PhysicsError, match="give coefficients as auxiliary fields by regions"):
                problem_of("plane", physics, 2)
        else:
            u = (problem := problem_of("plane", physics, 2)).solve()
    other = fe.Problem(problem.mesh, physics, degree=2)
    assert problem.integral("u[0]", u) == pytest.approx(other.integral("u[0]", other.solve()), rel=0.02)


def test_explicit_steps_invert_the_mass_of_each_cell():
    physics = fe.Physics({"u": 1}, f0="f0[0] = u_t[0] + 2*u_x[0];", boundary=[fe.Dirichlet("left", "g[0] = -2*t;")])
    problem = problem_of("plane", physics, 1, check_kernels=False)
    with petsc_options(ts_type="rk"):
        u = problem.solve_in_time(problem.interpolate("x[0]"), 0.02, 0.005)
    np.testing.assert_allclose(problem.at(u, [[0.3, 0.7]])["u"], 0.3 - 0.04, atol=1e-8)


def test_cell_blocks_are_of_one_shape():
    problem = problem_of("plane", smooth_poisson(), 1, check_kernels=False)
    with petsc_options(pc_type="python", pc_python_type="petsc_hdg.CellBlockJacobi"):
        with pytest.raises(fe.SolveError, match="CellBlockJacobi takes the matrix-free Jacobian of discontinuous"):
            problem.solve()
