"""Saddle points above the limit of LU: the default block preconditioner's iterations are flat; users win."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from run_saddle_splits import numbers, problem, rubber

import petsc_hdg as fe
from petsc_hdg.physics import library
from petsc_hdg.problem.linear import direct_solvers

SCRIPT = Path(__file__).with_name("run_saddle_splits.py")


@pytest.fixture
def all_are_large(monkeypatch):
    monkeypatch.setattr(direct_solvers, "MOST", 100)
    monkeypatch.setattr(direct_solvers, "most_of_saddles", lambda problem: 100)


@pytest.mark.full("enclosed", "open", "power", "rubber")
@pytest.mark.parametrize(
    "case, most", [("enclosed", 25), ("open", 36), ("power law", 12), ("convected", 15), ("rubber", 40)]
)
def test_iterations_are_flat(all_are_large, monkeypatch, case, most):
    """`most` iterations a step; the same solution as by LU."""
    found = [numbers(case, n, PETSc.COMM_SELF) for n in (8, 16)]
    for one in found:
        assert one["saddle"] == ["pressure"] and not one["direct"] and one["its"] <= most * one["steps"]
    monkeypatch.setattr(direct_solvers, "most_of_saddles", lambda problem: 50_000)
    by_factors = numbers(case, 8, PETSc.COMM_SELF)
    assert by_factors["direct"] and not by_factors["saddle"]
    assert found[0]["energy"] == pytest.approx(by_factors["energy"], rel=1e-6)


@pytest.mark.full("open", "convected")
@pytest.mark.parametrize("case, most", [("enclosed", 20), ("open", 28), ("convected", 16)])
def test_iterations_of_interior_penalty_are_flat(all_are_large, case, most):
    """The same solution as by cg_gpu within the error of both."""
    found = [numbers(case, n, PETSc.COMM_SELF, backend="sipg_gpu") for n in (8, 16)]
    for one in found:
        assert one["saddle"] == ["pressure"] and not one["direct"] and one["its"] <= most * one["steps"]
    assert found[1]["energy"] == pytest.approx(numbers(case, 16, PETSc.COMM_SELF)["energy"], rel=5e-3)


def test_factors_take_the_place_of_blocks(all_are_large):
    """Where multigrid of the velocity is slow."""
    found = numbers("variable", 16, PETSc.COMM_SELF, backend="sipg_gpu")
    assert "fgmres with fieldsplit did not converge in 50" in found["direct"] and found["its"] <= 55
    assert found["energy"] == pytest.approx(0.5, rel=1e-4)


@pytest.mark.full
def test_viscosity_that_varies_by_a_thousand(all_are_large):
    assert all(numbers("variable", n, PETSc.COMM_SELF)["its"] <= 60 for n in (8, 32))


@pytest.mark.full
@pytest.mark.parametrize("case", ["enclosed", "open", "power law", "rubber"])
def test_ranks_take_as_many_iterations(all_are_large, mpirun, case):
    found = json.loads(mpirun(3, SCRIPT, case, "8", "16").stdout.splitlines()[-1])
    for one, n in zip(found, (8, 16), strict=True):
        alone = numbers(case, n, PETSc.COMM_SELF)
        assert abs(one["its"] - alone["its"]) <= 2 * alone["steps"]
        assert one["energy"] == pytest.approx(alone["energy"], rel=1e-6)


def test_rubber_does_not_lock(all_are_large):
    """Errors of the displacement fall like h³, and are those of a soft body."""
    found = []
    for lame_lambda, n in ((5e3, 8), (5e3, 16), (1.0, 16)):
        body = fe.Problem(fe.Mesh.box((n, n), comm=PETSc.COMM_SELF), rubber(lame_lambda, "boundary"), degree=2)
        found.append(body.errors(body.solve())["L2"])
        assert body.saddle == ["pressure"] and body.linear_iterations <= 20
    assert found[0] < 0.02 and found[1] < found[0] / 8 and found[1] < 3 * found[2]


def test_users_choose(all_are_large):
    """A PC of the user's own, and options of the splits."""
    assert "block preconditioner with a diagonal for 'pressure'" in _solved(fieldsplit_velocity_ksp_rtol="1e-3").view()
    with petsc_options(pc_type="gamg"):
        found = problem("open", 8, PETSc.COMM_SELF)
        assert found.snes.getKSP().getPC().getType() == "gamg" and not found.saddle


def _solved(**options) -> fe.Problem:
    with petsc_options(**options):
        found = problem("open", 8, PETSc.COMM_SELF)
        found.solve()
        inner = found.snes.getKSP().getPC().getFieldSplitSubKSP()
    assert inner[0].getTolerances()[0] == 1e-3 and inner[0].getPC().getType() == "gamg"
    assert inner[1].getPC().getType() == "jacobi"
    return found


def test_pressure_may_come_first(all_are_large):
    """Splits do not follow the fields' order; fields that read themselves are one."""
    physics = fe.Physics(
        {"p": fe.Field(1, degree_offset=-1), "v": 2, "heat": 1},
        {"p": "f0[0] = u_x[2] + u_x[5];", "v": "f0[0] = -u[3]; f0[1] = x[0];", "heat": "f0[0] = -1;"},
        {
            "v": "for (d = 0; d < 4; ++d) f1[d] = u_x[dim + d]; f1[0] -= u[0]; f1[3] -= u[0];",
            "heat": "for (d = 0; d < dim; ++d) f1[d] = u_x[3*dim + d];",
        },
        boundary=[fe.Dirichlet("left", 0.0, field="v"), fe.Dirichlet("boundary", 0.0, field="heat")],
    )
    found = fe.Problem(fe.Mesh.box((8, 8), comm=PETSc.COMM_SELF), physics, degree=2)
    found.solve()
    assert found.saddle == ["p"] and found.linear_iterations <= 45


def test_flows_through_a_porous_body_are_left(all_are_large):
    """Without diffusion of the velocity the diagonal is none of the Schur complement."""
    physics = fe.Physics(
        {"v": 2, "p": fe.Field(1, degree_offset=-1)},
        {"v": "for (d = 0; d < dim; ++d) f0[d] = u[d];", "p": "f0[0] = u_x[0] + u_x[3] - 1;"},
        {"v": "f1[0] = -u[2]; f1[3] = -u[2];"},
    )
    found = fe.Problem(fe.Mesh.box((8, 8), comm=PETSc.COMM_SELF), physics, degree=2)
    assert found.snes.getKSP().getPC().getType() == "gamg" and not found.saddle


def test_steps_in_time(all_are_large):
    walls = fe.Dirichlet("boundary", 0.0, field="velocity")
    flow = library.stokes(2, "f0[0] = u_t[0] - x[1]; f0[1] = u_t[1];", boundary=[walls])
    found = fe.Problem(fe.Mesh.box((8, 8), comm=PETSc.COMM_SELF), flow, degree=2)
    found.solve_in_time(found.create_vec(), 0.4, dt=0.1)
    assert found.saddle and found.linear_iterations <= 35 * (found.time_steps + 1)
