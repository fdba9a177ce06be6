"""Interior penalty in one pass on quadrilaterals and hexahedra against volume and fluxes apart, and against numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from given_sipg import GivenState, made
from sample_meshes import box_mesh
from sample_physics import everything, one_field, smooth_poisson

from petsc_hdg.discretizations.lines import lagrange
from petsc_hdg.discretizations.sipg.oracle import PenaltyOracle
from petsc_hdg.discretizations.sipg.scheme import InteriorPenalty
from petsc_hdg.discretizations.sipg.tensor import (
    CELL_NODES,
    PassShape,
    facet_places,
    node_rounds,
    tensor_shape,
    tensor_specs,
)
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.errors import OptionError
from petsc_hdg.mesh import Mesh
from petsc_hdg.options import Options
from petsc_hdg.physics import Physics
from petsc_hdg.physics.library import elasticity, minimal_surface
from petsc_hdg.reference import gauss_lobatto, on_facets, tensor_points

MESHES = Path(__file__).parents[1] / "meshes"
GPU = DeviceLimits(local_bytes=49152, max_work_group=1024, is_gpu=True)  # work-groups as on a GPU, wherever they run
TENSOR = ("quadrilateral", "hexahedron")
MOST = {"quadrilateral": 16, "hexahedron": 8}
TOLERANCE = 2e-13  # of the largest entry; sums of up to 300 terms

PHYSICS = {
    "everything": lambda dim: everything(pressure_offset=0),
    "poisson": lambda dim: smooth_poisson(),
    "elasticity": lambda dim: elasticity(dim),
    "minimal surface": lambda dim: minimal_surface(),
    "one field": lambda dim: one_field(),
}


# cell, degree, physics, theta, whether with the work-groups of a GPU
CASES = [
    ("quadrilateral", 1, "everything", 1, False),
    ("quadrilateral", 1, "one field", 1, True),
    ("quadrilateral", 2, "everything", 0, True),
    ("quadrilateral", 3, "elasticity", -1, False),
    ("quadrilateral", 4, "minimal surface", 1, True),
    ("quadrilateral", 16, "poisson", 1, False),
    ("hexahedron", 1, "everything", 1, True),
    ("hexahedron", 2, "everything", -1, False),
    ("hexahedron", 2, "elasticity", 1, True),
    ("hexahedron", 3, "minimal surface", 0, False),
    ("hexahedron", 8, "poisson", 1, False),
]


def test_the_table_is_complete():
    assert {c for c, *_ in CASES} == set(TENSOR)
    assert {p for _, _, p, _, _ in CASES} == set(PHYSICS)
    for cell in TENSOR:
        rows = [row for row in CASES if row[0] == cell]
        assert {theta for *_, theta, _ in rows} == {1, 0, -1} and {gpu for *_, gpu in rows} == {True, False}
        assert {1, MOST[cell]} <= {degree for _, degree, *_ in rows}


@pytest.mark.full("quadrilateral-16", "elasticity", "hexahedron-2-everything", "hexahedron-3", "hexahedron-8")
@pytest.mark.parametrize("cell, degree, physics, theta, gpu", CASES)
def test_one_pass_is_volume_and_fluxes(cell, degree, physics, theta, gpu):
    mesh = box_mesh(cell, seed=4)
    state = GivenState(mesh, PHYSICS[physics](mesh.dim), degree, GPU if gpu else None, sipg_theta=theta)
    sources = tensor_specs(state.disc)["sipg_action"].sources
    cell = "sipg_cell.cl" in sources
    gpu = gpu or state.one.device.is_gpu
    assert ("sipg_tensor.cl" not in sources) == gpu and (not cell or state.disc.num_dofs <= CELL_NODES)
    for what in ("residual", "action"):
        assert state.difference(what) < TOLERANCE


@pytest.mark.parametrize(
    "file, degree, gpu", [pytest.param("disk_quad8", 3, False, marks=pytest.mark.full), ("ball_hex", 2, True)]
)
def test_on_curved_cells(file, degree, gpu):
    mesh = Mesh.from_file(MESHES / f"{file}.msh")
    assert mesh.geometry.degree == 2
    state = GivenState(mesh, smooth_poisson(), degree, GPU if gpu else None)
    # Two edges of a disk's corner cells are nearly one line: the Jacobian there is ill-conditioned.
    for what in ("residual", "action"):
        assert state.difference(what) < 1e-10


@pytest.mark.full("3-simplex", "3-tensor")
@pytest.mark.parametrize("simplex", [True, False], ids=["simplex", "tensor"])
@pytest.mark.parametrize("dim", [2, 3])
def test_cells_behind_a_period(dim, simplex):
    """The flux of a cell behind a period is that at its own place, as coefficients need not be periodic."""
    mesh = Mesh.box((4, 3, 3)[:dim], simplex=simplex, periodic="xy")
    physics = Physics({"u": 1}, "u_x[1] - x[0]", f1="(1 + x[0] + 2*x[1])*u_x[d]")
    state = GivenState(mesh, physics, 1, GPU)
    for what in ("residual", "action"):
        assert state.difference(what) < TOLERANCE


@pytest.mark.parametrize("cell", TENSOR)
def test_one_pass_is_the_oracle(cell):
    state = GivenState(box_mesh(cell, seed=4), everything(pressure_offset=0), 2)
    oracle = PenaltyOracle(state.disc)
    cells = [0, state.disc.mesh.num_cells - 1]
    for what in ("residual", "action"):
        expected = np.array([oracle.rows(c, state.of_oracle(what)) for c in cells])
        got = state.fused(what)[state.disc.extended_dofs[cells]]
        assert np.abs(got - expected).max() < 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize(
    "dim, count, lanes, threads", [(2, 5, 32, 4), (3, 3, 16, 8), (3, 4, 16, 8), (3, 5, 8, 7), (3, 8, 2, 64)]
)
def test_nodes_of_work_items(dim, count, lanes, threads):
    """Each node once, none left; what runs in step stands on facets of the same axes where these have nodes enough."""
    rounds = node_rounds(dim, count, PassShape(lanes, threads, 0))
    assert rounds.shape[1] == threads and np.array_equal(np.sort(rounds[rounds >= 0]), np.arange(count**dim))
    together = np.gcd(threads, 32 // lanes)
    at = np.stack(np.unravel_index(np.arange(count**dim), (count,) * dim), axis=-1)
    kinds = ((at == 0) | (at == count - 1)) @ 2 ** np.arange(dim)
    mixed = sum(len(set(kinds[group[group >= 0]])) > 1 for group in rounds.reshape(-1, together))
    assert mixed < 2**dim


@pytest.mark.full
def test_many_cells_and_a_short_last_chunk():
    mesh = box_mesh("quadrilateral", (10, 9))
    assert mesh.num_cells % 32 == 26
    for limits in (None, GPU):
        state = GivenState(mesh, smooth_poisson(), 2, limits)
        assert max(state.difference(what) for what in ("residual", "action")) < TOLERANCE


def test_single_precision():
    state = GivenState(box_mesh("hexahedron"), smooth_poisson(), 2, precision="single")
    assert state.one.device.is_gpu or tensor_shape(state.disc).lanes == 16
    assert max(state.difference(what) for what in ("residual", "action")) < 1e-4


def test_ranks(mpirun):
    """Both kernels on 1 to 3 ranks, where chunks wait for ghosts, in the script's own assertions."""
    for ranks in (1, 2, 3):
        assert "cells agree" in mpirun(ranks, Path(__file__).parent / "given_sipg.py", timeout=200).stdout


# Specs ----------------------------------------------------------------------------------------------------------------


def discretization(cell: str, degree: int, components: int, limits: DeviceLimits) -> InteriorPenalty:
    made_of = elasticity(components) if components > 1 else smooth_poisson()
    return InteriorPenalty(box_mesh(cell), made_of, Options(backend="sipg_gpu", degree=degree), limits)


@pytest.mark.parametrize("cell", TENSOR)
def test_every_degree_fits_a_gpu(cell):
    for degree in range(1, MOST[cell] + 1):
        disc = discretization(cell, degree, 1, GPU)
        shape = tensor_shape(disc)
        assert shape.local_bytes <= GPU.local_bytes
        assert (shape.local_bytes == 0) == (shape.threads == 1) == (degree <= 3 and cell == "quadrilateral")
        spec = tensor_specs(disc)["sipg_action"]
        assert spec.local_bytes == shape.local_bytes and spec.local_size == shape.lanes * shape.threads <= 256


def test_too_little_local_memory_is_said():
    disc = discretization("hexahedron", 7, 3, GPU)
    with pytest.raises(
        OptionError, match=r"-fe_degree 7 with 3 components needs more than the 49152 bytes of local memory .* split"
    ):
        tensor_specs(disc)


@pytest.mark.parametrize("cell", TENSOR)
@pytest.mark.parametrize("count", [2, 3, 5])
def test_places_of_facet_nodes(cell, count):
    """Each facet point of an own facet meets the neighbour's node with the same coordinates, wherever it is."""
    disc = discretization(cell, 1, 1, GPU)
    dim, points = disc.dim, tensor_points(np.linspace(0, 1, count), disc.dim - 1)
    nodes = tensor_points(np.linspace(0, 1, count), dim)
    maps = disc.orientations.permutations(points)
    places = facet_places(disc, count).reshape(2 * dim, len(maps), 4)
    q = np.arange(len(points))
    for facet, on_facet in enumerate(on_facets(cell, points)):
        for orientation, row in enumerate(places[facet]):
            found = row[0] + q % count * row[1] + q // count * row[2]
            assert np.allclose(nodes[found], on_facet[maps[orientation]])
            inside = nodes[found + row[3]] - nodes[found]
            assert np.allclose(np.abs(inside).sum(axis=1), 1 / (count - 1))
            assert (np.abs(nodes[found + row[3] * (count - 1)] - nodes[found]).sum(axis=1) > 0.99).all()


@pytest.mark.parametrize("degree", [1, 4, 16])
def test_derivatives_on_a_line(degree):
    points, weights = gauss_lobatto(degree)
    values, slopes = lagrange(points, points)
    assert np.allclose(values, np.eye(degree + 1), atol=1e-14)
    for power in range(1, degree + 1):
        assert np.allclose(slopes @ points**power, power * points ** (power - 1), atol=1e-11)
    assert weights @ np.ones(degree + 1) == pytest.approx(1)


def test_the_state_may_be_left_out():
    mesh = box_mesh("quadrilateral")
    for physics, state in ((smooth_poisson(), 0), (minimal_surface(), 1)):
        disc = made(mesh, physics, 2, GPU).discretization
        assert tensor_specs(disc)["sipg_action"].macros["STATE"] == state
