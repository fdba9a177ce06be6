"""Levels of preconditioners in single precision: products, vectors and matrices."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.errors import DeviceError
from petsc_hdg.krylov import level_bounds
from petsc_hdg.operators.block_jacobi import CellBlocks
from petsc_hdg.operators.cg.operator import CGOperator
from petsc_hdg.operators.sipg.operator import SIPGOperator
from petsc_hdg.problem.linear import two_level

NONLINEAR = "for (d = 0; d < dim; ++d) f1[d] = k*(1 + u[0]*u[0])*(1 + a[0])*u_x[d];"
LINEAR = "for (d = 0; d < dim; ++d) f1[d] = k*u_x[d];"
WIND = "f0[0] = u_x[0] - 2*u_x[1] - s;"
STEP = "const PetscReal c = (x[0] < 0.5 && x[1] < 0.5) ? k : 1.0; for (d = 0; d < dim; ++d) f1[d] = c*u_x[d];"
PHYSICS = fe.Physics({"u": 1}, "f0[0] = -1;", "u_x[d]", boundary=[fe.Dirichlet("boundary", 0.0)])
CELLS = [("cg_gpu", False), ("cg_gpu", True), ("sipg_gpu", False), ("sipg_gpu", True)]
cells = pytest.mark.parametrize("backend, simplex", CELLS)


def problem_of(backend="cg_gpu", simplex=False, f1=NONLINEAR, f0="f0[0] = -s;", **options) -> fe.Problem:
    """On a device that is taken for a GPU."""
    walls = [fe.Dirichlet("left", "g[0] = 0.2*x[1];"), fe.Neumann("right", "g[0] = 0.3;")]
    auxiliary = {"a": 1} if "a[0]" in f1 else {}
    constants = {"k": 1.0, "s": 4.0}
    physics = fe.Physics({"u": 1}, f0, f1, constants=constants, boundary=walls, auxiliary=auxiliary)
    mesh = fe.Mesh.box((8, 8), simplex=simplex, comm=PETSc.COMM_SELF)
    options = {"pmat_precision": "single", "degree": 2, "check_kernels": False, **options}
    problem = fe.Problem(mesh, physics, backend=backend, **options)
    problem.device.has_solvers = True
    if auxiliary:
        problem.set_auxiliary("a", lambda x: x[..., 0])
    return problem


def products(problem, seed=3) -> tuple[np.ndarray, np.ndarray]:
    """Of a random vector with the Jacobian, and with the matrix for preconditioners."""
    calls, x = problem.callbacks, problem.create_vec()
    x.setArray(np.random.default_rng(seed).uniform(-1, 1, x.getLocalSize()))
    return tuple((mat * x).getArray().copy() for mat in (calls.jacobian, calls.preconditioning))


def assert_close(exact: np.ndarray, found: np.ndarray) -> None:
    """As numbers in single precision are, and no closer."""
    assert 1e-10 < np.abs(exact - found).max() / np.abs(exact).max() < 3e-6


@cells
@pytest.mark.parametrize("f1", [NONLINEAR, LINEAR], ids=["nonlinear", "constant"])
def test_products_diagonals_and_blocks_follow_state_and_data(backend, simplex, f1):
    problem = problem_of(backend, simplex, f1)
    calls, u = problem.callbacks, problem.interpolate(lambda x: np.sin(3 * x[..., 0]) + x[..., 1])
    for factor in (1.0, 2.0):
        problem.set_constants(k=factor)
        if f1 == NONLINEAR:
            problem.set_auxiliary("a", lambda x, factor=factor: factor * x[..., 1])
        calls.linearize(None, u, calls.jacobian, calls.preconditioning)
        assert_close(*products(problem))
        diagonals = [mat.getDiagonal().getArray() for mat in (calls.jacobian, calls.preconditioning)]
        assert_close(*diagonals)
        u.scale(1.5)


def test_products_in_time():
    """With a rate and a shift."""
    problem = problem_of(f0="f0[0] = (1 + u[0]*u[0])*u_t[0] - s;")
    calls, u = problem.callbacks, problem.interpolate(lambda x: x[..., 0])
    calls.ijacobian(None, 0.3, u, u, 7.0, calls.jacobian, calls.preconditioning)
    assert_close(*products(problem))


@cells
def test_as_many_iterations_to_the_same_solution(backend, simplex):
    found = []
    for precision in ("double", "single"):
        problem = problem_of(backend, simplex, pmat_precision=precision)
        u = problem.solve()
        solver = problem.snes.getKSP().getPythonContext()
        assert ("in single precision" in solver.preconditioner.note) == (precision == "single")
        found.append((problem.newton_iterations, problem.linear_iterations, u))
    (steps, its, u), (same, count, v) = found
    assert steps == same and abs(its - count) <= 1
    v.axpy(-1.0, u)
    assert 0 < v.norm() < 1e-7 * u.norm()


def test_inverted_blocks_of_doubles_multiply_floats():
    """Of convection, whose smoother takes blocks."""
    its = []
    for precision in ("double", "single"):
        problem = problem_of("sipg_gpu", f1=LINEAR, f0=WIND, pmat_precision=precision)
        problem.solve()
        pc = problem.snes.getKSP().getPC().getMGSmoother(1).getPC()
        assert pc.getPythonType() == "petsc_hdg.CellBlockJacobi"
        its.append(problem.linear_iterations)
    assert abs(its[0] - its[1]) <= 1
    x, y = problem.create_vec(), problem.create_vec()
    x.set(1.0)
    pc.apply(x, y)
    blocks, arrays = CellBlocks(problem.operator), problem.arrays
    blocks.update()
    exact = arrays.zeros(problem.num_unknowns)
    blocks.apply(arrays.to_device(x.getArray()), exact)
    assert_close(arrays.to_host(exact, problem.num_unknowns), y.getArray())


@pytest.mark.parametrize("backend", ["cg_gpu", "sipg_gpu"])
@pytest.mark.parametrize("k, is_single", [(1e3, True), (1e8, False)])
def test_large_contrasts_take_doubles(backend, k, is_single):
    its = []
    for precision in ("double", "single"):
        problem = problem_of(backend, f1=STEP, pmat_precision=precision)
        problem.set_constants(k=k)
        problem.solve()
        its.append(problem.linear_iterations)
    assert problem.callbacks.rough.getPythonContext().is_copy == is_single
    assert abs(its[0] - its[1]) <= is_single


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:divide by zero:RuntimeWarning")
@pytest.mark.parametrize("asks", [True, False])
def test_numbers_that_floats_lack(asks, monkeypatch):
    """Doubles are taken before they are needed, or once a solve with floats has failed."""
    if not asks:
        monkeypatch.setattr(level_bounds, "suits_single_precision", lambda *given: True)
    tiny = {name: text.replace("s", "1e-44*s").replace("k", "1e-44*k") for name, text in
            (("f0", "f0[0] = -s;"), ("f1", LINEAR))}  # fmt: skip
    problem = problem_of(f1=tiny["f1"], f0=tiny["f0"])
    u = problem.solve()
    assert not problem.callbacks.rough.getPythonContext().is_copy
    v = problem_of(f1=LINEAR).solve()
    expected = problem_of(f1=tiny["f1"], f0=tiny["f0"], pmat_precision="double").solve()
    u.axpy(-1.0, expected)
    assert u.norm() < 1e-7 * v.norm()


def test_few_unknowns_keep_doubles_by_default(monkeypatch):
    problem = problem_of(pmat_precision="auto")
    assert problem.callbacks.rough is None
    monkeypatch.setattr(two_level, "SINGLE_FROM", 100)
    assert problem_of(pmat_precision="auto").callbacks.rough is not None


def test_no_room_for_a_copy(monkeypatch):
    """Levels are in double precision then."""

    def full(*given):
        raise DeviceError("no room")

    monkeypatch.setattr(CGOperator, "in_precision", full)
    problem = problem_of()
    assert problem.callbacks.rough is None
    problem.solve()
    assert "single precision" not in problem.snes.getKSP().getPythonContext().preconditioner.note


def test_steps_in_time():
    norms = []
    for precision in ("double", "single"):
        with petsc_options(ts_type="bdf"):
            problem = problem_of(f0="f0[0] = u_t[0] - s;", pmat_precision=precision)
            u = problem.solve_in_time(problem.create_vec(), 0.3, 0.1)
        norms.append((problem.linear_iterations, u.norm()))
    (its, norm), (count, same) = norms
    assert abs(its - count) <= 2 and same == pytest.approx(norm, rel=1e-6)


@pytest.mark.parametrize("wide", [False, True])
def test_blocks_come_from_products_of_floats_unless_one_is_wide(wide, monkeypatch):
    problem, made = problem_of("sipg_gpu", f1=LINEAR, f0=WIND), []
    calls, cell_blocks = problem.callbacks, SIPGOperator.cell_blocks
    monkeypatch.setattr(
        SIPGOperator, "cell_blocks", lambda operator: (made.append(operator.source is None), cell_blocks(operator))[1]
    )
    if wide:
        monkeypatch.setattr(CellBlocks, "_are_wide", lambda blocks: True)
    u = problem.create_vec()
    calls.linearize(None, u, calls.jacobian, calls.preconditioning)
    context = calls.preconditioning.getPythonContext()
    blocks, exact = CellBlocks(context.exact, True, context.operator), CellBlocks(problem.operator)
    blocks.update()
    assert made == ([False, True] if wide else [False])
    exact.update()
    off = np.abs(blocks.to_host() - exact.to_host()).max() / np.abs(exact.to_host()).max()
    assert off < 1e-14 if wide else 1e-10 < off < 1e-5


def test_traces_have_cycles_in_the_precision_of_their_products():
    """Cycles in single precision would convert vectors around each product of a trace."""
    with petsc_options(fe_pmat_precision="single"):
        problem = fe.Problem(fe.Mesh.box((6, 6), comm=PETSc.COMM_SELF), PHYSICS, backend="hdg_gpu", degree=2)
        problem.device.has_solvers = True
        problem.solve()
    assert problem.pmat == "conforming" and problem.callbacks.rough is None
    assert "single precision" not in problem.snes.getKSP().getPythonContext().preconditioner.note
