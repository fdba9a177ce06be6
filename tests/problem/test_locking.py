"""Nearly incompressible bodies by elements of low degree: too stiff an answer is told of."""

from __future__ import annotations

import warnings

import pytest
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.physics import library


def body(backend: str, degree: int, lame_lambda: float, dim: int = 2) -> fe.Problem:
    """A block that hangs on a wall, μ = 1."""
    weight = "for (d = 0; d < dim; ++d) f0[d] = 1;"
    physics = library.elasticity(dim, weight, lame_lambda=lame_lambda, boundary=[fe.Dirichlet("left", 0.0)])
    mesh = fe.Mesh.box((4,) * dim, simplex=False, comm=PETSc.COMM_SELF)
    return fe.Problem(mesh, physics, backend=backend, degree=degree)


@pytest.mark.full("cg_gpu-2-2", "sipg_gpu", "poly_gpu")
@pytest.mark.parametrize(
    "backend, degree, dim",
    [("cg_gpu", 1, 2), ("cg_gpu", 1, 3), ("cg_gpu", 2, 2), ("sipg_gpu", 1, 2), ("poly_gpu", 1, 2)],
)
def test_elements_that_lock_are_told_of_once(backend, degree, dim):
    problem = body(backend, degree, 5e3, dim)
    told = f"degree {degree} by {backend} may be .*locking.*; -fe_degree {degree + 1} or more, or -fe_backend hdg"
    with pytest.warns(UserWarning, match=told):
        problem.create_snes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem.create_snes()


@pytest.mark.parametrize(
    "backend, degree, lame_lambda", [("cg_gpu", 1, 10.0), ("cg_gpu", 2, 500.0), ("cg_gpu", 3, 5e3), ("hdg_gpu", 1, 5e3)]
)
def test_others_are_not(backend, degree, lame_lambda):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        body(backend, degree, lame_lambda).create_snes()


@pytest.mark.filterwarnings("ignore:physics 'elasticity' resists")
def test_what_is_told_is_so():
    """The mean displacement downwards is smaller than that of second degree, and than that of hdg_gpu."""
    first, second = (
        problem.integral("u[1]", problem.solve()) for problem in (body("cg_gpu", degree, 5e3) for degree in (1, 2))
    )
    other = body("hdg_gpu", 1, 5e3)
    assert abs(first) < 0.8 * abs(second)
    assert other.integral("u[1]", other.solve()) == pytest.approx(second, rel=0.1)
