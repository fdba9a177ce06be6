"""Bounds of Chebyshev smoothers estimated on the device are those that PETSc estimates on the host."""

from __future__ import annotations

import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_meshes import box_mesh
from sample_physics import smooth_poisson

import petsc_hdg
from petsc_hdg.krylov.level_bounds import LevelBounds
from petsc_hdg.krylov.multigrid_view import chebyshev_bounds, described
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem

ON_DEVICE = {"ksp_type": "python", "ksp_python_type": "petsc_hdg.CG"}
ESTIMATED = "eigenvalues estimated"  # PETSc's word for what it has estimated itself


def smoothers(**options) -> list[str]:
    """The view of each level's smoother after a solve, the coarsest level's left out."""
    mesh = petsc_hdg.agglomerate(box_mesh("triangle", (16, 16), comm=PETSc.COMM_SELF), 128)
    with petsc_options(**options):
        problem = Problem(mesh, smooth_poisson(), Options(degree=2, backend="poly_gpu", check_kernels=False))
        problem.solve()
    pc = problem.snes.getKSP().getPC()
    return [described(pc.getMGSmoother(n)) for n in range(1, pc.getMGLevels())]


@pytest.fixture(scope="module")
def on_device() -> list[str]:
    return smoothers(**ON_DEVICE)


def test_bounds_are_petscs(on_device, monkeypatch):
    monkeypatch.setattr(LevelBounds, "set", lambda *_: [])
    theirs = smoothers(**ON_DEVICE)
    assert len(theirs) == 2 and all(ESTIMATED in text for text in theirs)
    assert not any(ESTIMATED in text for text in on_device)
    for ours, wanted in zip(map(chebyshev_bounds, on_device), map(chebyshev_bounds, theirs), strict=True):
        assert ours == pytest.approx(wanted, rel=2e-6)


def test_a_users_option_is_petscs(on_device):
    found = smoothers(**ON_DEVICE, mg_levels_2_ksp_chebyshev_esteig="0,0.2,0,1.3")
    assert [ESTIMATED in text for text in found] == [True, True]
    assert chebyshev_bounds(found[1])[1] == pytest.approx(1.3 / 1.1 * chebyshev_bounds(on_device[1])[1], rel=1e-5)


def test_solvers_on_the_host_estimate_themselves():
    assert all(ESTIMATED in text for text in smoothers(ksp_type="cg"))
