"""PETSc's Jacobians by differences of residuals, which fill an assembled matrix, colours or not, for each scheme."""

from __future__ import annotations

import pytest
from petsc4py import PETSc
from petsc_options import petsc_options

from petsc_hdg import Dirichlet, Mesh, Physics, Problem, SolveError

DEGREES = {"cg_gpu": 2, "hdg_gpu": 1, "sipg_gpu": 1, "poly_gpu": 1}


def problem_of(backend: str) -> Problem:
    physics = Physics(
        {"u": 1},
        f0="f0[0] = u[0]*u[0]*u[0] - 1;",
        f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[Dirichlet("boundary", "g[0] = x[0];")],
    )
    return Problem(Mesh.box([2, 2], simplex=True), physics, backend=backend, degree=DEGREES[backend])


@pytest.mark.parametrize("backend", DEGREES)
@pytest.mark.full
def test_differences_converge_as_derivatives_do(backend):
    """By `solve`, and by a SNES of the user's own: the same solution in as many steps of Newton's method."""
    problem = problem_of(backend)
    expected, steps = problem.solve(), problem.newton_iterations
    for option in ("snes_fd", "snes_fd_color"):
        with petsc_options(**{option: ""}):
            other = problem_of(backend)
            found = other.solve()
            snes = PETSc.SNES().create(other.comm)
            other.attach(snes)
            snes.setFromOptions()
            attached = other.create_vec()
            snes.solve(None, attached)
        assert abs(other.newton_iterations - steps) <= 1 and snes.getConvergedReason() > 0
        for u in (found, attached):
            u.axpy(-1.0, expected)
            assert u.norm() < 1e-6 * expected.norm()


def test_differences_need_entries():
    with petsc_options(snes_fd="", fe_pmat="conforming"), pytest.raises(SolveError, match="zeroEntries.*-fe_pmat aij"):
        problem_of("sipg_gpu").solve()
