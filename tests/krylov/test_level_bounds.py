"""Bounds of Chebyshev smoothers estimated on the device are those that PETSc estimates on the host."""

from __future__ import annotations

import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_meshes import box_mesh
from sample_physics import smooth_poisson

import petsc_hdg
from petsc_hdg.krylov import level_bounds
from petsc_hdg.krylov.level_bounds import LevelBounds
from petsc_hdg.krylov.multigrid_view import chebyshev_bounds, described
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem

ON_DEVICE = {"ksp_type": "python", "ksp_python_type": "petsc_hdg.CG"}
ESTIMATED = "eigenvalues estimated"  # PETSc's word for what it has estimated itself


def small_problem() -> Problem:
    mesh = petsc_hdg.agglomerate(box_mesh("triangle", (16, 16), comm=PETSc.COMM_SELF), 128)
    return Problem(mesh, smooth_poisson(), Options(degree=2, backend="poly_gpu", check_kernels=False))


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


def test_solvers_of_the_same_levels_share_their_estimates(on_device, monkeypatch):
    estimate, made = level_bounds.extreme_eigenvalues, []
    monkeypatch.setattr(level_bounds, "extreme_eigenvalues", lambda *given: made.append(given) or estimate(*given))
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


def test_solvers_on_the_host_estimate_themselves():
    assert all(ESTIMATED in text for text in smoothers(ksp_type="cg"))
