"""Periodic meshes: orders, the same answers on any ranks, conserved mass, output without cells across the domain."""

from __future__ import annotations

import json
from pathlib import Path

import meshio
import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from run_periodic import CASES, numbers, solved

import petsc_hdg as fe
from petsc_hdg.physics import library

SCRIPT = Path(__file__).with_name("run_periodic.py")


@pytest.mark.parametrize("backend, dim, simplex", sorted(CASES))
def test_orders(backend, dim, simplex):
    coarse, fine = (numbers(backend, dim, simplex, faces, PETSc.COMM_SELF) for faces in (4, 8))
    assert np.log2(coarse["error"] / fine["error"]) > 2.6 and fine["volume"] == pytest.approx(1.0, rel=1e-12)
    assert fine["boundaries"] == [("boundary",), ("back", "boundary", "front")][dim - 2]
    value = np.sin(2 * np.pi * 0.99) * np.cos(0.06 * np.pi) * [1, 0.25][dim - 2]
    assert fine["place"] == pytest.approx(value, abs=0.01)


@pytest.mark.full
def test_ranks_agree(mpirun):
    found = json.loads(mpirun(3, SCRIPT).stdout.splitlines()[-1])
    for case in CASES:
        alone, three = numbers(*case, 4, PETSc.COMM_SELF), found[f"{case}"]
        for name in ("error", "volume", "place"):
            assert three[name] == pytest.approx(alone[name], rel=1e-7), (case, name)
        assert abs(three["iterations"] - alone["iterations"]) <= 2


def test_mass_is_conserved_around_the_border():
    """A density wave of Euler's equations, which moves by half of the period."""
    wave = "1 + 0.2*sin(2*PETSC_PI*(x[0] + x[1] - 2*t))"
    physics = library.euler(2, [f"u_t[{c}]" for c in range(4)])
    problem = fe.Problem(fe.Mesh.box((5, 5), periodic="xy", comm=PETSc.COMM_SELF), physics, degree=2, backend="hdg_gpu")
    begin = problem.interpolate([wave, wave, wave, f"2.5 + {wave}"])
    end = problem.solve_in_time(begin, 0.25, 0.0125)
    masses = [problem.integral(["u[0]", "u[3]"], u, t) for u, t in ((begin, 0.0), (end, 0.25))]
    np.testing.assert_allclose(masses[1], masses[0], rtol=1e-9)
    assert problem.integral(f"PetscSqr(u[0] - ({wave}))", end, 0.25) < 1.5e-2**2


def test_output_has_no_cells_across_the_domain(tmp_path):
    problem, u = solved("cg_gpu", 2, True, 4, PETSc.COMM_SELF)
    problem.write(tmp_path / "wave.vtu", u)
    written, grid = meshio.read(tmp_path / "wave.vtu"), problem.to_numpy(u)
    for points, cells in ((written.points, written.cells[0].data), (grid.points, grid.cells)):
        assert np.ptp(points[cells], axis=1).max() == pytest.approx(0.25) and points.max() == pytest.approx(1.0)


def test_ways_to_a_periodic_mesh():
    box = fe.Mesh.box((4, 3), periodic="x", comm=PETSc.COMM_SELF)
    assert box.boundaries == ("bottom", "boundary", "top") and box.num_vertices == 16
    again = fe.Mesh(box.dm)
    np.testing.assert_allclose(again.geometry.periods, [1, 0])
    np.testing.assert_allclose(np.sort(again.cell_corners, axis=1), np.sort(box.cell_corners, axis=1))
    with petsc_options(dm_plex_box_bd="periodic,none", dm_plex_box_faces="4,3", dm_refine=1):
        refined = fe.Mesh.from_options(PETSc.COMM_SELF)
    assert refined.num_cells == 4 * box.num_cells and refined.num_vertices == 8 * 7
    assert np.ptp(refined.cell_corners[..., 0], axis=1).max() == pytest.approx(1 / 8)


def test_a_mesh_of_meshio_with_names():
    points = [[x, y] for y in (0.0, 1.0) for x in (0.0, 1.0, 2.0, 3.0)]
    quads = [[k, k + 1, k + 5, k + 4] for k in range(3)]
    sides = {"wall": [[0, 1], [1, 2], [2, 3]], "inflow": [[0, 4]], "outflow": [[7, 3]]}
    lines = np.concatenate(list(sides.values()))
    first = dict(zip(sides, (0, 3, 4), strict=True))
    sets = {name: [np.array([], int), first[name] + np.arange(len(sides[name]))] for name in sides}
    given = meshio.Mesh(points, [("quad", quads), ("line", lines)], cell_sets=sets)
    mesh = fe.Mesh.from_meshio(given, PETSc.COMM_SELF, periodic="x")
    assert mesh.boundaries == ("boundary", "wall") and mesh.num_vertices == 6
    assert mesh.boundary_facets("boundary")[0].size == 6
