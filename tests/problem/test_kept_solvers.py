"""What solvers keep between solves: other loads leave matrices and preconditioners, other coefficients do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_log import logged
from petsc_options import petsc_options
from sample_loads import COEFFICIENTS, LOADS, jumping, loaded, rising
from sample_time import HEAT, final_error, problem_in_time

import petsc_hdg as fe
from petsc_hdg import stages
from petsc_hdg.options import BACKENDS, Options

PETSc.Log.begin()

SCRIPT = Path(__file__).with_name("run_kept_solvers.py")
ON_DEVICE = {"ksp_type": "python", "ksp_python_type": "petsc_hdg.CG"}
# Scheme, matrix, options of PETSc.
CASES = {
    "cg two levels": ("cg_gpu", "conforming", {}),
    "cg gamg": ("cg_gpu", "aij", {}),
    "cg gamg on the device": ("cg_gpu", "aij", ON_DEVICE),
    "cg lu": ("cg_gpu", "aij", {"ksp_type": "preonly", "pc_type": "lu"}),
    "cg matrix-free": ("cg_gpu", "none", {}),
    "hdg gamg": ("hdg_gpu", "aij", {}),
    "hdg blocks": ("hdg_gpu", "none", {}),
    "hdg blocks on the device": ("hdg_gpu", "none", ON_DEVICE),
    "sipg two levels": ("sipg_gpu", "auto", {}),
    "sipg gamg": ("sipg_gpu", "aij", {}),
    "sipg matrix-free": ("sipg_gpu", "none", {}),
    "sipg blocks on the device": (
        "sipg_gpu", "none", {**ON_DEVICE, "pc_type": "python", "pc_python_type": "petsc_hdg.CellBlockJacobi"}
    ),
    "poly agglomerates": ("poly_gpu", "auto", {}),
    "poly matrix": ("poly_gpu", "aij", {}),
    "poly matrix-free": ("poly_gpu", "none", {}),
}  # fmt: skip


@pytest.fixture(autouse=True)
def own_stage(monkeypatch):
    """Where a set-up has once ended by an exception, as in tests before, PETSc counts none in that stage any more."""
    monkeypatch.setitem(stages._STAGES, "solve", PETSc.Log.Stage("solves of kept solvers"))


def made(backend: str, pmat: str, kappa=rising, source=1.0, **constants) -> fe.Problem:
    mesh = fe.Mesh.box((4, 4), comm=PETSc.COMM_SELF)
    problem = fe.Problem(mesh, loaded(), Options(backend=backend, degree=2, pmat=pmat, check_kernels=False))
    problem.set_constants(**constants)
    problem.set_auxiliary("kappa", kappa)
    problem.set_auxiliary("source", source)
    return problem


def set_ups(problem) -> int:
    """Preconditioners that a solve sets up."""
    return logged("PCSetUp", problem.solve)[0]


def difference(problem, other) -> float:
    """Of two problems' values in the cells, relative."""
    values, expected = (p.cell_values(p.solve())["u"] for p in (problem, other))
    return np.abs(values - expected).max() / np.abs(expected).max()


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_loads_keep_the_preconditioner_and_coefficients_do_not(name):
    backend, pmat, options = CASES[name]
    with petsc_options(ksp_rtol="1e-12", **options):
        problem = made(backend, pmat)
        assert set_ups(problem) > 0 and set_ups(problem) == 0
        problem.set_constants(**LOADS)
        problem.set_auxiliary("source", jumping)
        assert set_ups(problem) == 0
        assert difference(problem, made(backend, pmat, source=jumping, **LOADS)) < 1e-9
        for constant, value in COEFFICIENTS.items():
            problem.set_constants(**{constant: value})
            assert set_ups(problem) > 0, constant
        problem.set_auxiliary("kappa", jumping)
        assert set_ups(problem) > 0
        problem.set_constants(**COEFFICIENTS)
        problem.set_auxiliary("kappa", jumping)
        assert set_ups(problem) == 0, "the same values change nothing"
        assert difference(problem, made(backend, pmat, jumping, jumping, **LOADS, **COEFFICIENTS)) < 1e-9


def test_all_schemes_are_listed():
    assert {backend for backend, _, _ in CASES.values()} == set(BACKENDS)


@pytest.mark.parametrize("share", [False, True])
def test_cells_are_condensed_for_another_load_without_their_matrices(share, monkeypatch):
    """Cells that share a solver have it already, others eliminate once more for the load."""
    mesh = fe.Mesh.box((8, 8), comm=PETSc.COMM_SELF)
    physics = fe.Physics(
        {"u": 1},
        "f0[0] = -f;",
        "for (d = 0; d < dim; ++d) f1[d] = k*u_x[d];",
        constants={"f": 1.0, "k": 1.0},
        boundary=[fe.Dirichlet("boundary", 0.0)],
    )
    problem = fe.Problem(mesh, physics, Options(backend="hdg_gpu", degree=1, hdg_share=share, check_kernels=False))
    problem.solve()
    stores, taken = problem.operator.stores, []
    monkeypatch.setattr(stores, "begin", lambda before=stores.begin: (taken.append(1), before()))
    norms = []
    for f, k, count in ((2.0, 1.0, 0), (2.0, 2.0, 1), (1.0, 2.0, 1)):
        problem.set_constants(f=f, k=k)
        norms.append(problem.solve().norm() * k / f)
        assert len(taken) == count
    assert np.ptp(norms) < 1e-8 * norms[0]


def test_nonlinear_matrices_follow_all_data():
    """Through the state, which loads change."""
    physics = fe.Physics(
        {"u": 1},
        "f0[0] = -f;",
        "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];",
        constants={"f": 1.0},
        boundary=[fe.Dirichlet("boundary", 0.0)],
    )
    problem = fe.Problem(fe.Mesh.box((3, 3), comm=PETSc.COMM_SELF), physics, Options(degree=1, check_kernels=False))
    before = problem.operator.coefficients
    problem.set_constants(f=2.0)
    assert problem.operator.coefficients == before + 1
    problem.set_constants(f=2.0)
    assert problem.operator.coefficients == before + 1


def test_loads_that_do_not_balance_are_told_with_a_kept_null_space():
    physics = fe.Physics(
        {"u": 1},
        "f0[0] = x[0] - middle;",
        "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        constants={"middle": 0.5},
    )
    problem = fe.Problem(fe.Mesh.box((4, 4), comm=PETSc.COMM_SELF), physics, Options(degree=1, check_kernels=False))
    problem.solve()
    problem.set_constants(middle=0.0)
    with pytest.raises(fe.SolveError, match="must balance"):
        problem.solve()
    problem.set_constants(middle=0.5)
    assert set_ups(problem) == 0


def test_a_load_that_steps_in_time_keeps_the_preconditioner():
    """Set after a step by the user, it is seen by the next one, and the matrix stays."""
    physics = fe.Physics(
        {"u": 1},
        "f0[0] = u_t[0] - f;",
        "for (d = 0; d < dim; ++d) f1[d] = k*u_x[d];",
        constants={"f": 1.0, "k": 1.0},
    )

    def mean_and_set_ups(**changed):
        problem, ends = problem_in_time(physics), []

        def after(t, u):
            if 0.15 < t < 0.25:
                problem.set_constants(**changed)

        def run():
            ends.append(problem.solve_in_time(problem.create_vec(), 0.4, 0.1, monitor=after))

        count, _ = logged("PCSetUp", run)
        return problem.integral("u[0]", ends[0]), count

    with petsc_options(ts_type="beuler"):
        means, counts = zip(mean_and_set_ups(), mean_and_set_ups(f=3.0), mean_and_set_ups(k=2.0), strict=True)
    assert means == pytest.approx([0.4, 0.2 + 0.6, 0.4], abs=1e-8)
    assert counts[0] == counts[1] < counts[2]


def test_matrices_of_others_are_always_told():
    """Such as PETSc's finite differences, which keep F at the state, and another load changes that."""
    calls = made("cg_gpu", "aij").callbacks
    u, other = calls.jacobian.createVecRight(), PETSc.Mat().createAIJ(calls.jacobian.getSizes(), comm=PETSc.COMM_SELF)
    other.setUp()
    for jacobian, changes in ((calls.jacobian, False), (other, True)):
        calls.linearize(None, u, jacobian, calls.preconditioning)
        before = jacobian.stateGet()
        calls.linearize(None, u, jacobian, calls.preconditioning)
        assert (jacobian.stateGet() != before) == changes


def test_other_constants_in_a_run_in_time_are_seen():
    problem = problem_in_time(HEAT)
    errors = [final_error(problem, 4)]
    problem.set_constants(k=1.0)
    errors.append(final_error(problem, 4))
    assert errors[0] == errors[1]


def test_ranks_agree_on_data_that_change_on_one_alone(mpirun):
    """A field that changes in the cells of one rank changes the solvers of all."""
    assert mpirun(2, SCRIPT, timeout=240).stdout.split()[-1] == "agreed"
