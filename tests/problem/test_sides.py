"""Natural conditions on facets inside the mesh as the cells of one region see them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from run_sides import FLUXES, JUMP, REFUSED, SCHEMES, halves, problem_of, transmission

import petsc_hdg as fe
from petsc_hdg.errors import MeshError, OptionError, PhysicsError
from petsc_hdg.problem.checkpoints.checkpoint import identity


def check(values: dict) -> None:
    """∫ y² + k y + ¼ along the middle where n_x = 1 and k = 1, and ¼ - ∫ y² + k y where n_x = -1 and k = 3.

    Fluxes out of the low and the high part through the middle are 1 and -3; those of all of a part balance its sources.
    """
    assert max(values["errors"]) < 1e-6
    for scheme, fluxes in values["fluxes"].items():
        np.testing.assert_allclose(fluxes, [1, -3, 1, -3], atol=1e-7, err_msg=scheme)
    np.testing.assert_allclose(values["balances"][:2], 0.0, atol=1e-9)  # cg_gpu and hdg_gpu
    np.testing.assert_allclose(values["balances"][2:], 0.0, atol=1e-8)
    np.testing.assert_allclose(values["integrals"], [13 / 12, -19 / 12], rtol=1e-12)
    assert max(values["gaps"]) < 1e-6 and values["refused"] == len(REFUSED)


@pytest.mark.full("cg_gpu", "hdg_gpu")
@pytest.mark.parametrize("scheme", FLUXES)
def test_a_jump_given_by_one_side(scheme):
    error, fluxes = transmission(scheme, "low")
    assert error < 1e-6
    np.testing.assert_allclose(fluxes, [1, -3, 1, -3], atol=1e-7)


def test_ranks_agree(mpirun):
    check(json.loads(mpirun(3, Path(__file__).with_name("run_sides.py")).stdout.splitlines()[-1]))


def test_facets_of_a_side():
    """Also exterior ones: those of the region's cells."""
    mesh = halves()
    assert [len(mesh.boundary_facets("left", side=side)[0]) for side in ("low", "corner")] == [4, 2]
    cells, _ = mesh.boundary_facets("middle", inside=True, side="high")
    assert len(cells) == 4 and mesh.cell_mask("high")[cells].all()


def test_checkpoints_tell_sides_apart():
    found = {}
    for side in JUMP:
        condition = fe.Robin("middle", "f0[0] = u_x[0]*n[0];", side=side)
        problem = problem_of("cg_gpu", PETSc.COMM_SELF, 1, [fe.Dirichlet("left", 0.0), condition])
        found[side] = identity(problem)
        assert f"Robin on middle from {side}" in repr(problem.physics)
    assert all(found["low"][what] != found["high"][what] for what in ("sides", "physics"))


def test_checkpoints_of_a_source_inside():
    """Its places count, and those of an exterior one are others."""
    walls = ([fe.Dirichlet("left", 0.0), fe.Robin(label, "f0[0] = 1;")] for label in ("middle", "boundary"))
    found = [identity(problem_of("cg_gpu", PETSc.COMM_SELF, 1, each)) for each in walls]
    assert found[0]["sides"] != found[1]["sides"]


@pytest.mark.parametrize("backend", SCHEMES)
def test_laws_that_need_a_side(backend):
    condition = fe.Robin("middle", "f0[0] = u_x[0]*n[0];")
    with pytest.raises(MeshError, match="give side=, the region whose cells see the facets"):
        problem_of(backend, PETSc.COMM_SELF, 1, [fe.Dirichlet("left", 0.0), condition]).solve()


def test_integrals_of_a_side():
    """n, the gradient and k of each side by all schemes, and u of discontinuous ones."""
    for scheme in SCHEMES:
        problem = problem_of(scheme, PETSc.COMM_SELF, 2, [fe.Dirichlet("left", "exact")])
        u = problem.interpolate(lambda x: x[..., 0] + x[..., 1] ** 2)
        found = [problem.integral("a[0]*n[0]*(u_x[0] + u[0])", u, over="middle", side=s) for s in ("low", "high")]
        if scheme not in ("hdg_gpu", "condensed"):
            np.testing.assert_allclose(found, [11 / 6, -11 / 2], rtol=1e-12, err_msg=scheme)
        assert problem.integral("1", u, over="left", side="corner") == pytest.approx(0.5)


def test_fluxes_that_are_refused():
    problem = problem_of("polytopes", PETSc.COMM_SELF, 1, [fe.Dirichlet("left", 0.0)])
    u = problem.create_vec()
    assert problem.flux("left", u, side="corner").shape == (1,)
    with pytest.raises(MeshError, match=r"'middle' holds facets inside polytopes \(2\), through which poly_gpu has no"):
        problem.flux("middle", u, side="low")
    with pytest.raises(MeshError, match="give side=, the region whose cells see the facets"):
        problem.flux("middle", u)
    with pytest.raises(OptionError, match="The side of a flux is given as 3; give a text"):
        problem.flux("middle", u, side=3)
    with pytest.raises(OptionError, match="as the side 'low' sees it was asked for, of no boundary"):
        problem.integral("1", u, side="low")


def test_a_side_is_a_name():
    with pytest.raises(PhysicsError, match="Neumann condition on 'middle': side is 3; give the name of a region"):
        problem_of("cg_gpu", PETSc.COMM_SELF, 1, [fe.Neumann("middle", "g[0] = n[0];", side=3)])
