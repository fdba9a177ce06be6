"""Cells whose matrices live in global memory, as large ones do, give what those in registers give."""

from __future__ import annotations

import numpy as np
import pytest
from condensed_runs import compiled, residual_and_product, residual_and_step

import petsc_hdg as fe
from petsc_hdg.discretizations import HybridizedDG
from petsc_hdg.discretizations.condensed import launch_shapes
from petsc_hdg.operators.condensed.in_time import StateProducts
from petsc_hdg.physics import library
from petsc_hdg.physics.library import gas

ROBIN = [fe.Dirichlet("left", "g[0] = x[1]; g[1] = 0; g[2] = 0;"), fe.Robin("right", "f0[0] = u[0] - 1; f0[2] = u[1];")]
SYSTEM = {
    "f0": "f0[0] = -1; f0[1] = u[0]; f0[2] = x[0];",
    "f1": "PetscInt c; for (c = 0; c < 3; ++c) for (d = 0; d < dim; ++d)"
    " f1[c*dim + d] = (1 + c + x[0])*u_x[c*dim + d] + 0.1*u[(c + 1)%3];",
    "boundary": ROBIN,
}
CONSTANT = SYSTEM | {"f1": SYSTEM["f1"].replace("(1 + c + x[0])", "(1 + c)")}
NONLINEAR = SYSTEM | {"f1": SYSTEM["f1"].replace("x[0])", "0.1*u[c]*u[c])")}
LAPLACE = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
OPTIONS = fe.Options(backend="hdg_gpu", degree=2)
CASES = {"points": SYSTEM, "constant": CONSTANT, "local Newton": NONLINEAR}


@pytest.fixture
def in_global_memory(monkeypatch):
    """All matrices of cells in global memory, however small, eliminated by eight pivots at a time."""
    monkeypatch.setattr(launch_shapes, "REGISTER_ENTRIES", 0)
    monkeypatch.setattr(launch_shapes, "PRIVATE_BYTES", 0)
    monkeypatch.setattr(launch_shapes, "PANELS", ((8, 4),))


def compare(run, request, pivots: int) -> None:
    """Compare run(is_gpu) with matrices in registers and in global memory, of one thread and of a group."""
    expected, shape = run(False)
    assert not shape.scratch
    request.getfixturevalue("in_global_memory")
    for is_gpu in (False, True):
        found, shape = run(is_gpu)
        assert shape.scratch and shape.panel == 8 and pivots > 8 and pivots % 8
        for one, other in zip(expected, found, strict=True):
            assert np.abs(one).max() > 1e-3
            assert np.abs(one - other).max() <= 1e-10 * np.abs(one).max()


@pytest.mark.parametrize("case", CASES)
def test_systems(case, request):
    physics = fe.Physics({"u": 3}, **CASES[case])
    mesh = fe.Mesh.box((2, 1), simplex=True)
    plain = {"uses_warps": False, "uses_threads": False}
    compare(lambda is_gpu: residual_and_product(mesh, physics, 2, is_gpu, **plain), request, 3 * 6)


@pytest.mark.parametrize("products", [False, True], ids=["shared", "each"])
def test_cells_that_share_solvers(products, request):
    physics = fe.Physics({"u": 3}, **CONSTANT)
    mesh = fe.Mesh.box((8, 4), simplex=False)
    shared = {"options": {"hdg_share": not products}, "uses_warps": False, "uses_threads": False}
    compare(lambda is_gpu: residual_and_product(mesh, physics, 1, is_gpu, **shared), request, 3 * 4)


def test_gas_in_time(request, monkeypatch):
    """Other right-hand sides take A⁻¹ of the last linearization where cells are large."""
    wall = gas.slip_wall("boundary")
    physics = library.compressible_navier_stokes(2, gas.RATE, mach=0.3, reynolds=50.0, boundary=wall)
    state, solve, kept = np.array([1.0, 0.2, 0.1, 20.0]), StateProducts._solve_cells, []

    def solved(products, transposed):
        kept.append(products.op.local.holds_inverse)
        solve(products, transposed)

    monkeypatch.setattr(StateProducts, "_solve_cells", solved)
    compare(lambda is_gpu: residual_and_step(physics, 1, is_gpu, state=state), request, 4 * 3)
    assert kept == 4 * [False] + 8 * [True]


def test_tiles_fit_into_what_others_have_left(in_global_memory, monkeypatch):
    """Cells are condensed in as many tiles as the free memory takes, with the same result."""
    wall = gas.slip_wall("boundary")
    physics = library.compressible_navier_stokes(2, gas.RATE, mach=0.3, reynolds=50.0, boundary=wall)

    def step(part: float):
        """Residual and right-hand side, tiles, where a part of two tiles of all cells is free."""
        operator = compiled(fe.Mesh.box((8, 4)), physics, 1, False, options={"check_kernels": False})
        arrays, disc, local, size = operator.arrays, operator.discretization, operator.local, operator.state_size
        of_cell = local.recovery_reals + local.schur_reals + disc.shape_of("condense").scratch_entries
        memory = arrays.device.memory
        x = arrays.to_device(np.resize([1.0, 0.2, 0.1, 20.0], size) * (1 + 0.1 * np.sin(np.arange(size))))
        rate, residual, right_side = arrays.to_device(np.cos(np.arange(size))), arrays.zeros(size), arrays.zeros(size)
        operator.products.compile(False)
        monkeypatch.setattr(memory, "room", memory.taken.bytes + int(part * 2 * 8 * of_cell * disc.stride))
        operator.linearize(x, 0.5, rate, 3.0)
        operator.products.multiply(rate, residual, False)
        operator.products.eliminate(rate, right_side, False)
        count = disc.dofmap.num_owned
        return arrays.to_host(residual, size), arrays.to_host(right_side, count), len(list(local.tiles()))

    (residual, right_side, one), (*found, several) = step(8), step(0.6)
    assert one == 1 and several > 1
    for expected, values in zip((residual, right_side), found, strict=True):
        assert np.abs(values - expected).max() <= 1e-11 * np.abs(expected).max() > 0


def test_functions_of_facets():
    """Those of u at the facet's nodes, and those of the trace on it."""
    disc = HybridizedDG(fe.Mesh.box((1, 1, 1), simplex=False), fe.Physics({"u": 1}, f1=LAPLACE), OPTIONS)
    found = disc.facet_functions()
    assert disc.num_interior == 27 and disc.num_trace == 6 * 9 and found.shape == (6, 18)
    assert [set(row[row >= 27]) for row in found] == [set(range(first, first + 9)) for first in range(27, 81, 9)]
    nodes = disc.cell_element.nodes[found[:, :9]]
    assert np.ptp(nodes, axis=1).min(axis=1).max() < 1e-12
