"""Orders and errors of interior penalty on unstructured, distorted meshes, straight and curved: L2 p + 1, H1 p.

Norms are integrated by a finer rule than that of the cells, at whose points the error of tensor cells superconverges.
"""

from __future__ import annotations

import numpy as np
import pytest
from petsc_options import petsc_options
from sample_meshes import DIM, SHAPES, bent, box_mesh, unstructured
from sample_physics import SMOOTH, smooth_poisson

from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Physics, Robin
from petsc_hdg.problem import Problem

# (shape, degree, bent): coarse and fine level, bounds of the fine mesh's L2 and H1 errors (1.3 times what was found)
TABLE = {
    ("triangle", 1, False): (2, 3, 9.3e-04, 5.7e-02),
    ("triangle", 2, False): (1, 2, 5.1e-05, 3.2e-03),
    ("triangle", 3, False): (1, 2, 1.8e-06, 1.1e-04),
    ("triangle", 4, False): (1, 2, 1.9e-08, 1.7e-06),
    ("quadrilateral", 1, False): (1, 2, 2.4e-03, 6.1e-02),
    ("quadrilateral", 2, False): (1, 2, 6.3e-06, 9.1e-04),
    ("quadrilateral", 3, False): (1, 2, 1.0e-07, 1.2e-05),
    ("quadrilateral", 4, False): (0, 1, 1.8e-08, 1.7e-06),
    ("tetrahedron", 1, False): (2, 3, 1.8e-03, 8.4e-02),
    ("tetrahedron", 2, False): (1, 2, 2.4e-04, 1.0e-02),
    ("tetrahedron", 3, False): (1, 2, 9.6e-06, 5.1e-04),
    ("hexahedron", 1, False): (1, 2, 4.8e-03, 9.9e-02),
    ("hexahedron", 2, False): (1, 2, 4.1e-05, 3.2e-03),
    ("hexahedron", 3, False): (0, 1, 2.1e-05, 7.5e-04),
    ("triangle", 2, True): (1, 2, 8.5e-05, 5.0e-03),
    ("quadrilateral", 2, True): (1, 2, 9.7e-06, 1.3e-03),
    ("tetrahedron", 2, True): (1, 2, 3.7e-04, 1.6e-02),
    ("hexahedron", 2, True): (1, 2, 5.5e-05, 4.2e-03),
}


def test_the_table_has_every_shape_straight_and_curved():
    most = {"triangle": 4, "quadrilateral": 4, "tetrahedron": 3, "hexahedron": 3}
    assert {(c, p) for c, p, is_bent in TABLE if not is_bent} == {(c, p) for c in SHAPES for p in range(1, most[c] + 1)}
    assert {c for c, _, is_bent in TABLE if is_bent} == set(SHAPES)


def errors(cell: str, degree: int, level: int, is_bent: bool) -> tuple[float, float, int]:
    """L2 and H1 errors, and the number of cells."""
    mesh = unstructured(cell, level)
    mesh = bent(mesh) if is_bent else mesh
    assert mesh.cell == cell
    with petsc_options(ksp_rtol="1e-11"):
        problem = Problem(mesh, smooth_poisson(), Options(backend="sipg_gpu", degree=degree, check_kernels=False))
        found = problem.errors(problem.solve())
    return found["L2"], found["H1"], mesh.num_cells


@pytest.mark.full("quadrilateral", "True")
@pytest.mark.parametrize(
    "cell, degree, is_bent", [pytest.param(*row, marks=pytest.mark.full if DIM[row[0]] == 3 else ()) for row in TABLE]
)
def test_convergence(cell, degree, is_bent, record_property):
    coarse, fine, l2_bound, h1_bound = TABLE[cell, degree, is_bent]
    l2, h1, cells = zip(*(errors(cell, degree, level, is_bent) for level in (coarse, fine)), strict=True)
    assert cells[1] == cells[0] * 2 ** (DIM[cell] * (fine - coarse))
    orders = np.log2([l2[0] / l2[1], h1[0] / h1[1]]) / (fine - coarse)
    record_property("orders", [round(float(o), 2) for o in orders])
    assert orders[0] >= degree + 1 - 0.25 and orders[1] >= degree - 0.25, (orders, l2, h1)
    assert l2[1] <= l2_bound and h1[1] <= h1_bound, (l2, h1)


def advection(form: str) -> Physics:
    """w·∇u = f without diffusion, written into f1 with its outflow, or into f0."""
    source = "f0[0] = -(cos(x[0] + 0.5)*cos(1.5*x[1] - 0.3) - 0.9*sin(x[0] + 0.5)*sin(1.5*x[1] - 0.3));"
    inflow = [Dirichlet(side, "exact") for side in ("left", "bottom")]
    if form == "f0":
        return Physics(
            {"u": 1}, source + "f0[0] += u_x[0] + 0.6*u_x[1];", boundary=inflow, exact={"u": SMOOTH}, name=form
        )
    outflow = [Robin(side, "f0[0] = (n[0] + 0.6*n[1])*u[0];") for side in ("right", "top")]
    flux = "f1[0] = -u[0]; f1[1] = -0.6*u[0];"
    return Physics({"u": 1}, source, flux, boundary=[*inflow, *outflow], exact={"u": SMOOTH}, name=form)


@pytest.mark.full
@pytest.mark.parametrize("form, cell", [("f0", "quadrilateral"), ("f1", "triangle")])
def test_pure_advection_is_upwinded(form, cell, record_property):
    """Nothing but half the speed as penalty holds the cells together: order p + 1 in both forms."""
    found = []
    for faces in (6, 12):
        settings = {"backend": "sipg_gpu", "check_kernels": False}
        with petsc_options(ksp_type="preonly", pc_type="lu"):
            problem = Problem(box_mesh(cell, (faces, faces)), advection(form), Options(degree=2, **settings))
            found.append(problem.errors(problem.solve())["L2"])
    order = float(np.log2(found[0] / found[1]))
    record_property("order", round(order, 2))
    assert order > 2.6 and found[1] < 1e-4, (order, found)
