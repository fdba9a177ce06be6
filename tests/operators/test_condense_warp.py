"""Condensation by tensor cores, whose products local memory stands in for, and by a GPU's thread a cell."""

from __future__ import annotations

import numpy as np
import pytest
from condensed_runs import residual_and_product

import petsc_hdg as fe
from petsc_hdg.discretizations import CondensedCG, HybridizedDG
from petsc_hdg.discretizations.condensed import launch_shapes
from petsc_hdg.discretizations.condensed.launch_shapes import ThreadShape, WarpShape
from petsc_hdg.discretizations.symmetry import has_symmetric_derivative
from petsc_hdg.discretizations.transposition import DeviceLimits

LEFT = fe.Dirichlet("left", "g[0] = x[1];")
NITSCHE = fe.Robin(
    "right",
    "f0[0] = 9*u[0] - 1; for (d = 0; d < dim; ++d) f0[0] -= u_x[d]*n[d];",
    f1="for (d = 0; d < dim; ++d) f1[d] = (x[0] - u[0])*n[d];",
)
ROBIN = {
    "f0": "f0[0] = -x[0];",
    "f1": "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    "boundary": [LEFT, NITSCHE],
}
VARIABLE = {
    "f0": "f0[0] = 1 + u_x[0];",
    "f1": "for (d = 0; d < dim; ++d) f1[d] = (1 + x[0])*u_x[d];",
    "boundary": [LEFT],
}
SYSTEM = {
    "f0": "f0[0] = -1; f0[1] = u[0];",
    "f1": "PetscInt c; for (c = 0; c < 2; ++c) for (d = 0; d < dim; ++d) f1[c*dim + d] = (1 + c)*u_x[c*dim + d];",
    "boundary": [fe.Dirichlet("left", "g[0] = x[1]; g[1] = 0;")],
}
UNCOUPLED = {**SYSTEM, "f0": "f0[0] = -1; f0[1] = 1;"}
# cell, physics, components; most blocks of a lane, warps of a cell, symmetric, cells of a group
CASES = [
    ("triangle", ROBIN, 1, (18, 1, True, 8)),
    ("triangle", SYSTEM, 2, (4, 2, False, 8)),
    ("triangle", UNCOUPLED, 2, (3, 2, True, 8)),
    ("quadrilateral", VARIABLE, 1, (1, 2, False, 4)),
]


@pytest.mark.parametrize(("cell", "functions", "components", "expected"), CASES)
def test_warps_agree_with_single_threads(cell, functions, components, expected, monkeypatch):
    physics = fe.Physics({"u": components}, **functions)
    mesh = fe.Mesh.box((3, 2), simplex=cell == "triangle")
    monkeypatch.setattr(launch_shapes, "MOST_BLOCKS", expected[0])
    single, plain = _run(mesh, physics, uses_warps=False)
    several, shape = _run(mesh, physics, uses_warps=True)
    assert not isinstance(plain, WarpShape)
    assert (shape.warps, shape.symmetric, shape.cells) == expected[1:]
    for one, other in zip(single, several, strict=True):
        assert np.abs(one).max() > 1e-3
        assert np.abs(one - other).max() <= 1e-12 * np.abs(one).max()


def test_warps_stand_cells_that_hardly_hold_to_their_traces():
    """The matrix of a cell has a condition of 1e6; by an inverse alone multipliers are off by 3e-9."""
    physics = fe.Physics({"u": 1}, ROBIN["f0"], ROBIN["f1"], boundary=[LEFT], stabilization="1e-6")
    mesh = fe.Mesh.box((3, 2))
    single, plain = _run(mesh, physics, uses_warps=False)
    several, shape = _run(mesh, physics, uses_warps=True)
    assert isinstance(shape, WarpShape) and not isinstance(plain, WarpShape)
    rounding = 1e6 * np.finfo(float).eps
    assert np.abs(several[1] - single[1]).max() <= rounding * np.abs(single[1]).max()


@pytest.mark.parametrize(("cell", "degree"), [("triangle", 1), ("tetrahedron", 0)])
def test_threads_agree_with_the_plain_kernel(cell, degree):
    given = [LEFT, fe.Neumann("right", "g[0] = x[1];"), fe.Robin("top", f1="f1[0] = x[0]; f1[1] = n[1];")]
    physics = fe.Physics({"u": 1}, ROBIN["f0"], ROBIN["f1"], boundary=given)
    mesh = fe.Mesh.box((3, 2) if cell == "triangle" else (2, 1, 1))
    plain, _ = _run(mesh, physics, degree=degree)
    threads, shape = _run(mesh, physics, degree=degree, uses_threads=True)
    assert isinstance(shape, ThreadShape)
    for one, other in zip(plain, threads, strict=True):
        assert np.abs(one).max() > 1e-3
        assert np.abs(one - other).max() <= 1e-12 * np.abs(one).max()


def _run(mesh, physics, degree=1, uses_warps=False, uses_threads=False, **chosen):
    is_gpu, chosen = uses_warps or uses_threads, {"uses_warps": uses_warps, "uses_threads": uses_threads, **chosen}
    return residual_and_product(mesh, physics, degree, is_gpu, **chosen)


def test_symmetry_is_told():
    def told(f0, f1="for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];", **more):
        return has_symmetric_derivative(fe.Physics({"u": 1}, f0=f0, f1=f1, **more), 2)

    plain = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    assert told("f0[0] = u[0]*u[0];", plain) and not told("f0[0] = u[0];")
    assert not told("f0[0] = b*u_x[0];", plain, constants={"b": 0.0})
    assert told("f0[0] = 0;", plain, boundary=[fe.Robin("left", "f0[0] = u[0]*u[0];")])
    assert not told("f0[0] = 0;", plain, boundary=[fe.Robin("left", "f0[0] = u_x[0];")])
    assert not told("f0[0] = 0;", "f1[0] = u_x[1]; f1[1] = u_x[1];")
    leaving, lifted = "f0[0] = u[0] - u_x[0]*n[0] - u_x[1]*n[1];", "f1[0] = -u[0]*n[0]; f1[1] = -u[0]*n[1];"
    assert told("f0[0] = 0;", plain, boundary=[fe.Robin("left", leaving, f1=lifted)])
    assert not told("f0[0] = 0;", plain, boundary=[fe.Robin("left", leaving), fe.Robin("right", f1=lifted)])


@pytest.mark.parametrize("ptx", [0, 90])
@pytest.mark.parametrize(
    ("cell", "degree"), [("tetrahedron", 3), ("tetrahedron", 4), ("hexahedron", 1), ("hexahedron", 2)]
)
def test_tables_fit_the_constant_memory_of_gpus(cell, degree, ptx):
    """65 536 bytes, which the tables of a thread a cell exceed first."""
    mesh, limits = fe.Mesh.box((2, 2, 2), simplex=cell == "tetrahedron"), DeviceLimits(48 * 1024, 1024, True, ptx)
    physics = fe.Physics({"u": 1}, ROBIN["f0"], ROBIN["f1"], boundary=[LEFT])
    for kind, chosen in ((HybridizedDG, {}), (CondensedCG, {"cg_condense": True})):
        disc = kind(mesh, physics, fe.Options(degree=degree, **chosen), limits)
        assert disc.condense_spec().constant_bytes <= 65536
