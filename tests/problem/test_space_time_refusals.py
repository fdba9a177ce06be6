"""What space-time slabs refuse, and how they fail: in one sentence, on all ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_space_time import blobs, heat, problem_of

import petsc_hdg as fe
from petsc_hdg.errors import OptionError, PhysicsError
from petsc_hdg.problem import SpaceTime

ROOT = Path(__file__).resolve().parents[2]
HEAT = heat()

REFUSED = [
    ({"degree": 4}, OptionError, "-poly_time_degree is 4; give 0 to 3"),
    ({"space": "prism"}, OptionError, "-poly_time_space is .prism.; give tensor or total"),
    ({"points": 1}, OptionError, "1 point in time cannot hold degree 1; give at least 2"),
    (
        {"local_steps": np.ones(3, int)},
        OptionError,
        r"shape \(3,\) .* at least 1 for each polytope of this rank, which has 7",
    ),
    ({"local_steps": 0}, OptionError, "one integer of at least 1"),
    ({"local_steps": np.ones(7)}, OptionError, "type float64"),
]


@pytest.mark.parametrize("settings, kind, message", REFUSED)
def test_settings_that_are_refused(settings, kind, message):
    problem = problem_of(HEAT, blobs, 1, check_kernels=False)
    with pytest.raises(kind, match=message):
        SpaceTime(problem, **settings)


def test_what_is_refused():
    steady = fe.Physics({"u": 1}, f0="f0[0] = 1;", f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];", name="steady")
    settings = {"faces": 2, "check_kernels": False}
    with pytest.raises(PhysicsError, match="physics 'steady' has no u_t"):
        SpaceTime(problem_of(steady, None, 1, backend="cg_gpu", **settings))
    continuous = problem_of(HEAT, None, 1, backend="cg_gpu", **settings)
    with pytest.raises(OptionError, match="total degree need poly_gpu"):
        SpaceTime(continuous, space="total")
    with pytest.raises(OptionError, match="local time steps are those of polytopes"):
        SpaceTime(continuous, local_steps=2)
    with pytest.raises(OptionError, match="hdg_gpu eliminates unknowns"):
        SpaceTime(problem_of(steady, None, 1, backend="hdg_gpu", **settings))
    space_time = SpaceTime(continuous)
    with pytest.raises(OptionError, match="a slab of length -1 was asked for"):
        space_time.step(continuous.create_vec(), 1.0, 0.0)
    with pytest.raises(OptionError, match="The number of slabs of space-time is given as 0; give a whole number"):
        space_time.march(continuous.create_vec(), 0.0, 1.0, 0)


def test_options_are_the_defaults():
    with petsc_options(poly_time_degree="2", poly_time_space="total"):
        problem = fe.Problem(fe.Mesh.box((2, 2), comm=PETSc.COMM_SELF), HEAT, backend="poly_gpu", check_kernels=False)
    space_time = SpaceTime(problem)
    assert space_time.degree == 2 and space_time.num_unknowns == 8 * (3 + 1)


def test_ranks_fail_alike_in_a_slab(mpirun, tmp_path):
    """A rank fails at the end of a slab's solve, where the others find no fault: all get its error."""
    script = tmp_path / "slab.py"
    script.write_text(FAILING)
    assert "alike on 2 ranks" in mpirun(2, script, timeout=100).stdout


FAILING = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests" / "problem")!r}, {str(ROOT / "tests")!r}]
from mpi4py import MPI
from petsc_hdg import errors, run
from petsc_hdg.problem import SpaceTime
from sample_space_time import blobs, heat, problem_of

def monitor(snes, step, norm):
    if MPI.COMM_WORLD.rank == 1 and step == 1:
        raise errors.OptionError("the user's own")

def main():
    problem, alike = problem_of(heat(), blobs, 1, comm=MPI.COMM_WORLD, check_kernels=False), 0
    space_time = SpaceTime(problem)
    space_time.snes.setMonitor(monitor)
    try:
        space_time.march(problem.create_vec(), 0.0, 0.2, 2)
    except errors.OptionError as error:
        alike = "the user's own" in str(error) and error.failed_rank == 1
    found = MPI.COMM_WORLD.allreduce(int(alike))
    if MPI.COMM_WORLD.rank == 0:
        print(f"alike on {{found}} ranks")

run.guarded(main)
"""
