"""Device Krylov methods by options of a Problem: all schemes, the bytes that a solve copies, null spaces, events."""

from __future__ import annotations

import pytest
from krylov_systems import CONVECTION, SCHEMES
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_meshes import box_mesh
from sample_physics import smooth_poisson

from petsc_hdg import stages
from petsc_hdg.errors import SolveError
from petsc_hdg.operators.vectors import SHAPES
from petsc_hdg.options import Options
from petsc_hdg.physics import Neumann, Physics
from petsc_hdg.problem import Problem

OURS = {"ksp_type": "python", "ksp_python_type": "petsc_hdg.CG"}


def made(backend: str, physics=None, faces=(6, 5), **options) -> Problem:
    options = Options(backend=backend, check_kernels=False, **{**SCHEMES.get(backend, {"degree": 2}), **options})
    return Problem(box_mesh("triangle", faces, seed=3, comm=PETSc.COMM_SELF), physics or smooth_poisson(), options)


@pytest.mark.parametrize("backend", ["sipg_gpu", "hdg_gpu", "cg_gpu", "poly_gpu"])
def test_all_schemes(backend):
    theirs, ours = made(backend), made(backend)
    with petsc_options(ksp_type="cg", pc_type="jacobi", ksp_rtol="1e-10"):
        u = theirs.solve()
    with petsc_options(pc_type="jacobi", ksp_rtol="1e-10", **OURS):
        v = ours.solve()
    assert abs(ours.linear_iterations - theirs.linear_iterations) <= 1 and theirs.linear_iterations > 10
    assert (u - v).norm() < 1e-8 * u.norm()
    context = ours.snes.getKSP().getPythonContext()
    assert context.matrix.on_device and context.vectors.arrays is ours.arrays


def test_newton():
    physics = Physics(
        {"u": 1},
        f0="f0[0] = -1;",
        f1="for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];",
        boundary=smooth_poisson().boundary,
        exact=smooth_poisson().exact,
        name="nonlinear",
    )
    ours, theirs = made("cg_gpu", physics), made("cg_gpu", physics)
    with petsc_options(pc_type="jacobi", ksp_rtol="1e-8", ksp_type="gmres"):
        u = theirs.solve()
    with petsc_options(pc_type="jacobi", ksp_rtol="1e-8", ksp_type="python", ksp_python_type="petsc_hdg.GMRES"):
        v = ours.solve()
    assert theirs.newton_iterations > 2 and ours.newton_iterations == theirs.newton_iterations
    assert (u - v).norm() < 1e-8 * u.norm()


def test_a_solve_copies_right_hand_side_and_solution():
    problem = made("sipg_gpu")
    with petsc_options(pc_type="jacobi", **OURS):
        problem.solve()
        before = {name: dict(counts) for name, counts in problem.arrays.callbacks.items()}
        problem.solve()
    counts, calls = problem.arrays.callbacks["Krylov solve"], before["Krylov solve"]["calls"]
    products = problem.arrays.callbacks["Jacobian product"]["calls"] - before["Jacobian product"]["calls"]
    assert counts["calls"] == calls + 1 and products < 5 < problem.linear_iterations  # a few, for the symmetry
    vector = 8 * problem.num_unknowns
    copied = {way: counts[way] - before["Krylov solve"][way] for way in ("h2d", "d2h")}
    row = 32 * SHAPES[problem.device.is_gpu][1]
    sums = problem.linear_iterations * 2 * row + row
    assert vector <= copied["h2d"] <= 3 * vector and copied["d2h"] <= vector + sums + 4096


def test_constants_in_the_null_space():
    physics = Physics(
        {"u": 1},
        f0="f0[0] = -2*PETSC_PI*PETSC_PI*cos(PETSC_PI*x[0])*cos(PETSC_PI*x[1]);",
        f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[Neumann("boundary", "g[0] = 0;")],
        name="floating",
    )
    ours, theirs = made("cg_gpu", physics), made("cg_gpu", physics)
    with petsc_options(pc_type="jacobi", ksp_rtol="1e-10", ksp_type="cg"):
        u = theirs.solve()
    with petsc_options(pc_type="jacobi", ksp_rtol="1e-10", **OURS):
        v = ours.solve()
    assert abs(ours.integral("u[0]", v)) < 1e-10 and (u - v).norm() < 1e-7 * u.norm()


def test_events_and_flops():
    PETSc.Log.begin()
    problem = made("sipg_gpu")
    with petsc_options(pc_type="jacobi", **OURS):
        problem.solve()
        seen = [PETSc.Log.Event("FeKrylov").getPerfInfo(stages.petsc_stage("solve"))]
        problem.solve()
        seen.append(PETSc.Log.Event("FeKrylov").getPerfInfo(stages.petsc_stage("solve")))
    unknowns = problem.num_unknowns * problem.linear_iterations
    assert seen[1]["count"] == seen[0]["count"] + 1 and seen[1]["flops"] - seen[0]["flops"] > 13 * unknowns


def test_a_failure_is_told_in_our_words():
    problem = made("sipg_gpu", CONVECTION)
    with petsc_options(pc_type="jacobi", ksp_max_it="3", **OURS), pytest.raises(SolveError, match="after 3 iterations"):
        problem.solve()
