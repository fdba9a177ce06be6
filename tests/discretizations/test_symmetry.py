"""The kind of a derivative where random samples fall outside the domain of a function."""

import pytest

import petsc_hdg as fe
from petsc_hdg.discretizations.symmetry import derivative_kind, has_symmetric_derivative
from petsc_hdg.physics import library

DIFFUSION = "for (d = 0; d < dim; ++d) f1[d] = {}*u_x[d];"


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize(
    ("physics", "kind"),
    [
        (library.neo_hookean, "symmetric"),
        (lambda dim: fe.Physics({"u": 1}, None, DIFFUSION.format("log(a[0])"), auxiliary={"k": 1}), "symmetric"),
        (lambda dim: fe.Physics({"u": 1}, None, DIFFUSION.format("sqrt(u[0])")), "diffusive"),
        (lambda dim: fe.Physics({"u": 1}, "f0[0] = log(u[0])*u_x[0];", DIFFUSION.format("1")), "other"),
    ],
    ids=["neo-Hookean", "logarithm of data", "root of the state", "convection"],
)
def test_samples_outside_the_domain_do_not_make_a_derivative_unsymmetric(physics, kind, dim):
    assert derivative_kind(physics(dim), dim) == kind


def test_regions_that_samples_may_miss():
    """Half of a matrix is stored where all of it is symmetric."""
    far, near = fe.Physics({"u": 1}, "x[0] > 5 ? u_x[0] : 0", "u_x[d]"), fe.Physics({"u": 1}, "-1", "u_x[d]")
    coupled = fe.Physics({"u": 1, "v": 1}, {"u": "x[0] > 5 ? v : 0"}, {"u": "u_x[d]", "v": "v_x[d]"})
    turned = ["u_x[0] + (a[0] == 2 ? u_x[1] : 0)", "u_x[1] - (a[0] == 2 ? u_x[0] : 0)"]  # as by a magnetic field
    magnet = fe.Physics({"u": 1}, "-1", turned, auxiliary={"material": 1})
    assert all(derivative_kind(physics, 2) == "symmetric" for physics in (far, near, coupled, magnet))
    body = library.elasticity(2, E=1.0, nu=0.3)
    found = [has_symmetric_derivative(physics, 2) for physics in (far, near, coupled, body, magnet)]
    assert found == [False, True, False, True, False]
