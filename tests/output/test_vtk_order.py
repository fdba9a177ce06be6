"""Nodes of VTK's cells: order against VTK's own, matrices against polynomials."""

import json
from pathlib import Path

import numpy as np
import pytest

from petsc_hdg.output.lagrange import MAX_DEGREE, to_vtk, vtk_nodes
from petsc_hdg.reference import CELLS, ReferenceElement

ORDER = json.loads(Path(__file__).with_name("vtk_order.json").read_text())


SHAPES = ("interval", *CELLS)


def test_order_table_is_complete():
    assert {f"{cell} {n}" for cell in SHAPES for n in range(1, MAX_DEGREE + 1)} == set(ORDER)


@pytest.mark.parametrize("key", sorted(ORDER))
def test_nodes_lie_where_vtk_has_them(key):
    cell, degree = key.split()
    expected = np.array([[int(digit, 16) for digit in place] for place in ORDER[key].split()]) / int(degree)
    assert len(expected) == ReferenceElement(cell, int(degree)).num_basis
    assert np.array_equal(vtk_nodes(cell, int(degree)), expected)


@pytest.mark.parametrize("degree, vtk_degree", [(1, 1), (3, 3), (4, 4), (5, 2), (2, 4), (10, 10)])
@pytest.mark.parametrize("cell, mirrored", [*((cell, False) for cell in SHAPES), *((cell, True) for cell in CELLS)])
def test_matrix_evaluates_polynomials(cell, degree, vtk_degree, mirrored):
    def polynomial(x):
        return (1 + x @ np.arange(1.0, x.shape[1] + 1)) ** degree

    element, places = ReferenceElement(cell, degree), vtk_nodes(cell, vtk_degree)
    if mirrored:
        places = places[:, [1, 0, 2][: element.dim]]
    found = to_vtk(cell, degree, vtk_degree, mirrored) @ polynomial(element.nodes)
    scale = np.abs(polynomial(places)).max()
    assert np.abs(found - polynomial(places)).max() < 200 * np.finfo(float).eps * scale
