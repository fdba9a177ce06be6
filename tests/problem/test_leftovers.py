"""Problems that a program no longer has give their matrices and memory back when it makes another one."""

from __future__ import annotations

import weakref

import pytest
from petsc4py import PETSc
from sample_meshes import box_mesh
from sample_physics import smooth_poisson

from petsc_hdg.options import Options
from petsc_hdg.problem import Problem, leftovers


def made(backend: str, comm) -> Problem:
    problem = Problem(box_mesh("triangle", (4, 3), comm=comm), smooth_poisson(), Options(backend=backend, degree=2))
    problem.solve()
    return problem


@pytest.mark.parametrize("backend", ["cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu"])
def test_problems_given_up_are_destroyed(backend, monkeypatch):
    for comm in (PETSc.COMM_SELF, PETSc.COMM_WORLD):
        problem = made(backend, comm)
        operator = weakref.ref(problem.operator)
        del problem
        monkeypatch.setattr(leftovers, "MANY", 0)
        assert made(backend, comm) and operator() is None


def test_cycles_are_looked_for_after_many_unknowns(monkeypatch):
    asked, problem = [], made("cg_gpu", PETSc.COMM_SELF)
    monkeypatch.setattr(leftovers, "destroy", lambda comm, collect: asked.append(collect))
    monkeypatch.setattr(leftovers, "_unknowns", 0)
    monkeypatch.setattr(leftovers, "MANY", 2.5 * problem.num_unknowns)
    for _ in range(7):
        leftovers.make_room(problem)
    assert asked == [False, False, False, True, False, False, True]
