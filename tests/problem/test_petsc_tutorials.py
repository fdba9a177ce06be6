"""Problems of PETSc's own tutorials, solved with the pointwise functions of their files as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import petsc4py
import pytest

import petsc_hdg as fe
from petsc_hdg.physics import CFile

# Beside PETSc's libraries where it was installed from its source.
TUTORIALS = Path(petsc4py.get_config()["PETSC_DIR"]) / "share" / "petsc" / "examples" / "src" / "snes" / "tutorials"
SIDES = ("left", "bottom", "top")


def _poisson(function: Callable) -> fe.Physics:
    boundary = [fe.Dirichlet(side, "exact") for side in SIDES] + [fe.Robin("right", function("f0_bd_u"))]
    exact = function("quadratic_u_2d")
    return fe.Physics({"u": 1}, function("f0_u"), function("f1_u"), boundary=boundary, exact=exact)


def _elasticity(function: Callable) -> fe.Physics:
    return fe.Physics(
        {"u": 2},
        function("f0_elas_quadratic_u"),
        function("f1_elas_u"),
        constants={"mu": 1.0, "lambda": 2.0},
        boundary=fe.Dirichlet("boundary", "exact"),
        exact=function("quadratic_2d_u"),
    )


def _stokes(function: Callable) -> fe.Physics:
    """With the stress given on the right, which fixes the pressure."""
    stress = "g[0] = constants[0]*4*x[0] - (x[0] + x[1] - 1); g[1] = constants[0]*4*x[0];"
    sides = [fe.Dirichlet(side, "exact", field="velocity") for side in SIDES]
    return fe.Physics(
        {"velocity": 2, "pressure": fe.Field(1, degree_offset=-1)},
        {"velocity": function("f0_quadratic_u"), "pressure": function("f0_p")},
        {"velocity": function("f1_u")},
        constants={"mu": 0.5},
        boundary=[*sides, fe.Neumann("right", stress, field="velocity")],
        exact={"velocity": function("quadratic_u"), "pressure": function("quadratic_p")},
    )


@pytest.mark.skipif(not (TUTORIALS / "ex62.c").is_file(), reason="this PETSc has no tutorials")
@pytest.mark.parametrize(("file", "make"), [("ex12.c", _poisson), ("ex17.c", _elasticity), ("ex62.c", _stokes)])
def test_quadratic_solutions_are_exact(file, make):
    physics = make(lambda name: CFile(TUTORIALS / file, name))
    problem = fe.Problem(fe.Mesh.box((4, 4)), physics, degree=2)
    errors = problem.errors(problem.solve())
    assert errors["L2"] < 1e-7 and errors["H1"] < 1e-6, errors
