"""Problems that are given up give matrices and memory back; programs end well wherever their PETSc objects are."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest
from petsc4py import PETSc
from sample_meshes import box_mesh
from sample_physics import smooth_poisson

from petsc_hdg.options import Options
from petsc_hdg.petsc import lifetimes
from petsc_hdg.problem import Problem

HERE = Path(__file__).parent
SCHEMES = ["cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu"]


def made(backend: str, comm) -> Problem:
    problem = Problem(box_mesh("triangle", (4, 3), comm=comm), smooth_poisson(), Options(backend=backend, degree=2))
    problem.solve()
    return problem


@pytest.mark.full
@pytest.mark.parametrize("backend", SCHEMES)
def test_problems_given_up_are_destroyed(backend, monkeypatch):
    for comm in (PETSc.COMM_SELF, PETSc.COMM_WORLD):
        problem = made(backend, comm)
        operator = weakref.ref(problem.operator)
        del problem
        monkeypatch.setattr(lifetimes, "MANY", 0)
        assert made(backend, comm) and operator() is None


def test_cycles_are_looked_for_after_many_unknowns(monkeypatch):
    asked, problem = [], made("cg_gpu", PETSc.COMM_SELF)
    monkeypatch.setattr(lifetimes, "destroy", lambda comm, collect: asked.append(collect))
    monkeypatch.setattr(lifetimes, "_unknowns", [])
    monkeypatch.setattr(lifetimes, "MANY", 2.5 * problem.num_unknowns)
    for _ in range(7):
        lifetimes.make_room(problem.comm, problem.num_unknowns)
    assert asked == [False, False, False, True, False, False, True]


def test_cycles_are_looked_for_after_many_problems(monkeypatch):
    asked = []
    monkeypatch.setattr(lifetimes, "destroy", lambda comm, collect: asked.append(collect))
    monkeypatch.setattr(lifetimes, "_unknowns", [])
    monkeypatch.setattr(lifetimes, "OFTEN", 3)
    for _ in range(8):
        lifetimes.make_room(PETSc.COMM_SELF.tompi4py(), 1)
    assert asked == [False, False, False, True, False, False, True, False]


@pytest.mark.full
@pytest.mark.parametrize("backend", SCHEMES)
def test_nothing_is_left_of_problems(backend, monkeypatch):
    """PETSc lists what is freed while it destroys the list, and forgets it."""
    monkeypatch.setattr(lifetimes, "MANY", 0)

    def left() -> int:
        for _ in range(3):
            problem = made(backend, PETSc.COMM_SELF)
        del problem
        lifetimes.destroy()
        return sum(issubclass(type(thing), PETSc.Object) for thing in gc.get_objects())

    left()
    assert left() == left()


@pytest.mark.parametrize(
    ("ranks", "how", "schemes"),
    [
        (2, "given up", ["poly_gpu", "hdg_gpu", "sipg_gpu"]),
        (3, "kept", SCHEMES),
        (2, "alone", SCHEMES),
        (2, "raised", ["poly_gpu"]),
        (1, "raised", SCHEMES),
        (1, "given up", SCHEMES),
    ],
)
def test_ends(mpirun, ranks, how, schemes):
    done = mpirun(ranks, HERE / "run_ends.py", how, ",".join(schemes), check=how != "raised", timeout=120)
    assert done.stdout.count("solved") == ranks
    if how == "raised":
        assert done.returncode == 1 and done.stderr.count("ValueError: on all ranks") == 1, done.stderr


@pytest.mark.parametrize("times", range(3))
def test_solvers_in_solvers_end(mpirun, times):
    """The preconditioner of the trace goes with that of trace and cells, whichever of both comes first."""
    inner = ("-pc_type", "python", "-pc_python_type", "petsc_hdg.FacetBlockJacobi")
    assert mpirun(1, HERE / "run_ends.py", "kept", "hdg_gpu,hdg_gpu", "-in_time", *inner).stdout.count("solved") == 1


def test_matrices_end_in_every_order(mpirun):
    assert mpirun(0, HERE / "run_orders.py").stdout == "done\n"
