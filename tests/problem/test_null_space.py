"""Solutions that are known up to constants or rigid motions: found by every scheme, the same on any number of ranks."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sample_meshes import box_mesh

import petsc_hdg as fe
from petsc_hdg.errors import PhysicsError, SolveError
from petsc_hdg.options import BACKENDS, Options
from petsc_hdg.physics import library
from petsc_hdg.problem import Problem
from petsc_hdg.problem.linear.null_space import NullSpace

SCRIPT = Path(__file__).with_name("run_null_space.py")
SOLVED = [(case, backend) for case in ("insulated", "free", "roller") for backend in BACKENDS]
SOLVED.append(("enclosed", "cg_gpu"))
EPS = float(np.finfo(float).eps)


@pytest.fixture(scope="module")
def found(mpirun):
    """{case: {scheme: error}} on so many ranks, which run all cases at once."""
    return cache(lambda ranks: json.loads(mpirun(ranks, SCRIPT).stdout.splitlines()[-1]))


@pytest.mark.parametrize("ranks", (1, 2, 3))
@pytest.mark.parametrize(("case", "backend"), SOLVED)
def test_what_is_left_free(found, case, backend, ranks):
    """The solution that is orthogonal to what is free lies in the space of each scheme: all find it."""
    tolerance = 1e-6 if case == "enclosed" else 1e-9  # of a pressure by GMRES, which stops at 1e-10 of all
    assert found(ranks)[case][backend] < tolerance


def small(physics, cell: str = "triangle", **others) -> Problem:
    return Problem(box_mesh(cell), physics, Options(degree=1, check_kernels=False), **others)


LOADS = {
    "f0[0] = -1.5; f0[1] = 0.0;": r"they have the resultant force 1\.500e[+]00 on 'u' along \(1, 0\); give",
    "f0[0] = x[1] - 0.5; f0[1] = 0.0;": r"they have the resultant moment 8\.333e-02 on 'u' about \(0\.5, 0\.5\); give",
}


@pytest.mark.parametrize("loads", LOADS)
def test_loads_that_do_not_balance_are_refused_with_their_resultant(loads):
    with pytest.raises(SolveError, match=LOADS[loads]):
        small(library.elasticity(2, loads)).solve()


HELD = {
    "nothing": ([], 6),
    "rollers below": ([fe.Dirichlet("front", 0.0, components=[2])], 3),
    "and on the left": ([fe.Dirichlet("front", 0.0, components=[2]), fe.Dirichlet("left", 0.0, components=[0])], 1),
    "a wall": ([fe.Dirichlet("left", 0.0)], 0),
}


@pytest.mark.parametrize("simplex", [True, False])
def test_a_lid_that_slides_along_a_cavity_is_no_imbalance(simplex):
    """Its data have no divergence in any cell: the sum would be compared with rounding. A lid that sucks is refused."""
    lid = {speed: fe.Dirichlet("top", [1.0, speed], field="velocity") for speed in (0.0, 1e-3)}
    walls = {speed: [top, fe.Dirichlet("boundary", 0.0, field="velocity")] for speed, top in lid.items()}
    mesh, options = fe.Mesh.box((8, 8), simplex=simplex), Options(degree=2, check_kernels=False)
    flow = Problem(mesh, library.stokes(2, boundary=walls[0.0]), options)
    smallest, largest = flow.field("velocity", flow.solve(), components="x").extremes()
    assert largest == pytest.approx([1.0]) and -0.22 < smallest[0] < -0.15
    with pytest.raises(SolveError, match="must balance, and they sum to .* in 1 pressure"):
        Problem(mesh, library.stokes(2, boundary=walls[1e-3]), options).solve()


def test_motions_that_conditions_leave_in_space():
    mesh = box_mesh("tetrahedron")
    for boundary, count in HELD.values():
        problem = Problem(mesh, library.elasticity(3, boundary=boundary), Options(degree=1, check_kernels=False))
        modes = NullSpace(problem.discretization, EPS, {}).candidates
        assert len(modes) == count
        for condition in boundary:
            place = np.array([0.3, 0.7, 0.0]) if condition.label == "front" else np.array([0.0, 0.7, 0.2])
            there = problem.callbacks.null_space.modes.at(modes, place)
            assert np.abs(there[list(condition.components or range(3))]).max(initial=0.0) < 1e-12


def test_fields_that_exchange_share_a_constant():
    """Two concentrations with a flow between them, and a third by itself with a loss."""
    flux = "for (d = 0; d < dim; ++d) f1[d] = u_x[uOff_x[{}] + d];"
    physics = fe.Physics(
        {"a": 1, "b": 1, "c": 1},
        {"a": "f0[0] = 2*(u[0] - u[1]) - 1;", "b": "f0[0] = 2*(u[1] - u[0]) + 1;", "c": "f0[0] = u[2] - 3;"},
        {name: flux.format(number) for number, name in enumerate("abc")},
    )
    problem = small(physics)
    values = problem.cell_values(problem.solve())
    assert problem.callbacks.null_space.right.shape[0] == 1
    for name, expected in (("a", 0.25), ("b", -0.25), ("c", 3.0)):
        assert np.abs(values[name] - expected).max() < 1e-8


def test_bodies_of_large_strains_turn_with_their_loads():
    """Translations alone are free: the resultant moment of dead loads depends on how a body has turned."""
    sides = [fe.Neumann(side, f"g[0] = {load}; g[1] = 0;") for side, load in (("left", -0.3), ("right", 0.3))]
    problem = small(library.neo_hookean(2, boundary=sides))
    u = problem.solve()
    assert len(problem.callbacks.null_space.right) == len(problem.callbacks.null_space.left) == 2
    assert max(abs(problem.integral(f"u[{c}]", u)) for c in range(2)) < 1e-12
    values = problem.at(u, [[0.2, 0.5], [0.8, 0.5]])["u"]
    assert values[1, 0] - values[0, 0] > 0.05 and abs(values[1, 1] - values[0, 1]) < 0.01


def test_a_balance_law_needs_no_null_space():
    """Flux (1 + u²) ∇u: no constant may be added to a solution, and the source must balance."""
    flux = "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];"
    problem = small(fe.Physics({"u": 1}, "f0[0] = x[0] - 0.5;", flux))
    u, residual = problem.solve(), problem.create_vec()
    assert not len(problem.callbacks.null_space.right) and len(problem.callbacks.null_space.left) == 1
    problem.callbacks.residual(None, u, residual)
    assert residual.norm() < 1e-8
    with pytest.raises(SolveError, match="they sum to 1.000e[+]00"):
        small(fe.Physics({"u": 1}, "f0[0] = 1.0;", flux)).solve()


def test_a_null_space_that_is_given():
    flow = library.stokes(2, boundary=[fe.Dirichlet("boundary", 0.0, field="velocity")])
    made = lambda **given: Problem(box_mesh("triangle"), flow, Options(degree=2, check_kernels=False), nullspace=given)  # noqa: E731
    for given, count in (({"pressure": "constant"}, 1), ({"pressure": "none"}, 0)):
        problem = made(**given)
        problem.solve()
        assert len(problem.callbacks.null_space.right) == count
        assert bool(problem.callbacks.jacobian.getNullSpace().handle) == bool(count)
    with pytest.raises(SolveError, match="nullspace={'velocity': 'rigid'} was given, and the Jacobian maps"):
        made(velocity="rigid").solve()
    for given, message in (
        ({"p": "rigid"}, "the fields are velocity, pressure"),
        ({"pressure": "rigid"}, "1 comp.* 2"),
    ):
        with pytest.raises(PhysicsError, match=message):
            made(**given)


@pytest.mark.parametrize(("backend", "lower"), [("cg_gpu", -1), ("hdg_gpu", 0)])
def test_null_spaces_follow_steps_in_time(backend, lower):
    """The pressure of an enclosed flow is free in each step, which an iteration that is not told of it may not end."""
    physics = fe.Physics(
        {"velocity": fe.Field(2), "pressure": fe.Field(1, degree_offset=lower)},
        {"velocity": "f0[0] = u_t[0] - x[1]; f0[1] = u_t[1];", "pressure": "f0[0] = u_x[0] + u_x[3];"},
        {"velocity": "for (d = 0; d < 4; ++d) f1[d] = u_x[d]; f1[0] -= u[2]; f1[3] -= u[2];"},
        boundary=[fe.Dirichlet("boundary", 0.0, field="velocity")],
    )
    problem = Problem(box_mesh("triangle"), physics, Options(backend=backend, degree=2, check_kernels=False))
    problem.solve_in_time(problem.create_vec(), 0.1, 0.1)
    calls = problem.callbacks
    assert len(calls.null_space.left) == 1 and calls.solved.getNullSpace().test(calls.solved)
    assert not calls.null_space.right[:, :2].any()


RISING = "(1 + 2*t + 3*x[0]*x[0] - 2*x[0]*x[1] + x[1]*x[1])"  # T_t + v·∇T


def low_mach(lower: int) -> fe.Physics:
    """A flow of density 1/T with a pressure of a degree less."""
    return fe.Physics(
        {"v": 2, "p": fe.Field(1, degree_offset=-lower), "T": 1},
        {
            "v": "for (c = 0; c < 2; ++c) f0[c] = u_t[c]/u[3] - 1/(1 + t + x[0] + x[1]) + 3;",
            "p": f"f0[0] = ((u_x[0] + u_x[3]) - (u_t[3] + u[0]*u_x[6] + u[1]*u_x[7])/u[3])/u[3];"
            f" f0[0] += {RISING}/pow(1 + t + x[0] + x[1], 2);",
            "T": f"f0[0] = u_t[3] + u[0]*u_x[6] + u[1]*u_x[7] - {RISING};",
        },
        {
            "v": "for (c = 0; c < 4; ++c) f1[c] = u_x[c] - (c % 3 ? 0 : u[2]);",
            "T": "for (d = 0; d < dim; ++d) f1[d] = u_x[6 + d];",
        },
        boundary=[fe.Dirichlet("boundary", "exact", "v"), fe.Dirichlet("boundary", "exact", "T")],
        exact={
            "v": "u[0] = t + x[0]*x[0] + x[1]*x[1]; u[1] = t + 2*x[0]*x[0] - 2*x[0]*x[1];",
            "p": "u[0] = x[0] + x[1] - 1;",
            "T": "u[0] = 1 + t + x[0] + x[1];",
        },
    )


@pytest.mark.full("hdg_gpu")
@pytest.mark.parametrize("backend", ["cg_gpu", "hdg_gpu"])
def test_enclosed_flow_whose_density_follows_the_state(backend):
    """The pressure is free up to constants, and what the Jacobian's products are orthogonal to follows the state."""
    problem = Problem(fe.Mesh.box((6, 6)), low_mach(int(backend == "cg_gpu")), backend=backend, degree=2)
    u = problem.solve_in_time(problem.interpolate("exact"), 0.05, 0.025)
    assert max(problem.errors(u, 0.05, name)["L2"] for name in ("v", "T")) < 1e-7
    null_space = problem.callbacks.null_space
    assert len(null_space.right) == 1 and not len(null_space.left)
