"""Problems whose solution is known up to a constant: balanced data are solved, others refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from petsc4py import PETSc

from petsc_hdg.errors import SolveError
from petsc_hdg.mesh import Mesh
from petsc_hdg.options import BACKENDS, Options
from petsc_hdg.physics import Neumann, Physics
from petsc_hdg.problem import Problem
from petsc_hdg.problem.linear import compatibility

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
    jacobian = insulated.callbacks.jacobian
    assert len(jacobian.getNullSpace().getVecs()) == 1 and jacobian.getNullSpace().test(jacobian)


def test_data_that_do_not_balance_are_refused():
    with pytest.raises(SolveError, match="has no solution: .* sum to -?1.000e[+]00"):
        problem("1.0", 0.0).solve()


SMOOTH = "-2*x[0]*exp(x[1]) + PetscSqr(PETSC_PI)*cos(PETSC_PI*x[0])*cos(PETSC_PI*x[1])"  # ∫ = -(e - 1)


def insulated_by(backend: str, source: str, out: float, shape=(8, 8), **options) -> Problem:
    boundary = [Neumann("right", f"g[0] = {out!r};")]
    physics = Physics({"u": 1}, f"f0[0] = -({source});", FLUX, boundary=boundary, name="insulated")
    given = Options(**{"backend": backend, "degree": 1, "check_kernels": False, **options})
    return Problem(Mesh.box(shape, comm=PETSc.COMM_SELF), physics, given)


@pytest.mark.full
@pytest.mark.parametrize("backend", BACKENDS)
def test_data_that_nearly_balance_are_told_with_the_difference(backend):
    """A source of 1.05 and -1 through the right side: 0.05, which is 5 % or less of the parts."""
    nearly = insulated_by(backend, "-1.05", 1.0, degree=2)
    with pytest.warns(UserWarning, match=r"'insulated', which .* must balance, sum to -?5\.000e-02, [1-5]\.?\d* % of"):
        u = nearly.solve()
    with pytest.warns(UserWarning, match=r"sum to -?5\.000e-02, [1-5]\.?\d* % of"):
        # little else is left of the residual
        compatibility.check(nearly, u)


@pytest.mark.full
@pytest.mark.parametrize("degree, shape, precision", [(1, (4, 4), "single"), (2, (16, 16), "double")])
@pytest.mark.parametrize("backend", BACKENDS)
def test_quadrature_of_smooth_data_is_not_told(backend, degree, shape, precision):
    smooth = insulated_by(backend, SMOOTH, float(np.e - 1), shape, degree=degree, precision=precision)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zero = smooth.create_vec()
        compatibility.check(smooth, zero)


def test_rounding_is_no_imbalance():
    """At a solution nothing but rounding is left of the residual."""
    smooth = insulated_by("cg_gpu", SMOOTH, float(np.e - 1), (16, 16), degree=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        u = smooth.solve()
        compatibility.check(smooth, u)


def test_a_reaction_needs_no_balance():
    """u = 1 solves u - Δu = 1 without any condition."""
    physics = Physics({"u": 1}, "f0[0] = u[0] - 1.0;", FLUX, name="reaction")
    u = Problem(Mesh.box((4, 4), comm=PETSc.COMM_SELF), physics, Options(degree=1)).solve()
    assert np.abs(u.getArray() - 1.0).max() < 1e-9
