"""Polytopes on both sides of an interface between materials cost the order of convergence: a warning says so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from petsc4py import PETSc

import petsc_hdg as fe

STEP = "for (d = 0; d < dim; ++d) f1[d] = (x[0] < 0.5 ? 1000 : 1)*u_x[d];"
CELLS = "for (d = 0; d < dim; ++d) f1[d] = a[0]*u_x[d];"


def right(x: np.ndarray) -> np.ndarray:
    """Number of the material at places [place, dim]."""
    return (x[:, 0] > 0.5).astype(int)


def thirds(x: np.ndarray) -> np.ndarray:
    """Number of the block at places [place, dim]: three along the first axis, two along the second one."""
    return (np.floor(3 * x[:, 0]) + 3 * np.floor(2 * x[:, 1])).astype(int)


def bar(f1: str, groups=None) -> fe.Problem:
    """Three by two polytopes of a square, or polytopes within groups; f1 as text, or with a coefficient per cell."""
    square = fe.Mesh.box((6, 4), simplex=True, comm=PETSc.COMM_SELF)
    mesh = fe.agglomerate(square, groups=thirds) if groups is None else fe.agglomerate(square, 6, groups)
    values = {"kappa": fe.Auxiliary(1, "cell")} if f1 == CELLS else {}
    clamp = [fe.Dirichlet("boundary", 0.0)]
    physics = fe.Physics({"u": 1}, "f0[0] = -1;", f1, boundary=clamp, auxiliary=values, name="bar")
    problem = fe.Problem(mesh, physics, backend="poly_gpu", degree=1)
    if values:
        problem.set_auxiliary("kappa", lambda x: 1.0 + 9.0 * (x[..., 0] > 0.5))
    return problem


@pytest.mark.parametrize("f1, factor", [(STEP, r"1e\+03"), (CELLS, "10")])
def test_polytopes_across_an_interface_are_told_of_once(f1, factor):
    problem = bar(f1)
    with pytest.warns(UserWarning, match=f"up to {factor} within 2 of 6 polytopes .*groups=…"):
        problem.create_snes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem.create_snes()
        bar(f1, right).create_snes()
