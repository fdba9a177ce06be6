"""Products of interior penalty on rectangles and boxes against volume and fluxes apart, and against numpy."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from given_sipg import GivenState, made, parts_error
from petsc4py import PETSc

sys.path.insert(0, str(Path(__file__).parents[1]))
from sample_meshes import box_mesh, box_sides  # noqa: E402

from petsc_hdg.device import Kernel
from petsc_hdg.discretizations.sipg.affine import (
    STRAIGHT,
    affine_shape,
    affine_spec,
    build_links,
    classes_of_cells,
    line_matrix,
    line_tables,
)
from petsc_hdg.discretizations.sipg.oracle import PenaltyOracle
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.errors import OptionError
from petsc_hdg.mesh import Mesh
from petsc_hdg.mesh.cell_list import box_cells
from petsc_hdg.operators.sipg import passes
from petsc_hdg.physics import Dirichlet, Neumann, Physics, Robin

GPU = DeviceLimits(local_bytes=49152, max_work_group=1024, is_gpu=True)  # work-groups as on a GPU, wherever they run
TOLERANCE = 1e-12  # of the largest entry
MOST = {"quadrilateral": 16, "hexahedron": 8}


def diffusion(reaction: str = "", tensor: str = "(1 + d)*kappa*u_x[d]", **settings) -> Physics:
    """Diffusion with a diagonal tensor, Dirichlet data on two sides, natural ones on another."""
    return Physics(
        {"u": 1},
        f0=f"f0[0] = -x[0]{reaction};",
        f1=f"for (d = 0; d < dim; ++d) f1[d] = {tensor};",
        constants={"kappa": 1.3},
        boundary=[Dirichlet("left", "g[0] = x[1];"), Dirichlet("top", 0.0), Neumann("right", "g[0] = x[1];")],
        name="diffusion",
        **settings,
    )


class AffineState(GivenState):
    """As GivenState, with products by the kernels for constant coefficients."""

    def __init__(self, mesh, physics, degree: int, limits=None, **settings):
        super().__init__(mesh, physics, degree, limits, **settings)
        self.one = made(mesh, physics, degree, limits, sipg_kernel="affine", **settings)
        self.disc = self.one.discretization


# cell, degree, theta, reaction, limits
CASES = [
    ("quadrilateral", 1, 1, "", None),
    ("quadrilateral", 1, 1, " + 2*u[0] + 3*u_t[0]", GPU),
    ("quadrilateral", 2, 0, " + u[0]", None),
    ("quadrilateral", 3, 1, "", GPU),
    ("quadrilateral", 6, 1, " + u[0]", GPU),
    ("quadrilateral", 8, -1, "", GPU),
    ("quadrilateral", 16, 1, "", GPU),
    ("hexahedron", 1, 1, " + u_t[0]", GPU),
    ("hexahedron", 2, -1, " + u[0]", None),
    ("hexahedron", 3, 0, " + u[0]", GPU),
    ("hexahedron", 5, 1, " + u_t[0]", GPU),
    ("hexahedron", 8, 1, "", None),
]


def test_the_table_is_complete():
    for cell, most in MOST.items():
        rows = [row for row in CASES if row[0] == cell]
        assert {1, most} <= {degree for _, degree, *_ in rows}
        assert {theta for _, _, theta, *_ in rows} == {1, 0, -1}
        assert {limits for *_, limits in rows} == {None, GPU}
    shapes = {
        affine_shape(2 + (c == "hexahedron"), p, 8, limits or DeviceLimits()).kernel for c, p, _, _, limits in CASES
    }
    assert shapes == {"lanes", "cell", "line"}


@pytest.mark.parametrize("cell, degree, theta, reaction, limits", CASES)
def test_it_is_volume_and_fluxes(cell, degree, theta, reaction, limits):
    """Frames, orders of cells and the last chunk are random."""
    faces = (9, 7) if cell == "quadrilateral" else (3, 4, 3)
    state = AffineState(box_mesh(cell, faces, amplitude=0), diffusion(reaction), degree, limits, sipg_theta=theta)
    assert state.one.product == "affine" and state.disc.mesh.num_cells > 32
    assert state.difference("action") < TOLERANCE * (1 + degree // 8)
    assert parts_error(state.one, state.values[2]) < 1e-14


@pytest.mark.full("hexahedron")
@pytest.mark.parametrize("cell, degree", [("quadrilateral", 6), ("hexahedron", 3)])
def test_the_shape_changes_no_bit(cell, degree):
    faces = (9, 7) if cell == "quadrilateral" else (3, 4, 3)
    state = AffineState(box_mesh(cell, faces, amplitude=0), diffusion(), degree, GPU)
    fast, shape = state.one.fast, passes.shape_of(state.disc)
    expected = state._result(state.one, "action")
    assert shape.kernel == "line" and shape.threads > 1
    for other in (replace(shape, threads=shape.threads - 1), replace(shape, cells=shape.cells // 2)):
        spec = affine_spec(state.disc.dim, degree, state.disc.theta, "double", other)
        fast.kernels = {spec.name: Kernel(spec, state.one.device)}
        assert (state._result(state.one, "action") == expected).all(), other


def structured(cell: str, faces, stretched: bool):
    """A box in the mesh's own frame, with sides of random lengths if asked for."""
    if not stretched:
        return Mesh.box(faces, simplex=False)
    listed, random = box_cells(faces, False, 0.0, 1.0), np.random.default_rng(2)
    points = listed.points.copy()
    for axis, count in enumerate(faces):
        ticks = np.concatenate([[0], np.cumsum(random.uniform(0.5, 1.5, count))])
        points[:, axis] = (ticks / ticks[-1])[np.rint(points[:, axis] * count).astype(int)]
    return Mesh.from_cells(
        listed.cells, points, cell=cell, comm=PETSc.COMM_SELF, boundaries=box_sides(cell, listed.cells, points)
    )


EVERYWHERE = {"boundary": [Dirichlet("boundary", 0.0)]}


@pytest.mark.parametrize("limits", [None, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("cell, faces, degree", [("quadrilateral", (40, 24), 2), ("hexahedron", (16, 16, 16), 1)])
def test_chunks_with_straight_neighbours(cell, faces, degree, limits):
    physics = Physics({"u": 1}, "f0[0] = u[0];", "for (d = 0; d < dim; ++d) f1[d] = u_x[d];", **EVERYWHERE)
    state = AffineState(structured(cell, faces, False), physics, degree, limits)
    assert state.difference("action") < TOLERANCE
    assert (state.one.fast._header[:, 6] & STRAIGHT).any()
    assert state.one.fast.classes <= 3**state.disc.dim


def test_every_cell_its_own_class():
    state = AffineState(structured("quadrilateral", (12, 11), True), diffusion(), 2)
    assert state.difference("action") < TOLERANCE
    assert state.one.fast.classes == state.disc.mesh.num_cells


@pytest.mark.parametrize("cell", ["quadrilateral", "hexahedron"])
def test_it_is_the_oracle(cell):
    state = AffineState(box_mesh(cell, amplitude=0), diffusion(" + u[0] + u_t[0]"), 2)
    oracle, cells = PenaltyOracle(state.disc), [0, state.disc.mesh.num_cells - 1]
    expected = np.array([oracle.rows(c, state.of_oracle("action")) for c in cells])
    got = state._result(state.one, "action")[state.disc.extended_dofs[cells]]
    assert np.abs(got - expected).max() < TOLERANCE * np.abs(expected).max()


def test_single_precision():
    for limits in (None, GPU):
        state = AffineState(box_mesh("quadrilateral", (8, 6), amplitude=0), diffusion(), 3, limits, precision="single")
        assert state.difference("action") < 1e-4


def test_new_constants_and_shifts():
    state = AffineState(box_mesh("quadrilateral", (8, 6), amplitude=0), diffusion(" + u_t[0]"), 2)
    before = state._result(state.one, "action")
    for operator in (state.one, state.two):
        operator.set_constants([2.6])
    assert state.difference("action") < TOLERANCE
    assert np.abs(state._result(state.one, "action") - before).max() > 0.1


# What it takes --------------------------------------------------------------------------------------------------------


REFUSED = {
    "distorted cells": (0.1, diffusion()),
    "full tensor": (0, diffusion(tensor="u_x[d] + 0.3*u_x[1 - d]")),
    "coefficient of x": (0, diffusion(tensor="(1 + x[0])*u_x[d]")),
    "convection": (0, diffusion(" + u_x[0]")),
    "nonlinear": (0, diffusion(" + u[0]*u[0]")),
    "Robin": (0, Physics({"u": 1}, "f0[0] = 0;", "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
                         boundary=[Dirichlet("left", 0.0), Robin("top", "f0[0] = 2*u[0];")])),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_said(what):
    amplitude, physics = REFUSED[what]
    mesh = box_mesh("quadrilateral", amplitude=amplitude)
    assert made(mesh, physics, 2).fast is None
    with pytest.raises(OptionError, match="-sipg_kernel affine takes one component, constant coefficients"):
        made(mesh, physics, 2, sipg_kernel="affine")


def test_turned_boxes_with_an_isotropic_tensor():
    listed, turn = box_cells((6, 6), False, 0.0, 1.0), np.array([[0.8, 0.6], [-0.6, 0.8]])
    mesh = Mesh.from_cells(listed.cells, listed.points @ turn, cell="quadrilateral", comm=PETSc.COMM_SELF)
    physics = Physics({"u": 1}, "f0[0] = 0;", "for (d = 0; d < dim; ++d) f1[d] = u_x[d];", **EVERYWHERE)
    state = AffineState(mesh, physics, 3)
    assert state.difference("action") < TOLERANCE
    assert (
        made(mesh, Physics({"u": 1}, "f0[0] = 0;", "f1[0] = u_x[0]; f1[1] = 2*u_x[1];", **EVERYWHERE), 3).fast is None
    )


# Data -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 2, 5, 16])
@pytest.mark.parametrize("theta", [1, 0, -1])
def test_halves_of_the_matrix_of_a_line(degree, theta):
    matrix, tables = line_matrix(degree, theta), line_tables(degree, theta)
    assert np.allclose(matrix, matrix[::-1, ::-1], atol=1e-11 * np.abs(matrix).max())
    values = np.random.default_rng(0).normal(size=degree + 3)
    half = tables["EVEN"].shape[1]
    even, odd = values + values[::-1], values - values[::-1]
    if degree % 2 == 0:
        even[half - 1] /= 2
    rows = tables["EVEN"] @ even[:half] + tables["ODD"] @ odd[:half]
    assert np.allclose(rows, (matrix @ values)[: len(rows)], rtol=1e-11)
    # Constants, also beyond the ends, are in the kernel.
    assert np.abs(matrix @ np.ones(degree + 3)).max() < 1e-10 * np.abs(matrix).max()


def test_neighbours_too_far_for_a_link():
    """Cells beyond the reach of 16 bits are found in the table of neighbours."""
    count = 1 << 14
    neighbour = np.tile(np.arange(count), (4, 1))
    neighbour[2] = np.random.default_rng(0).permutation(count)
    header, links = build_links(neighbour, np.zeros_like(neighbour), np.zeros_like(neighbour, bool), count, 2)
    assert links.dtype == np.uint16 and set(header[:, 6]) == {1 << 1}  # facet 2 is side 1
    state = AffineState(structured("quadrilateral", (90, 60), False), diffusion_everywhere(), 1)
    fast = state.one.fast
    random = np.random.default_rng(1).integers(0, 2, len(fast._header)).astype(np.int32) * 15
    fast._header[:, 6] = (fast._header[:, 6] & ~STRAIGHT) | random
    assert state.difference("action") < TOLERANCE


def diffusion_everywhere() -> Physics:
    return Physics({"u": 1}, "f0[0] = u[0];", "for (d = 0; d < dim; ++d) f1[d] = u_x[d];", **EVERYWHERE)


def test_classes_of_cells():
    rows = np.repeat(np.array([[1.0, 2.0], [1.0, 3.0]]), 50, axis=0) * (1 + 1e-15)
    number, data = classes_of_cells(rows)
    assert len(data) == 2 and np.allclose(data[number], rows, rtol=1e-13)
    number, data = classes_of_cells(np.random.default_rng(0).normal(size=(40, 3)))
    assert len(data) == 40 and (number == np.arange(40)).all()


@pytest.mark.parametrize("dim, most", [(2, 16), (3, 8)])
def test_every_degree_fits_a_gpu(dim, most):
    for degree in range(1, most + 1):
        shape = affine_shape(dim, degree, 8, replace(GPU, ptx=90))
        assert shape.local_size <= 256 and 32 % shape.cells == 0
        assert shape.kernel == "cell" or shape.cells * (degree + 1) ** dim * 8 <= GPU.local_bytes


def test_ranks(mpirun):
    """2 and 3 ranks, where chunks wait for ghosts, in the script's own assertions."""
    for ranks in (2, 3):
        assert "cells agree" in mpirun(ranks, Path(__file__), timeout=200).stdout


def main() -> None:
    cells = 0
    for cell, faces, degree in (("quadrilateral", (11, 9), 3), ("hexahedron", (4, 4, 5), 2)):
        for limits in (None, GPU):
            mesh = box_mesh(cell, faces, amplitude=0, comm=PETSc.COMM_WORLD, partition_seed=2)
            state = AffineState(mesh, diffusion(" + u_t[0]"), degree, limits)
            assert mesh.comm.size == 1 or state.disc.neighbours.num_ghosts > 0
            assert state.difference("action") < TOLERANCE, cell
        cells += mesh.comm.allreduce(mesh.num_cells)
    PETSc.Sys.Print(f"{cells} cells agree", comm=PETSc.COMM_WORLD)


if __name__ == "__main__":
    main()
