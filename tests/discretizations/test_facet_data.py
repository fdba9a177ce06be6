"""What stands in for a cell on a facet has its values and normal derivatives there, in fewer numbers."""

from math import comb

import numpy as np
import pytest

from petsc_hdg.discretizations.sipg.neighbours import facet_data
from petsc_hdg.reference import ReferenceElement, facet_quadrature

DIM = {"triangle": 2, "quadrilateral": 2, "tetrahedron": 3, "hexahedron": 3}
CASES = [(cell, degree) for cell in DIM for degree in (2, 3, 4) if (cell, degree) != ("hexahedron", 4)]


def sent(cell: str, degree: int) -> int:
    """Dimension of the traces plus that of normal derivatives."""
    facet = DIM[cell] - 1
    if cell in ("quadrilateral", "hexahedron"):
        return 2 * (degree + 1) ** facet
    return comb(degree + facet, facet) + comb(degree - 1 + facet, facet)


@pytest.mark.parametrize("cell,degree", CASES)
def test_traces_and_normal_derivatives(cell, degree):
    element, random = ReferenceElement(cell, degree), np.random.default_rng(degree)
    order = random.permutation(element.num_basis)
    data = facet_data(cell, element, order)
    assert data.sent == sent(cell, degree) < element.num_basis
    assert np.abs(data.weight).max() < 1 + 1e-9  # nothing is amplified
    u = random.uniform(-1, 1, element.num_basis)
    rules, normals = facet_quadrature(cell, 2 * degree + 2)
    for f, (rule, normal) in enumerate(zip(rules, normals, strict=True)):
        first = data.start[f * data.sent : (f + 1) * data.sent + 1]
        stand_in = np.zeros(element.num_basis)
        for k, node in enumerate(data.nodes[f]):
            entries = slice(first[k], first[k + 1])
            stand_in[node] = data.weight[entries] @ u[data.node[entries]]
        assert np.abs(stand_in - u).max() > 1e-3  # another function
        table = element.tabulate(rule.points, 1)[:, :, order]
        values, slopes = table[0] @ (stand_in - u), np.tensordot(normal, table[1:], 1) @ (stand_in - u)
        assert np.abs(values).max() < 1e-13 and np.abs(slopes).max() < 1e-11


@pytest.mark.parametrize("cell", DIM)
def test_first_degree_takes_whole_cells(cell):
    element = ReferenceElement(cell, 1)
    assert facet_data(cell, element, np.arange(element.num_basis)) is None
