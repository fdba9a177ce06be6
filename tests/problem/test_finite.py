"""Solutions that are not finite are refused whatever the solver says: direct ones ask for no norm."""

from __future__ import annotations

import pytest
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.errors import SolveError

FLUX = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
DIRECT = {"ksp_type": "preonly", "pc_type": "lu"}
TEXTS = {"1e400": "f0[0] = u[0] - 1e400;", "exp": "f0[0] = -exp(1000*(1 + x[0]));"}


def made(f0: str, backend: str = "cg_gpu", **settings) -> fe.Problem:
    physics = fe.Physics({"u": 1}, f0, FLUX, boundary=[fe.Dirichlet("boundary", 0.0)])
    mesh = fe.Mesh.box((3, 3), comm=PETSc.COMM_SELF)
    return fe.Problem(mesh, physics, backend=backend, check_kernels=False, **settings)


@pytest.mark.full("poly_gpu", "sipg_gpu")
@pytest.mark.parametrize("backend", ["cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu"])
@pytest.mark.parametrize("name", TEXTS)
def test_direct_solvers_return_no_infinite_solution(backend, name):
    with (
        petsc_options(**DIRECT),
        pytest.raises(SolveError, match="^the solver came to no solution: the residual is not"),
    ):
        made(TEXTS[name], backend).solve()


def test_runs_in_time():
    problem = made("f0[0] = u_t[0] - (t > 0.15 ? 1e400 : 1.0);")
    with petsc_options(**DIRECT), pytest.raises(SolveError, match="not a finite number"):
        problem.solve_in_time(problem.interpolate(0.0), 0.3, 0.1)


def test_large_numbers_are_finite():
    """Their squares are not."""
    with petsc_options(**DIRECT):
        u = made("f0[0] = -1e200;").solve()
    assert 1e197 < u.norm(PETSc.NormType.INFINITY) < 1e200
