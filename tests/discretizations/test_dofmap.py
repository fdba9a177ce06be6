"""Numbers of continuous unknowns on one rank against those that PETSc's star forest gives."""

from __future__ import annotations

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


def two_fields() -> Physics:
    """Fields of different degrees, of which some components are essential on some sides."""
    f0 = {"v": "f0[0] = u[0]; f0[1] = u[1];", "q": "f0[0] = u[2];"}
    boundary = [Dirichlet("left", "g[0] = 0;", field="v", components=[1]), Dirichlet("top", "g[0] = 0;", field="q")]
    return Physics({"v": Field(2, degree_offset=1), "q": 1}, f0, boundary=boundary, name="two fields")


@pytest.mark.parametrize("cell", ["triangle", "quadrilateral", "tetrahedron", "hexahedron"])
def test_free_unknowns_stand_in_the_order_of_petsc(cell, monkeypatch):
    mesh = box_mesh(cell, (3, 2) if cell in ("triangle", "quadrilateral") else (2, 1, 2), comm=PETSc.COMM_SELF)
    options = Options(backend="cg_gpu", degree=2)
    disc = scheme(options)(mesh, two_fields(), options)
    found = disc.dofmap
    owned, ghosts, _, _, count = dofmap._ownership(mesh, disc.dm)
    assert 0 < found.num_constrained < len(found.compact) and not len(ghosts)
    assert section_of(disc.dm).getStorageSize() == len(found.compact)
    assert count == found.num_owned and np.array_equal(found.compact[owned], np.arange(count))


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
