"""Condensation by sums along lines: factors of functions, and the kernel against that of a thread."""

from __future__ import annotations

import numpy as np
import pytest
from bench.tiled import shaken_box
from condensed_runs import residual_and_product

import petsc_hdg as fe
from petsc_hdg.discretizations import HybridizedDG
from petsc_hdg.discretizations.condensed import launch_shapes
from petsc_hdg.discretizations.condensed.tensor_factors import tensor_factors
from petsc_hdg.discretizations.transposition import DeviceLimits

SYMMETRIC = {
    "f0": "f0[0] = 1 + u[0]*x[1];",
    "f1": "for (d = 0; d < dim; ++d) f1[d] = (1 + x[0])*u_x[d] + 0.3*u_x[dim - 1 - d];",
    "boundary": [fe.Robin("boundary", "f0[0] = u[0] - 1;")],
}
CONVECTION = {
    "f0": "f0[0] = 1 + u_x[0] + u[0]*x[1];",
    "f1": "for (d = 0; d < dim; ++d) f1[d] = (1 + x[0])*u_x[d] + u[0]*x[1 - d%2];",
    "boundary": [fe.Dirichlet("boundary", "g[0] = x[1];")],
}
CONSTANT = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
TENSOR_CORES = DeviceLimits(48 * 1024, 1024, True, 90)
# cell, degree, physics; most blocks of a lane, warps of a cell, symmetric
CASES = [
    ("hexahedron", 1, CONVECTION, (18, 1, False)),
    ("hexahedron", 1, SYMMETRIC, (6, 2, True)),
]


@pytest.mark.parametrize(("cell", "degree", "functions", "expected"), CASES)
def test_sums_along_lines_agree_with_single_threads(cell, degree, functions, expected, monkeypatch):
    mesh = shaken_box(cell, (2, 1, 1))
    physics = fe.Physics({"u": 1}, **functions)
    monkeypatch.setattr(launch_shapes, "MOST_BLOCKS", expected[0])
    single, _ = residual_and_product(mesh, physics, degree, False, uses_warps=False)
    chosen = {"uses_warps": True, "uses_threads": False, "uses_lines": True}
    lines, shape = residual_and_product(mesh, physics, degree, True, **chosen)
    assert (shape.warps, shape.symmetric) == expected[1:]
    for one, other in zip(single, lines, strict=True):
        assert np.abs(one).max() > 1e-3
        assert np.abs(one - other).max() <= 1e-12 * np.abs(one).max()


@pytest.mark.parametrize("enrich", [True, False])
@pytest.mark.parametrize("degree", range(6))
def test_functions_are_products(degree, enrich):
    disc = _discretization(degree, enrich)
    factors, table = tensor_factors(disc), disc.operator_table(disc.quadrature.points)
    for r in range(-1, 3):
        lines = [factors.slopes if axis == r else factors.values for axis in range(3)]
        expected = table[factors.points][..., 1 + r, :]
        assert np.abs(products(factors, lines) - expected).max() <= 1e-12 * np.abs(table).max()
    jumps = disc.jump_table().reshape(-1, disc.num_functions)
    for axis in range(3):
        for end in range(2):
            lines = [factors.ends[:, [end]] if a == axis else factors.values for a in range(3)]
            expected = jumps[factors.facet_points[axis, end]]
            assert np.abs(expected).max() >= 0.5
            assert np.abs(np.squeeze(products(factors, lines), axis) - expected).max() <= 1e-12


def products(factors, lines: list) -> np.ndarray:
    """Functions [point, point, point, function] by those of each axis [function of a line, point]."""
    x, y, z = (line[factors.places[:, axis]] for axis, line in enumerate(lines))
    return np.einsum("fi,fj,fk->ijkf", x, y, z)


def _discretization(degree: int, enrich: bool) -> HybridizedDG:
    options = fe.Options(backend="hdg_gpu", degree=degree, hdg_enrich=enrich)
    return HybridizedDG(shaken_box("hexahedron", (1, 1, 1)), fe.Physics({"u": 1}, **SYMMETRIC), options, DeviceLimits())


# cell, degree, whether the derivative is the same in all cells; whether lines are taken
CHOSEN = [
    ("hexahedron", 1, False, False),
    ("hexahedron", 2, False, False),
    ("hexahedron", 2, True, False),
    ("hexahedron", 3, True, True),
    ("quadrilateral", 3, False, False),
]


@pytest.mark.parametrize(("cell", "degree", "constant", "expected"), CHOSEN)
def test_they_are_chosen_where_they_are_faster(cell, degree, constant, expected):
    mesh = fe.Mesh.box((2,) * (2 if cell == "quadrilateral" else 3), simplex=False)
    physics = fe.Physics({"u": 1}, **({"f1": CONSTANT} if constant else SYMMETRIC))
    for limits, precision in ((TENSOR_CORES, "double"), (TENSOR_CORES, "single"), (DeviceLimits(), "double")):
        options = fe.Options(backend="hdg_gpu", degree=degree, precision=precision)
        disc = HybridizedDG(mesh, physics, options, limits)
        able = limits is TENSOR_CORES and precision == "double"
        assert ("condense_warp_tensor.cl" in disc.condense_spec().sources) is (expected and able)


def test_there_is_no_option_for_them():
    mesh, physics = fe.Mesh.box((2, 2, 2), simplex=False), fe.Physics({"u": 1}, f1=CONSTANT)
    with pytest.raises(fe.OptionError, match="^-fe_kernel tensor has no effect on hdg_gpu, which takes auto; leave it"):
        fe.Problem(mesh, physics, fe.Options(backend="hdg_gpu", degree=3, kernel="tensor"))
