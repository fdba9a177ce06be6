"""Gorlani's tables (thesis, Politecnico di Milano, 2015): quadrature, one cell, and interior penalty.

The printed errors hold for the penalty 200 p²/h and norms at the nodes. Where a solution lies in the space (C at p ≥ 3,
D), the table shows the rounding of conjugate gradients, which ours must not exceed.
"""

from __future__ import annotations

import numpy as np
import pytest
from gorlani import NAMES, NORMS, SMALLEST, errors_row, in_space, poisson

from petsc_hdg.reference import gauss_lobatto

pytestmark = pytest.mark.full

SIZES, DEGREES = (4, 8, 16, 32, 64), (2, 3, 4, 5, 6)


def differences(found: dict, paper_of, degree: int) -> dict:
    """Relative differences of errors from the printed ones, by solution and norm, where these are not rounding. The
    largest of the nodes' errors contains the rounding of the paper's solver whole: that much is no difference."""
    compared = {}
    for name in found:
        paper = paper_of(name)
        for norm in NORMS:
            value = paper.get(norm, 0.0)
            if in_space(name, degree):
                assert found[name][norm] < max(3 * value, 1e-10), (name, norm, found, paper)
            elif value > SMALLEST:
                difference = abs(found[name][norm] - value) - SMALLEST * (norm == "Linf")
                compared[name, norm] = max(0.0, difference / value)
    return compared


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("n", SIZES)
def test_tables_of_interior_penalty(n, degree, record_property):
    found = differences(errors_row(n, degree)["errors"], lambda name: poisson().paper_row(name, n, degree), degree)
    record_property("differences", found)
    assert {norm for _, norm in found} == ({"H1"} if (n, degree) == (64, 6) else {*NORMS})
    assert max(found.values()) < 1e-3, found


def test_the_tables_are_compared_as_a_whole():
    rows = poisson().PAPER["tables4_6_to_4_10_errors"]
    kept = {(k, r["n"], r["p"]) for k in NAMES for r in rows[k] if r["n"] <= SIZES[-1]}
    assert {n for _, n, _ in kept} == set(SIZES) and {p for *_, p in kept} == set(DEGREES)
    assert kept >= {(k, n, p) for k in "ABE" for n in SIZES for p in DEGREES}


@pytest.mark.parametrize("degree", [*DEGREES, 8, 12, *range(16, 22), 32])
def test_tables_of_one_cell(degree, record_property):
    """Tables 4.3 to 4.5: the penalty is 100; from degree 10 on the matrix is not definite."""
    found = differences(errors_row(1, degree)["errors"], lambda name: poisson().paper_row(name, 1, degree), degree)
    record_property("differences", found)
    assert max(found.values()) < 1e-3, found


def test_table_of_quadrature():
    """Table 4.1: errors of n points for the powers of x on (1, 2); exact to degree 2n - 3."""
    table = poisson().PAPER["table4_1_quadrature_of_powers_on_1_2"]
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
