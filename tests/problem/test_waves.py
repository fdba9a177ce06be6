"""Waves that the cells are too large for are told of."""

from __future__ import annotations

import warnings

import pytest
from petsc4py import PETSc

import petsc_hdg as fe

FLUX = "for (d = 0; d < dim; ++d) f1[d] = 4*u_x[d];"


def wave(backend: str, degree: int, k: float, n: int = 16) -> fe.Problem:
    """A plane wave of length 2π / k along the diagonal of the square."""
    exact = f"u[0] = sin({k}*(0.8*x[0] + 0.6*x[1]) + 0.4);"
    physics = fe.Physics(
        {"u": 1}, f"f0[0] = -4*{k * k}*u[0];", FLUX, boundary=[fe.Dirichlet("boundary", "exact")], exact=exact
    )
    mesh = fe.Mesh.box((n, n), simplex=False, comm=PETSc.COMM_SELF)
    return fe.Problem(mesh, physics, backend=backend, degree=degree)


@pytest.mark.full("sipg_gpu")
@pytest.mark.parametrize("backend", ["cg_gpu", "sipg_gpu"])
def test_coarse_cells_are_told_of_once(backend):
    problem = wave(backend, 1, 20.7)
    with pytest.warns(
        UserWarning, match=r"length 0.3, that is 4.9 cells of degree 1: .*; take -fe_degree 3 or smaller"
    ):
        u = problem.solve()
    assert problem.errors(u)["L2"] > 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem.create_snes()


@pytest.mark.full("poly_gpu")
@pytest.mark.parametrize("backend", ["cg_gpu", "poly_gpu"])
def test_no_degree_is_named_that_the_scheme_does_not_take(backend):
    with pytest.warns(UserWarning, match="phase errors .*; take smaller cells$"):
        wave(backend, 1, 60.0, 4).create_snes()


@pytest.mark.full("hdg_gpu")
@pytest.mark.parametrize("backend, degree, k", [("cg_gpu", 3, 20.7), ("cg_gpu", 1, 5.0), ("hdg_gpu", 1, 12.0)])
def test_others_are_not(backend, degree, k):
    problem = wave(backend, degree, k)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem.create_snes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert problem.errors(problem.solve())["L2"] < 0.1
