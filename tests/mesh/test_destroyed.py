"""Owners may destroy a DMPlex when a mesh is made of it, as everywhere in PETSc."""

from __future__ import annotations

import pytest
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.options import BACKENDS, Options


@pytest.mark.full("sipg_gpu", "poly_gpu")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_dm_goes_before_the_problem(backend, tmp_path):
    dm = PETSc.DMPlex().createBoxMesh([3, 3], simplex=False, comm=PETSc.COMM_SELF)
    mesh = fe.Mesh(dm)
    dm.destroy()
    flux = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    physics = fe.Physics({"u": 1}, "f0[0] = -1;", flux, boundary=[fe.Dirichlet("boundary", 0.0)])
    problem = fe.Problem(mesh, physics, Options(backend=backend, degree=1, check_kernels=False))
    u = problem.solve()
    assert problem.integral("1", u) == pytest.approx(1.0)
    assert problem.flux("boundary", u)[0] < -0.3
    problem.write(tmp_path / "u.vtu", u)
    if backend == "hdg_gpu":
        problem.write_trace(tmp_path / "trace.vtu", u)
