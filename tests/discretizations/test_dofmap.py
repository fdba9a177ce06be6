"""Numbers of continuous unknowns against those that PETSc's star forest gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from sample_meshes import box_mesh

from petsc_hdg import threads
from petsc_hdg.discretizations import dofmap, scheme
from petsc_hdg.mesh import order
from petsc_hdg.options import Options
from petsc_hdg.petsc.c_library import section_of
from petsc_hdg.physics import Dirichlet, Field, Physics

SCRIPT = Path(__file__).with_name("run_dofmap.py")


def two_fields(degree_offset: int = 1) -> Physics:
    """Fields of different degrees, of which some components are essential on some sides."""
    f0 = {"v": "f0[0] = u[0]; f0[1] = u[1];", "q": "f0[0] = u[2];"}
    boundary = [Dirichlet("left", "g[0] = 0;", field="v", components=[1]), Dirichlet("top", "g[0] = 0;", field="q")]
    return Physics({"v": Field(2, degree_offset=degree_offset), "q": 1}, f0, boundary=boundary, name="two fields")


def numbers_of_petsc(disc, found) -> None:
    """Assert that a DofMap has the numbers of the global section of the scheme's DM."""
    dm, section = disc.dm, section_of(disc.dm)
    assert section.getStorageSize() == len(found.compact)
    dm.getGlobalSection()  # makes the star forest
    count, leaves, remote = (dm.getSectionSF if hasattr(dm, "getSectionSF") else dm.getDefaultSF)().getGraph()
    leaves, (rank, place) = np.arange(len(remote)) if leaves is None else leaves, remote.reshape(-1, 2).T
    mine = rank == disc.mesh.comm.rank
    assert count == found.num_owned == np.count_nonzero(mine)
    assert np.array_equal(found.compact[leaves[mine]], place[mine])
    ghosts = found.compact[leaves[~mine]] - count
    assert np.array_equal(np.sort(ghosts), np.arange(found.num_ghosts))
    assert np.array_equal(found.ghost_rank[ghosts], rank[~mine])
    assert np.array_equal(found.ghost_index[ghosts], place[~mine])
    order = np.lexsort((found.ghost_index, found.ghost_rank))
    assert np.array_equal(order, np.arange(found.num_ghosts))


@pytest.mark.parametrize("cell", ["triangle", "quadrilateral", "tetrahedron", "hexahedron"])
def test_unknowns_stand_in_the_order_of_petsc(cell):
    mesh = box_mesh(cell, (3, 2) if cell in ("triangle", "quadrilateral") else (2, 1, 2), comm=PETSc.COMM_SELF)
    options = Options(backend="cg_gpu", degree=2)
    disc = scheme(options)(mesh, two_fields(), options)
    numbers_of_petsc(disc, disc.dofmap)
    assert 0 < disc.dofmap.num_constrained < len(disc.dofmap.compact) and not disc.dofmap.num_ghosts


@pytest.mark.quick
def test_unknowns_on_ranks_stand_in_the_order_of_petsc(mpirun):
    mpirun(3, SCRIPT)


@pytest.mark.parametrize("cell", ["triangle", "quadrilateral", "tetrahedron", "hexahedron"])
def test_numbers_do_not_depend_on_the_parts_they_are_made_in(cell, monkeypatch):
    found = []
    for chunk in (dofmap.CHUNK, 3):
        monkeypatch.setattr(dofmap, "CHUNK", chunk)
        monkeypatch.setattr(order, "CHUNK", chunk)
        monkeypatch.setattr(threads, "threads_of_rank", lambda most: 3)
        mesh = box_mesh(cell, (4, 3) if cell in ("triangle", "quadrilateral") else (2, 2, 2), comm=PETSc.COMM_SELF)
        assert 3 < mesh.num_cells < dofmap.CHUNK or chunk == 3
        options = Options(backend="cg_gpu", degree=3)
        numbers = scheme(options)(mesh, two_fields(), options).dofmap
        found.append((mesh.topology.cells, mesh.point_order((0, 1, 2)), numbers.cell_dofs, numbers.compact))
    for whole, parts in zip(*found, strict=True):
        np.testing.assert_array_equal(parts, whole)
