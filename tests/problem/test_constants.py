"""Problems whose solution is known up to a constant: balanced data are solved, others refused."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc

from petsc_hdg.errors import SolveError
from petsc_hdg.mesh import Mesh
from petsc_hdg.options import Options
from petsc_hdg.physics import Neumann, Physics
from petsc_hdg.problem import Problem

FLUX = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"


def problem(source: str, out: float) -> Problem:
    """-Δu = source on the unit square with flux `out` through the right side, none elsewhere."""
    boundary = [Neumann("right", f"g[0] = {out};")]
    physics = Physics({"u": 1}, f"f0[0] = -({source});", FLUX, boundary=boundary, name="insulated")
    return Problem(Mesh.box((8, 8), comm=PETSc.COMM_SELF), physics, Options(degree=2))


def test_balanced_data_are_solved_up_to_a_constant():
    """u = x²/2 + constant solves -Δu = -1 with ∂u/∂x = 1 at x = 1."""
    insulated = problem("-1.0", 1.0)
    u = insulated.solve()
    expected = insulated.interpolate({"u": lambda x: 0.5 * x[..., 0] ** 2})
    difference = u.getArray() - expected.getArray()
    assert np.ptp(difference) < 1e-7
    assert insulated.callbacks.jacobian.getNullSpace().hasConstant()


def test_data_that_do_not_balance_are_refused():
    with pytest.raises(SolveError, match="has no solution: .* sum to -?1.000e[+]00"):
        problem("1.0", 0.0).solve()


def test_a_reaction_needs_no_balance():
    """u = 1 solves u - Δu = 1 without any condition."""
    physics = Physics({"u": 1}, "f0[0] = u[0] - 1.0;", FLUX, name="reaction")
    u = Problem(Mesh.box((4, 4), comm=PETSc.COMM_SELF), physics, Options(degree=1)).solve()
    assert np.abs(u.getArray() - 1.0).max() < 1e-9
