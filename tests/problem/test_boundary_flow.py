"""Natural conditions that a flow crosses are told where they magnify errors."""

import warnings

import pytest
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.problem.linear import boundary_flow

IN_FLUX = ("f0[0] = -1;", "for (d = 0; d < dim; ++d) f1[d] = eps*u_x[d]; f1[0] -= u[0];")
IN_SOURCE = ("f0[0] = u_x[0] - 1;", "for (d = 0; d < dim; ++d) f1[d] = eps*u_x[d];")
LEAVES, ENTERS = "the whole flux where the flow leaves", "no value where the flow enters"
VALUE_LEFT, VALUE_RIGHT = fe.Dirichlet("left", 0.0), fe.Dirichlet("right", 0.0)


@pytest.mark.parametrize(
    ("texts", "conditions", "eps", "told"),
    [
        (IN_FLUX, [VALUE_LEFT, fe.Neumann("right", 0.3)], 0.01, f"'right' of physics 'wind' gives {LEAVES}"),
        (IN_FLUX, [VALUE_LEFT, fe.Robin("right", "f0[0] = u[0];")], 0.01, ""),
        (IN_FLUX, [VALUE_LEFT], 1.0, ""),
        (IN_FLUX, [VALUE_LEFT], 0.0, LEAVES),
        (IN_FLUX, [VALUE_LEFT, fe.Robin("right", "f0[0] = u[0];")], 0.0, ""),
        (IN_SOURCE, [VALUE_LEFT], 0.01, ""),
        (IN_SOURCE, [VALUE_RIGHT], 0.01, f"'the rest of the boundary' of physics 'wind' gives {ENTERS}"),
        (IN_SOURCE, [VALUE_RIGHT, fe.Robin("left", "f0[0] = u[0] - 2;")], 0.01, ""),
    ],
)
def test_conditions_that_magnify_errors_are_told(texts, conditions, eps, told):
    physics = fe.Physics({"u": 1}, *texts, constants={"eps": eps}, boundary=conditions, name="wind")
    mesh = fe.Mesh.box((2, 2), comm=PETSc.COMM_SELF)
    problem = fe.Problem(mesh, physics, backend="cg_gpu", degree=1, check_kernels=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        boundary_flow.warn(problem)
        boundary_flow.warn(problem)
    assert len(caught) == bool(told) and all(told in str(one.message) for one in caught)


@pytest.mark.parametrize(
    ("eps", "end", "told"), [(1e-5, 0.5, True), (2.5e-4, 0.5, True), (1e-5, 1e-3, False), (1.0, 0.5, False)]
)
def test_an_outflow_that_lets_nothing_out_is_told_in_time(eps, end, told):
    """Errors grow with time, by |b·n|² T / κ."""
    f0, f1 = IN_FLUX
    physics = fe.Physics({"u": 1}, f0.replace("-1", "u_t[0] - 1"), f1, constants={"eps": eps}, boundary=[VALUE_LEFT])
    problem = fe.Problem(fe.Mesh.box((2, 2), comm=PETSc.COMM_SELF), physics, backend="cg_gpu", degree=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        problem.solve_in_time(problem.create_vec(), end, end)
    assert any(LEAVES in str(one.message) for one in caught) == told


def test_a_flux_lost_at_the_outflow_is_told_by_solve():
    physics = fe.Physics({"u": 1}, *IN_FLUX, constants={"eps": 1e-3}, boundary=[VALUE_LEFT], name="wind")
    problem = fe.Problem(fe.Mesh.box((2, 2), comm=PETSc.COMM_SELF), physics, backend="cg_gpu", degree=1)
    with pytest.warns(UserWarning, match="'the rest of the boundary' of physics 'wind' gives the whole flux"):
        problem.solve()
