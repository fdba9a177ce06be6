"""What hdg_gpu refuses of a physics, and the stabilization that -hdg_tau gives."""

from __future__ import annotations

import pytest

from petsc_hdg.discretizations.condensed.hdg_checks import check_hdg, stabilized
from petsc_hdg.errors import OptionError, PhysicsError
from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Field, Physics, Robin, library

FLUX = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"


def steady(**others) -> Physics:
    return Physics({"u": 1}, "f0[0] = -1;", FLUX, constants={"kappa": 2.0}, name="mine", **others)


@pytest.mark.parametrize(
    "physics",
    [
        steady(),
        steady(boundary=Robin("a", "f0[0] = u_t[0];")),
        library.neo_hookean(3),
        Physics({"u": 2, "v": 3}, {"u": "f0[0] = u[4];"}),
        Physics({"u": 1}, "f0[0] = u_t[0];", "f1[0] = constants[0]*u_x[0] - u[0];", constants={"k": 1.0}),
        Physics({"u": 1}, "f0[0] = -1;", "for (d = 0; d < dim; ++d) f1[d] = -u_x[d];"),
        Physics({"u": 1, "v": 1}, {"u": "u_t - v", "v": "v_t - 2*v"}, {"u": "u_x[d]"}),
        Physics({"u": 1, "v": 1}, {"u": "v_t", "v": "v - u_t"}, {"u": "u_x[d]"}),
    ],
)
def test_taken(physics):
    check_hdg(physics, 3)


REFUSED = {
    "degrees": (library.stokes(2), "has degree_offset -1 of 'pressure', and all fields of hdg_gpu have the degree of"),
    "other degree": (Physics({"u": Field(1, 1)}, "f0[0] = 1;"), "has degree_offset 1 of 'u'"),
    "components": (Physics({"u": 4, "v": 2}, {"u": "f0[0] = 1;"}), "has 6 components in all its fields.* at most 5"),
    "sign": (
        Physics({"u": 1}, "f0[0] = u_t[0];", FLUX.replace("= u_x", "= k*u_x"), constants={"k": -2.0}),
        "has a negative diffusivity in the equation of 'u', .* with the other sign, or",
    ),
    "sign without a flux": (
        Physics({"u": 1, "v": 1}, {"u": "v_t", "v": "u_t - v"}, {"u": "u_x[d]"}),
        "has no flux and a negative term of its own in the equation of 'v', .* with the other sign, or",
    ),
    "rate without a flux": (
        Physics({"u": 1, "v": 1}, {"u": "u_t", "v": "2*v - v_t"}, {"u": "u_x[d]"}),
        "has no flux and a negative term of its own in the equation of 'v'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    physics, message = REFUSED[name]
    with pytest.raises(PhysicsError, match=message) as caught:
        check_hdg(physics, 2)
    assert "-fe_backend cg_gpu" in str(caught.value) and "\n" not in str(caught.value)


def tau(option, physics=None):
    """tau at n = (0.6, -0.8), with the option."""
    made = stabilized(physics or steady(), Options(hdg_tau=option), 2)
    return made.interpreter(2).pw_stabilization(None, None, 0, [0.5, 0.25], [0.6, -0.8]).tolist()


def test_option():
    assert tau("1 + fabs(n[0])") == [1.6]
    assert tau(" kappa * x[1] ") == [0.5]
    assert tau("3") == tau(3) == tau(3.0) == [3.0]
    assert tau("2", library.neo_hookean(2)) == [2.0, 2.0]
    assert tau("tau[0] = 1; tau[1] = n[0];", library.neo_hookean(2)) == [1.0, 0.6]


def test_option_comes_before_the_physics():
    physics = steady(stabilization="5", boundary=Dirichlet("a", 0.0))
    assert stabilized(physics, Options(), 2) is physics
    assert tau("7", physics) == [7.0] and physics.has_stabilization


BAD = {
    "1 +": "'1 \\+' is not a complete expression of C",
    "1 + kapa": "unknown name 'kapa'; did you mean 'kappa'\\?",
    "-kappa": "tau\\[0\\] is -2.0; a stabilization must be a number above 0",
    "-1": "tau\\[0\\] is -1.0; a stabilization must be",
    "u_x[0]": "'u_x' cannot be used here: a stabilization may depend on",
    "n[2]": "index 2 is outside n, which has 2 element\\(s\\) in 2D",
    "tau[0] = 1": "line 1: the text ends before the statement does",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_option(text):
    with pytest.raises(OptionError) as caught:
        stabilized(steady(), Options(hdg_tau=text, prefix="a_"), 2)
    assert caught.match(f"-a_hdg_tau .*: {BAD[text]}")
    assert str(caught.value).startswith(f"-a_hdg_tau {text}: ") and "\n" not in str(caught.value)
