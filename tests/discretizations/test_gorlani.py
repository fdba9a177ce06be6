"""Gorlani's tables (thesis, Politecnico di Milano, 2015): quadrature, one cell, and interior penalty.

The printed errors hold for the penalty 200 p²/h and norms at the nodes. Where a solution lies in the space (C at p ≥ 3,
D), the table shows the rounding of conjugate gradients, which ours must not exceed.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from fast_diagonal import FastDiagonal
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.options import Options
from petsc_hdg.physics import Symbols
from petsc_hdg.problem import Problem
from petsc_hdg.reference import gauss_lobatto

pytestmark = pytest.mark.full

EXAMPLE = Path(__file__).parents[2] / "examples" / "poisson_sipg.py"
NAMES, SIZES, DEGREES = "ABCDE", (4, 8, 16, 32, 64), (2, 3, 4, 5, 6)
SMALLEST = 1e-11  # entries below are rounding of the paper's solver


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("poisson_sipg", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def chosen(example) -> fe.Physics:
    """All solutions in one physics, of which constants choose one, so that a degree is compiled once."""
    symbols = Symbols(2, {"u": 1}, constants=tuple(NAMES))
    x, y = symbols.x
    exact = sum(symbols.constant(name) * example.SOLUTIONS[name] for name in NAMES)
    return fe.Physics(
        {"u": 1},
        f0=exact.diff(x, 2) + exact.diff(y, 2),
        f1=symbols.grad("u"),
        constants=dict.fromkeys(NAMES, 0.0),
        boundary=[fe.Dirichlet("boundary", "exact")],
        exact=exact,
        name="Gorlani",
    )


def create_problem(physics, n: int, degree: int, scale: float = 2.0) -> Problem:
    settings = {"backend": "sipg_gpu", "sipg_penalty": "paper", "sipg_penalty_scale": scale, "pmat": "none"}
    mesh = fe.Mesh.box((n, n), simplex=False, comm=PETSc.COMM_SELF)
    return Problem(mesh, physics, Options(degree=degree, check_kernels=False, **settings))


def solve(problem, name: str) -> PETSc.Vec:
    problem.set_constants(**{k: float(k == name) for k in NAMES})
    return problem.solve()


def fast(problem, n: int, penalty: float) -> Problem:
    """The problem with a solver of a few steps: Richardson's with fast diagonalization."""
    ksp = problem.snes.getKSP()
    ksp.setType("richardson")
    ksp.setNormType(PETSc.KSP.NormType.NONE)
    ksp.setTolerances(max_it=6)
    ksp.getPC().setType("python")
    ksp.getPC().setPythonContext(FastDiagonal(problem, n, penalty))
    return problem


def in_space(name: str, degree: int) -> bool:
    """Whether a solution is a polynomial of the space."""
    return degree >= {"C": 3, "D": 2}.get(name, 99)


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("n", SIZES)
def test_tables_of_interior_penalty(example, n, degree, record_property):
    problem = fast(create_problem(chosen(example), n, degree), n, 200.0 * degree**2 * n)
    differences = {}
    for name in NAMES:
        paper = example.paper_row(name, n, degree)
        found = example.errors(problem, solve(problem, name), name)
        for norm in ("L2", "H1"):
            value = paper.get(norm, 0.0)
            if in_space(name, degree):
                assert found[norm] < max(3 * value, 1e-10), (name, norm, found, paper)
            elif value > SMALLEST:
                differences[name, norm] = abs(found[norm] / value - 1)
    record_property("differences", differences)
    assert max(differences.values()) < 1e-3, differences


def test_the_tables_are_compared_as_a_whole(example):
    rows = example.PAPER["tables4_6_to_4_10_errors"]
    kept = {(k, r["n"], r["p"]) for k in NAMES for r in rows[k] if r["n"] <= SIZES[-1]}
    assert {n for _, n, _ in kept} == set(SIZES) and {p for *_, p in kept} == set(DEGREES)
    assert kept >= {(k, n, p) for k in "ABE" for n in SIZES for p in DEGREES}


@pytest.mark.parametrize("degree", [*DEGREES, 8, 12, 16])
def test_tables_of_one_cell(example, degree, record_property):
    """Tables 4.3 to 4.5: the penalty is 100; from degree 10 on the matrix is not definite."""
    differences = {}
    problem = fast(create_problem(chosen(example), 1, degree, scale=1.0 / degree**2), 1, 100.0)
    for name in NAMES:
        paper = example.paper_row(name, 1, degree)
        found = example.errors(problem, solve(problem, name), name)
        for norm, value in paper.items():
            if norm != "p" and value > SMALLEST:
                differences[name, norm] = abs(found[norm] / value - 1)
        assert not in_space(name, degree) or found["L2"] < 1e-12
    record_property("differences", differences)
    assert max(differences.values()) < 1e-3, differences


def test_table_of_quadrature(example):
    """Table 4.1: errors of n points for the powers of x on (1, 2); exact to degree 2n - 3."""
    table = example.PAPER["table4_1_quadrature_of_powers_on_1_2"]
    assert [row["power"] for row in table["rows"]] == list(range(1, 15))
    for row in table["rows"]:
        for count, paper in zip(table["points"], row["errors"], strict=True):
            points, weights = gauss_lobatto(count - 1)
            exact = (2 ** (row["power"] + 1) - 1) / (row["power"] + 1)
            found = abs(exact - weights @ (1 + points) ** row["power"])
            if row["power"] <= 2 * count - 3:
                assert found < 20 * np.finfo(float).eps * exact
            else:
                assert found == pytest.approx(paper, rel=1e-5, abs=1e-14 * exact)
