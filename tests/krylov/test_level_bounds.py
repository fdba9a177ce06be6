"""Bounds of Chebyshev smoothers estimated on the device are those that PETSc estimates on the host."""

from __future__ import annotations

import numpy as np
import pytest
from mpi4py import MPI
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_meshes import box_mesh
from sample_physics import smooth_poisson

import petsc_hdg
from petsc_hdg.device import Arrays, Device
from petsc_hdg.krylov import level_bounds
from petsc_hdg.krylov.level_bounds import LevelBounds
from petsc_hdg.krylov.smoothers import chebyshev_bounds, described
from petsc_hdg.krylov.vectors import Vectors
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem

ON_DEVICE = {"ksp_type": "python", "ksp_python_type": "petsc_hdg.CG"}
ESTIMATED = "eigenvalues estimated"  # PETSc's word for what it has estimated itself


def small_problem() -> Problem:
    mesh = petsc_hdg.agglomerate(box_mesh("triangle", (16, 16), comm=PETSc.COMM_SELF), 128)
    return Problem(mesh, smooth_poisson(), Options(degree=2, backend="poly_gpu", check_kernels=False))


TWO_LEVELS = [("cg_gpu", 3, "quadrilateral"), ("sipg_gpu", 2, "triangle"), ("hdg_gpu", 2, "triangle")]


def two_levels(backend: str, degree: int, cell: str = "triangle") -> Problem:
    mesh = box_mesh(cell, (7, 6), comm=PETSc.COMM_SELF)
    options = Options(degree=degree, backend=backend, pmat="conforming", check_kernels=False)
    return Problem(mesh, smooth_poisson(), options)


def views(snes: PETSc.SNES) -> list[str]:
    """The view of each level's smoother, the coarsest level's left out."""
    pc = snes.getKSP().getPC()
    return [described(pc.getMGSmoother(n)) for n in range(1, pc.getMGLevels())]


def smoothers(**options) -> list[str]:
    """The views after a solve."""
    with petsc_options(**options):
        problem = small_problem()
        problem.solve()
    return views(problem.snes)


@pytest.fixture(scope="module")
def on_device() -> list[str]:
    return smoothers(**ON_DEVICE)


def test_bounds_are_petscs(on_device, monkeypatch):
    monkeypatch.setattr(LevelBounds, "update", lambda *_: None)
    theirs = smoothers(**ON_DEVICE)
    assert len(theirs) == 2 and all(ESTIMATED in text for text in theirs)
    assert not any(ESTIMATED in text for text in on_device)
    for ours, wanted in zip(map(chebyshev_bounds, on_device), map(chebyshev_bounds, theirs), strict=True):
        assert ours == pytest.approx(wanted, rel=2e-6)


@pytest.mark.parametrize("backend, degree, cell", TWO_LEVELS)
def test_bounds_of_the_fine_of_two_levels_are_petscs(backend, degree, cell, monkeypatch):
    found = []
    for update in (LevelBounds.update, lambda *_: None):
        monkeypatch.setattr(LevelBounds, "update", update)
        with petsc_options(**ON_DEVICE):
            problem = two_levels(backend, degree, cell)
            u = problem.solve()
        levels = views(problem.snes)
        are_estimated = {ESTIMATED in view for view in levels}
        bounds = np.array([*map(chebyshev_bounds, levels)])
        found.append((are_estimated, problem.linear_iterations, bounds, u.norm()))
    (ours, iterations, bounds, norm), (theirs, expected, wanted, size) = found
    assert (ours, theirs, iterations) == ({False}, {True}, expected)
    assert bounds == pytest.approx(wanted, rel=2e-6) and norm == pytest.approx(size, rel=1e-6)


def test_noise_is_the_hash_of_petsc_and_does_not_depend_on_ranks():
    arrays = Arrays(Device.select("any"))

    def noise(first: int, count: int) -> np.ndarray:
        vectors = Vectors(arrays, count, MPI.COMM_SELF)
        vectors.run("noise", np.uint32(first), vectors.buffer("w"))
        return arrays.to_host(vectors.buffer("w"), count)

    x = np.arange(1000, dtype=np.uint32)
    for _ in range(2):
        x = ((x >> np.uint32(16)) ^ x) * np.uint32(0x45D9F3B)
    expected = (((x >> np.uint32(16)) ^ x).astype(np.int64) - 2147483648) * 5e-10
    np.testing.assert_array_equal(noise(0, 1000), expected)
    np.testing.assert_array_equal(np.concatenate([noise(0, 300), noise(300, 700)]), expected)


def test_bounds_follow_coefficients():
    """A matrix ten times as large, scaled by its diagonal, has the same bounds; one with a reaction has others."""
    physics = petsc_hdg.Physics(
        {"u": 1},
        "f0[0] = constants[0] * u[0] - 1;",
        "for (d = 0; d < dim; ++d) f1[d] = constants[1] * u_x[d];",
        boundary=[petsc_hdg.Dirichlet("boundary", "g[0] = 0;")],
        constants={"reaction": 0.0, "k": 1.0},
    )
    with petsc_options(**ON_DEVICE):
        given = Options(degree=2, backend="cg_gpu", pmat="conforming", check_kernels=False)
        problem, found = Problem(box_mesh("triangle", (7, 6), comm=PETSc.COMM_SELF), physics, given), []
        for constants in ({}, {"k": 10.0}, {"reaction": 1e4}):
            problem.set_constants(**constants)
            problem.solve()
            found.append(chebyshev_bounds(views(problem.snes)[0])[1])
    assert found[1] == pytest.approx(found[0], rel=1e-5)
    assert abs(found[2] - found[0]) > 0.01 * found[0]


def test_solvers_that_are_gone_are_not_kept():
    with petsc_options(**ON_DEVICE):
        problem = two_levels("cg_gpu", 2)
        first = problem.create_snes()
        first.solve(None, problem.create_vec())
        bounds = problem.callbacks.conforming.bounds
        before = len(bounds._ksps)
        first.destroy()
        second = problem.create_snes()
        second.solve(None, problem.create_vec())
    assert len(bounds._ksps) == before


def test_solvers_of_the_same_levels_share_their_estimates(on_device, monkeypatch):
    estimate, made = level_bounds.Arnoldi.extreme, []
    monkeypatch.setattr(level_bounds.Arnoldi, "extreme", lambda *given: made.append(given) or estimate(*given))
    with petsc_options(**ON_DEVICE):
        problem = small_problem()
        both = [problem.create_snes(), problem.create_snes()]
        both[0].solve(None, problem.create_vec())
        assert len(made) == len(on_device)
        both[1].solve(None, problem.create_vec())
    assert views(both[0]) == views(both[1]) and not any(ESTIMATED in text for text in views(both[1]))


def test_a_users_option_is_petscs(on_device):
    found = smoothers(**ON_DEVICE, mg_levels_2_ksp_chebyshev_esteig="0,0.2,0,1.3")
    assert [ESTIMATED in text for text in found] == [True, True]
    assert chebyshev_bounds(found[1])[1] == pytest.approx(1.3 / 1.1 * chebyshev_bounds(on_device[1])[1], rel=1e-5)


@pytest.mark.parametrize("make", [small_problem, lambda: two_levels("hdg_gpu", 2)])
def test_another_smoother_of_the_users_has_its_own_bounds(make):
    found = []
    for given in ({}, {"mg_levels_pc_type": "jacobi"}):
        with petsc_options(**ON_DEVICE, **given):
            problem = make()
            problem.solve()
        found.append(views(problem.snes)[-1])
    assert [ESTIMATED in text for text in found] == [False, True]
    assert chebyshev_bounds(found[1])[1] != pytest.approx(chebyshev_bounds(found[0])[1], rel=1e-2)


def test_solvers_on_the_host_estimate_themselves():
    assert all(ESTIMATED in text for text in smoothers(ksp_type="cg"))
