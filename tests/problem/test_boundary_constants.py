"""Constants with a value for each boundary: by every scheme, changed without another text, in integrals, refused."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from run_derived import BACKENDS
from sample_meshes import box_mesh

from petsc_hdg.errors import PhysicsError
from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Neumann, Physics, Robin
from petsc_hdg.problem import Problem

SIDES = ("left", "right")


def wall(**given) -> Physics:
    """Heat through a wall between air of two temperatures, with a film on each side."""
    films = [Robin(side, "h*(T - air)") for side in SIDES]
    constants = {"h": {"left": 2.0, "right": 8.0}, "kappa": 0.5, "air": {"left": 0.0, "right": 1.0}}
    return Physics(**{"fields": {"T": 1}, "f1": "kappa*T_x[d]", "constants": constants, "boundary": films} | given)


def drop(left: float, right: float) -> tuple[float, float]:
    """Temperatures of both faces of the wall by resistances in series."""
    flux = 1 / (1 / left + 1 / 0.5 + 1 / right)
    return flux / left, 1 - flux / right


@pytest.mark.parametrize("backend", BACKENDS)
def test_films_of_a_wall(backend):
    options = Options(degree=1, backend=backend, check_kernels=False)
    problem = Problem(box_mesh("triangle", comm=PETSc.COMM_SELF), wall(), options)
    assert problem.physics.constant_names[0] == "kappa" and len(problem.physics.constant_names) == 5
    digest, films = problem.physics.digest, {"left": 2.0, "right": 8.0}
    for change in ({"left": 2.0}, {"left": 5.0}, 3.0):
        problem.set_constants(h=change)
        films = films | (change if isinstance(change, dict) else dict.fromkeys(films, change))
        T, faces = problem.solve(), dict(zip(SIDES, drop(**films), strict=True))
        values = problem.at(T, [[0.0, 0.3], [1.0, 0.6]])["T"].ravel()
        assert problem.physics.digest == digest and values == pytest.approx(list(faces.values()), abs=1e-6)
        for side in SIDES:
            lost = films[side] * (faces[side] - (side == "right"))
            assert problem.integral("h*(T - air)", T, over=side) == pytest.approx(lost, abs=1e-6)
            mean = problem.field("h*T + 0*n[0]", T, over=side).means()
            assert mean == pytest.approx(np.full(mean.shape, films[side] * faces[side]), abs=1e-6)
    other = problem.with_options(degree=2).physics
    assert dict(other.constants) == dict(problem.physics.constants) == dict(Physics.with_constants(other).constants)
    assert other.constants["h on left"] == 3.0 and "air on right = 1" in repr(other)


def test_numbers_count_the_constants_of_all_places_first():
    fluxes = [Neumann("left", "constants[0]*c1"), Neumann("right", "c1"), Dirichlet("top", 0.0)]
    constants = {"c1": {"left": 7.0, "right": 11.0}, "c0": 3.0}
    physics = wall(constants=constants, boundary=fluxes, f1="T_x[d]").interpreter(2)
    found = [physics.pw_boundary(place, [0.0], None, [[0, 0]], None, None, 0, [0, 0], [1, 0])[0] for place in (0, 1)]
    assert np.ravel(found) == pytest.approx([-21, -11])


WRONG = {
    "'h' cannot be used here: it has values on left, right; use it in conditions there": {"f0": "h*T"},
    "constant has a value on 'lfet', which no condition is on; .*\\(left\\)": {
        "constants": {"kappa": 1.0, "air": 0.0, "h": {"lfet": 1.0}},
        "boundary": Robin("left", "T"),
    },
    "constant 'h on left' is 'x'; give a number": {"constants": {"h": {"left": "x"}}},
    "constant 'h' is {}; give a number, or a dict of names of boundaries": {"constants": {"h": {}}},
    "constant 'h' is {1: 2.0}; give a number, or a dict": {"constants": {"h": {1: 2.0}}},
    "constant cannot be called 'u_x'": {"constants": {"u_x": {"left": 1.0}}},
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_refused(message):
    with pytest.raises(PhysicsError, match=message):
        wall(**WRONG[message])


@pytest.mark.parametrize("change", [{"h": {"top": 1.0}}, {"kappa": {"left": 1.0}}, {"g": 1.0}])
def test_changes_that_are_refused(change):
    with pytest.raises(
        PhysicsError, match="has no constant '.*'; its constants are: kappa, h on left, h on right, air on"
    ):
        wall().with_constants(**change)
