"""Orders and errors of every shape and degree on unstructured, distorted meshes."""

from __future__ import annotations

import numpy as np
import pytest
from petsc_options import direct_solver, petsc_options
from sample_meshes import DIM, SHAPES, unstructured
from sample_physics import smooth_poisson

from petsc_hdg.options import Options
from petsc_hdg.problem import Problem

# (shape, degree): coarse and fine level, bounds of the fine mesh's L2 and H1 errors (1.3 times what was found)
TABLE = {
    ("triangle", 1): (2, 3, 2.5e-03, 7.5e-02),
    ("triangle", 2): (1, 2, 7.3e-05, 3.8e-03),
    ("triangle", 3): (1, 2, 2.1e-06, 1.3e-04),
    ("triangle", 4): (1, 2, 2.3e-08, 1.8e-06),
    ("quadrilateral", 1): (1, 2, 2.3e-03, 6.2e-02),
    ("quadrilateral", 2): (1, 2, 7.3e-06, 8.6e-04),
    ("quadrilateral", 3): (1, 2, 9.9e-08, 1.2e-05),
    ("quadrilateral", 4): (0, 1, 1.7e-08, 1.6e-06),
    ("tetrahedron", 1): (2, 3, 4.8e-03, 1.1e-01),
    ("tetrahedron", 2): (1, 2, 3.4e-04, 1.4e-02),
    ("tetrahedron", 3): (1, 2, 1.2e-05, 6.4e-04),
    ("tetrahedron", 4): (1, 2, 4.1e-07, 2.5e-05),
    ("hexahedron", 1): (1, 2, 4.2e-03, 9.9e-02),
    ("hexahedron", 2): (1, 2, 5.6e-05, 3.1e-03),
    ("hexahedron", 3): (0, 1, 2.1e-05, 7.5e-04),
    ("hexahedron", 4): (0, 1, 6.4e-07, 2.8e-05),
}


def test_the_table_has_every_shape_and_degree():
    assert set(TABLE) == {(cell, degree) for cell in SHAPES for degree in range(1, 5)}  # more: test_high_degrees.py


def errors(cell: str, degree: int, level: int) -> tuple[float, float, int]:
    """L2 and H1 errors, and the number of cells."""
    mesh = unstructured(cell, level)
    assert mesh.cell == cell
    with petsc_options(**direct_solver()):
        problem = Problem(mesh, smooth_poisson(), Options(degree=degree))
        found = problem.errors(problem.solve())
    return found["L2"], found["H1"], mesh.num_cells


@pytest.mark.full("hexahedron", "tetrahedron")
@pytest.mark.parametrize("cell, degree", TABLE)
def test_convergence(cell, degree, record_property):
    coarse, fine, l2_bound, h1_bound = TABLE[cell, degree]
    l2, h1, cells = zip(*(errors(cell, degree, level) for level in (coarse, fine)), strict=True)
    assert cells[1] == cells[0] * 2 ** (DIM[cell] * (fine - coarse))
    orders = np.log2([l2[0] / l2[1], h1[0] / h1[1]]) / (fine - coarse)
    record_property("orders", [round(float(o), 2) for o in orders])
    assert orders[0] >= degree + 1 - 0.25 and orders[1] >= degree - 0.25
    assert l2[1] <= l2_bound and h1[1] <= h1_bound
