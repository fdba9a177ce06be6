"""Natural conditions on facets inside the mesh: each facet counts once, for what has one value there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from run_interfaces import DIFFUSION, DISC, GIVEN, HELD, SCHEMES, cut, found, matrix_with_a_disc, slid, stepped

import petsc_hdg as fe
from petsc_hdg.errors import MeshError, SolveError

SCRIPT = Path(__file__).with_name("run_interfaces.py")


def check(values: list[float]) -> None:
    """Two slopes that meet in a kink of 0.8, which leaves by the sides."""
    assert values[0] < 1e-16
    np.testing.assert_allclose(values[1:], -0.4, atol=1e-6)


@pytest.mark.full("poly_gpu", "sipg_gpu")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_source_inside_makes_a_kink(scheme):
    check(found(scheme))


@pytest.mark.full("poly_gpu", "sipg_gpu")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_data_inside_make_a_kink(scheme):
    check(found(scheme, conditions=GIVEN))


def test_ranks_agree(mpirun):
    sources, steps, discs = json.loads(mpirun(3, SCRIPT).stdout.splitlines()[-1])
    for values in sources:
        check(values)
    assert max(steps) < 1e-16
    assert max(discs) < 1e-13  # both ranks of a facet find the same penalty


@pytest.mark.parametrize("scheme", ["hdg_gpu", "sipg_gpu", "poly_gpu"])
def test_both_sides_of_a_facet_see_their_own_coefficient(scheme):
    """Points of facets lie where the text steps: each side's flux takes the value of its own cell."""
    assert stepped(scheme, cut()) < 1e-16


@pytest.mark.parametrize("scheme", ["sipg_gpu", "poly_gpu"])
def test_natural_data_may_step_too(scheme):
    assert slid(scheme, fe.Mesh.box((4, 3), simplex=scheme == "poly_gpu", comm=PETSc.COMM_SELF)) < 1e-16


@pytest.mark.parametrize("mode", ["triangle", "tetrahedron", "hexahedron", "split", "aij", "theta", "single"])
def test_steps_in_kernels_of_interior_penalty(mode):
    how = {"split": {"sipg_kernel": "split"}, "aij": {"pmat": "aij"}, "theta": {"sipg_theta": 0}}
    how["single"] = {"precision": "single"}
    sides = (4, 2) if mode == "triangle" else (4, 2, 2)
    simplex = mode in ("triangle", "tetrahedron")
    mesh = fe.Mesh.box(sides, simplex=simplex) if mode not in how else cut()
    assert stepped("sipg_gpu", mesh, 2 - (mode == "tetrahedron"), **how.get(mode, {})) < (
        1e-9 if mode == "single" else 1e-16
    )


@pytest.mark.parametrize("scheme", ["sipg_gpu", "poly_gpu"])
def test_steps_inside_of_cells_leave_the_form_definite(scheme):
    """Penalties see the least coefficient of a cell, of polytopes that of all their cells."""
    simplex = scheme == "sipg_gpu"
    mesh = fe.Mesh.box((6, 6), simplex=simplex, comm=PETSc.COMM_SELF)
    mat = matrix_with_a_disc(scheme, mesh, 2, **({} if simplex else {"poly_agglomerates": 12}))
    values = np.linalg.eigvalsh(mat.convert("dense").getDenseArray())
    assert values[0] > 1e-8 * values[-1]


@pytest.mark.parametrize(
    ("backend", "condition"),
    [
        ("cg_gpu", fe.Robin("middle", "f0[0] = n[0]*u[0];")),
        ("cg_gpu", fe.Robin("middle", "f0[0] = u_x[0];")),
        ("cg_gpu", fe.Robin("middle", f1="f1[0] = u[0];")),
        ("hdg_gpu", fe.Robin("middle", "f0[0] = u_t[0];")),
        ("sipg_gpu", fe.Robin("middle", "f0[0] = u_t[0];")),
        ("poly_gpu", fe.Robin("middle", "f0[0] = u_x[0];")),
    ],
)
def test_what_has_two_sides_is_refused(backend, condition):
    physics = fe.Physics({"u": 1}, None, DIFFUSION, boundary=[*HELD, condition])
    with pytest.raises(MeshError, match="'middle' holds facets inside the mesh"):
        fe.Problem(cut(), physics, degree=1, backend=backend).solve()


def test_slow_solves_with_steps_say_what_helps():
    physics = fe.Physics({"u": 1}, "-1", DISC, boundary=[fe.Dirichlet("boundary", 0.0)])
    problem = fe.Problem(fe.Mesh.box((6, 6), comm=PETSc.COMM_SELF), physics, degree=1, backend="sipg_gpu")
    problem.snes.getKSP().setTolerances(max_it=3)
    with pytest.raises(SolveError, match="a step inside of cells costs many iterations"):
        problem.solve()
