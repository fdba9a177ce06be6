"""Auxiliary fields as boundary data: by name and in texts, by all schemes, in time, on ranks; refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from run_auxiliary_conditions import DIFFUSION, SCHEMES, inside, problem_of, quadratic

import petsc_hdg as fe
from petsc_hdg.errors import PhysicsError

SCRIPT = Path(__file__).with_name("run_auxiliary_conditions.py")


@pytest.mark.full("poly_gpu", "sipg_gpu")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_solutions_follow_fields(scheme):
    """A quadratic function is in the spaces; another field gives another solution of the same problem."""
    assert max(quadratic(scheme, PETSc.COMM_SELF)) < 1e-9


@pytest.mark.parametrize("scheme", ["cg_gpu", "condensed", "hdg_gpu"])
def test_cells_beside_a_node_count_alike(scheme):
    assert inside(scheme, PETSc.COMM_SELF) < 1e-20


def test_ranks_agree(mpirun):
    outer, inner = json.loads(mpirun(3, SCRIPT).stdout.splitlines()[-1])
    assert outer.keys() == SCHEMES.keys()
    assert max(max(values) for values in outer.values()) < 1e-9 and max(inner.values()) < 1e-20


def test_a_node_between_cells_has_their_mean():
    """Two squares with 1 and 4 as the value of their cell."""
    problem = problem_of("cg_gpu", fe.Mesh.box((2, 1), simplex=False), [fe.Dirichlet("bottom", "wall")], {"wall": 1})
    problem.set_auxiliary("wall", lambda x: 1.0 + 3.0 * (x[..., 0] > 0.5))
    at = problem.at(problem.solve(), np.array([[0.0, 0.0], [0.25, 0.0], [0.5, 0.0], [1.0, 0.0]]))
    np.testing.assert_allclose(at["u"].ravel(), [1.0, 1.0, 2.5, 4.0], rtol=1e-8)


@pytest.mark.full("hdg_gpu", "poly_gpu", "sipg_gpu")
@pytest.mark.parametrize("scheme", ["cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu"])
def test_data_may_change_between_steps(scheme):
    """u_t = 0 in the cell's mean: after a long step u is what the boundary has."""
    physics = fe.Physics(
        {"u": 1}, "f0[0] = 1e-6*u_t[0];", DIFFUSION, auxiliary={"wall": fe.Auxiliary(1, "nodal")},
        boundary=[fe.Dirichlet("boundary", "g[0] = wall + t;")],
    )  # fmt: skip
    problem, seen = fe.Problem(fe.Mesh.box((2, 2)), physics, degree=2, backend=scheme), []
    problem.set_auxiliary("wall", 1.0)

    def follow(t, u):
        seen.append(problem.integral("u[0]", u, t))
        problem.set_auxiliary("wall", 1.0 + len(seen))

    problem.solve_in_time(problem.interpolate(1.0), 3.0, dt=1.0, monitor=follow)
    np.testing.assert_allclose(seen, [2.0, 4.0, 6.0], rtol=1e-4)


def test_components_by_name():
    """Two components from a field of two, and one of them from a field of one."""
    auxiliary = {"both": fe.Auxiliary(2, "nodal"), "one": fe.Auxiliary(1, "nodal")}
    boundary = [fe.Dirichlet("left", "both"), fe.Dirichlet("right", "one", components=[1])]
    slopes = "for (int i = 0; i < 2*dim; ++i) f1[i] = u_x[i];"
    problem = fe.Problem(
        fe.Mesh.box((2, 2)), fe.Physics({"v": 2}, None, slopes, auxiliary=auxiliary, boundary=boundary)
    )
    problem.set_auxiliary("both", (2.0, 3.0))
    problem.set_auxiliary("one", 5.0)
    found = problem.at(problem.solve(), np.array([[0.0, 0.3], [1.0, 0.3]]))["v"]
    np.testing.assert_allclose(found, [[2.0, 3.0], [2.0, 5.0]], atol=1e-8)


def test_refusals():
    boundary = [fe.Dirichlet("left", "both")]
    with pytest.raises(PhysicsError, match="g is the auxiliary field 'both' of 2 components, and there are 1 to give"):
        fe.Physics({"u": 1}, None, DIFFUSION, auxiliary={"both": 2}, boundary=boundary)
    with pytest.raises(PhysicsError, match="'a_x' cannot be used here: Dirichlet data may depend on x, t, auxiliary"):
        fe.Physics({"u": 1}, None, DIFFUSION, auxiliary={"k": 1}, boundary=[fe.Dirichlet("left", "g[0] = a_x[0];")])
