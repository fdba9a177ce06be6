"""Continuous elements of degrees 5 to 9, on two levels by default."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_meshes import box_mesh
from sample_physics import smooth_poisson

from petsc_hdg.discretizations import ContinuousGalerkin
from petsc_hdg.options import Options
from petsc_hdg.physics import library
from petsc_hdg.problem import Problem

pytestmark = pytest.mark.full

SCRIPT = Path(__file__).with_name("run_high_degrees.py")
TIGHT = {"ksp_rtol": "1e-13"}


def solved(cell, faces, degree, physics=None, amplitude=0.15, **settings):
    """Problem and solution on a mesh, distorted unless `amplitude` is 0, whose cells are turned at random."""
    settings = {"check_kernels": False, **settings}
    mesh = box_mesh(cell, faces, amplitude=amplitude, comm=PETSc.COMM_SELF)
    problem = Problem(mesh, physics or smooth_poisson(), Options(degree=degree, **settings))
    with petsc_options(**TIGHT):
        return problem, problem.solve()


@pytest.mark.parametrize("cell, degree, faces, most", [
    ("quadrilateral", 6, [(2, 2), (4, 4)], 25), ("hexahedron", 6, [(1, 1, 1), (2, 2, 2)], 25),
    ("triangle", 6, [(2, 2), (4, 4)], 40), ("tetrahedron", 6, [(1, 1, 1), (2, 2, 2)], 50),
])  # fmt: skip
def test_orders_and_iterations(cell, degree, faces, most):
    runs = [solved(cell, n, degree, amplitude=0) for n in faces]
    coarse, fine = (problem.errors(u) for problem, u in runs)
    orders = [np.log2(coarse[norm] / fine[norm]) for norm in ("L2", "H1")]
    for problem, _ in runs:
        is_tensor = cell in ("quadrilateral", "hexahedron")
        assert (problem.discretization.variant == "tensor") == is_tensor and problem.linear_iterations <= most
    assert runs[1][0].pmat == "conforming"
    assert orders[0] > degree + 1 - 0.7 and orders[1] > degree - 0.7


def test_degree_9_reaches_rounding():
    problem, u = solved("quadrilateral", (2, 2), 9, amplitude=0)
    assert problem.errors(u)["L2"] < 5e-13 and problem.linear_iterations <= 30


@pytest.mark.parametrize("physics", [library.minimal_surface(), smooth_poisson()], ids=["nonlinear", "linear"])
def test_kernels_agree_with_numpy_and_the_assembled_matrix_gives_the_same(physics):
    two_levels, u = solved("quadrilateral", (2, 2), 6, physics, check_kernels=True)
    assembled, v = solved("quadrilateral", (2, 2), 6, physics, pmat="aij")
    assert (two_levels.pmat, assembled.pmat) == ("conforming", "aij")
    assert (u - v).norm() <= 1e-7 * max(v.norm(), 1e-3)


def test_the_default():
    stokes = library.stokes(2)
    mesh = box_mesh("quadrilateral", comm=PETSc.COMM_SELF)
    for degree, pmat in ((1, "aij"), (2, "conforming")):
        assert Problem(mesh, smooth_poisson(), Options(degree=degree)).pmat == pmat
    assert Problem(mesh, stokes, Options(degree=2)).pmat == "aij"  # no first-order subspace of two degrees
    assert ContinuousGalerkin.degrees == (1, 9)
    with petsc_options(pc_type="lu"):
        assert Problem(mesh, smooth_poisson(), Options(degree=5)).pmat == "aij"
    with petsc_options(pc_type="jacobi"):
        assert Problem(mesh, smooth_poisson(), Options(degree=5)).pmat == "none"


@pytest.mark.parametrize("degree, settings, pmat", [
    (4, {}, "aij"), (5, {}, "conforming"), (2, {"pmat": "conforming"}, "conforming"),
])  # fmt: skip
def test_solvers_of_the_users_own_find_a_matrix(degree, settings, pmat):
    mesh = box_mesh("quadrilateral", comm=PETSc.COMM_SELF)
    problem = Problem(mesh, smooth_poisson(), Options(degree=degree, check_kernels=False, **settings))
    snes, u = PETSc.SNES().create(PETSc.COMM_SELF), problem.create_vec()
    problem.attach(snes)
    assert problem.pmat == pmat
    if pmat == "aij":
        snes.getKSP().getPC().setType("lu")
    snes.setTolerances(rtol=1e-9)
    snes.solve(None, u)
    assert snes.getConvergedReason() > 0 and problem.errors(u)["L2"] < 1e-3


def test_ranks_agree(mpirun):
    one, two = (json.loads(mpirun(n, SCRIPT).stdout) for n in (1, 2))
    for cell in one:
        assert abs(two[cell]["iterations"] - one[cell]["iterations"]) <= 4
        assert [two[cell][k] for k in ("L2", "H1")] == pytest.approx([one[cell][k] for k in ("L2", "H1")], rel=1e-3)
