"""The stabilization of hdg_gpu reaches the kernels however it is given, follows constants, and must be positive."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import direct_solver, petsc_options

import petsc_hdg as fe
from petsc_hdg.discretizations.condensed.oracle import CondensedOracle

FLUX = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"


def physics(stabilization=None, source="u[0] - 1") -> fe.Physics:
    conditions = [fe.Dirichlet("left", "g[0] = x[1];"), fe.Robin("right", "f0[0] = kappa * u[0];")]
    return fe.Physics(
        {"u": 1},
        f"f0[0] = {source};",
        FLUX,
        constants={"kappa": 2.0},
        boundary=conditions,
        stabilization=stabilization,
    )


def trace(tau, stabilization=None, source="u[0] - 1", **constants) -> np.ndarray:
    """The trace for `-hdg_tau tau`."""
    with petsc_options(**direct_solver(), **({"hdg_tau": tau} if tau else {})):
        mesh = fe.Mesh.box((3, 2), comm=PETSc.COMM_SELF)
        problem = fe.Problem(mesh, physics(stabilization, source), backend="hdg_gpu", degree=1, check_kernels=False)
        if constants:
            problem.set_constants(**constants)
        return problem.solve().array.copy()


@pytest.fixture(scope="module")
def with_two() -> np.ndarray:
    return trace("2")


@pytest.mark.full
@pytest.mark.parametrize(
    "tau, stabilization",
    [("kappa", None), ("tau[0] = 1.0 + 1;", None), ("auto", 2), (None, "tau[0] = kappa;"), ("2", "7"), ("kappa", "7")],
)
def test_ways_to_give_one(tau, stabilization, with_two):
    np.testing.assert_allclose(trace(tau, stabilization), with_two, rtol=1e-10)


@pytest.mark.parametrize("tau", ["3", "1 + fabs(n[0])", "auto"])
def test_it_matters(tau, with_two):
    assert np.abs(trace(tau) - with_two).max() > 1e-4


def test_it_sees_the_wave_number():
    """The diffusivity over the mesh's extent, and k of -Δu - k²u = 1: without it waves on triangles are wrong."""
    np.testing.assert_allclose(trace("auto", source="-u[0] - 1"), trace("2", source="-u[0] - 1"), rtol=1e-10)


def test_it_follows_constants(with_two):
    np.testing.assert_allclose(trace("6 / kappa", kappa=4.0), trace("1.5", kappa=4.0), rtol=1e-10)


@pytest.mark.parametrize("tau", ["x[0] - 0.5", "0 * x[0]"])
def test_it_must_be_positive(tau):
    with pytest.raises(
        fe.PetscHdgError, match="tau is not positive and finite on a facet of cell .*; give -hdg_tau a number or"
    ):
        trace(tau)


@pytest.mark.parametrize(
    "f0, f1", [("u[0] + 0.1*u_x[0] + 0.1*u_x[1] - 1", None), ("u[0] - 1", "f1[0] = f1[1] = -0.1*u[0];")]
)
def test_rounding_counts_as_zero(f0, f1):
    """Along the diagonals of squares cut in two n·v is what device and numpy round differently: τ is 1 by both."""
    wind = fe.Physics({"u": 1}, f"f0[0] = {f0};", f1, boundary=[fe.Dirichlet("boundary", 1.0)])
    with petsc_options(ksp_type="preonly", pc_type="lu"):
        problem = fe.Problem(fe.Mesh.box((3, 3), comm=PETSc.COMM_SELF), wind, backend="hdg_gpu", degree=1)
        problem.solve()
    operator = problem.operator
    oracle, given = CondensedOracle(operator.discretization), [(c, operator.aux_rows[:, c]) for c in range(18)]
    places = [(oracle._facet_points(c, f, aux), 0.0, operator.constants, (c, f)) for c, aux in given for f in range(3)]
    assert np.min([oracle.tau(*place) for place in places]) > 1e-3


def test_sound_at_rest():
    """Along an axis a component of the velocity takes no part: entries that are rounding show in no speed of a device
    or of numpy, and the kernels agree."""
    flux = "f1[0] = -u[1]; f1[1] = -u[2]; f1[2] = f1[5] = -u[0]; f1[3] = f1[4] = 0;"
    sound = fe.Physics(
        {"u": 3}, "for (c = 0; c < 3; ++c) f0[c] = u[c] - x[0];", flux, boundary=[fe.Dirichlet("boundary", 1.0)]
    )
    with petsc_options(ksp_type="preonly", pc_type="lu"):
        problem = fe.Problem(fe.Mesh.box((4, 4), comm=PETSc.COMM_SELF), sound, backend="hdg_gpu", degree=1)
        assert np.isfinite(problem.solve().norm())
