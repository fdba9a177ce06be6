"""Patches of first-order cells: fans hold each cell once, and sums equal those of element vectors."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc

sys.path.insert(0, str(Path(__file__).parents[1]))
from sample_meshes import box_mesh  # noqa: E402

from petsc_hdg.discretizations.cg import patches
from petsc_hdg.discretizations.cg.patches import LONGEST, fan_vertices, find_fans
from petsc_hdg.discretizations.cg.scheme import ContinuousGalerkin
from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Physics, Robin
from petsc_hdg.problem import Problem

FACES = {"triangle": (9, 8), "tetrahedron": (4, 4, 3)}
PHYSICS = Physics(
    {"u": 1},
    f0="f0[0] = u[0]*u[0]*x[0] + u_t[0];",
    f1="for (d = 0; d < dim; ++d) f1[d] = (1.0 + u[0])*u_x[d];",
    boundary=[Dirichlet("left", "g[0] = x[1];"), Robin("right", "f0[0] = u[0]*u[0];")],
    name="patched",
)


@pytest.mark.parametrize("cell", FACES)
@pytest.mark.parametrize("longest", range(1, LONGEST + 1))
def test_fans_hold_each_cell_once(cell, longest):
    mesh = box_mesh(cell, FACES[cell], seed=4, comm=PETSc.COMM_SELF)
    nodes, patch, hub = mesh.geometry.cell_nodes, 64, mesh.dim - 1
    fans = find_fans(nodes, mesh.topology.facet_cells, patch, longest)
    assert sorted(fans[fans >= 0]) == list(range(mesh.num_cells))
    size = (fans >= 0).sum(axis=1)
    assert size.max() == longest and (longest == 1 or size.mean() > 0.8 * longest)
    assert (np.where(fans >= 0, fans // patch, (fans[:, 0] // patch)[:, None]) == (fans[:, 0] // patch)[:, None]).all()
    vertices = fan_vertices(nodes, fans)
    for i in range(longest):
        rows = size > i
        of_cell = np.concatenate([vertices[rows, :hub], vertices[rows, hub + i : hub + i + 2]], axis=1)
        assert (np.sort(of_cell) == np.sort(nodes[fans[rows, i]])).all()


def sums(cell: str, variant: str, comm, **settings) -> tuple[dict, ContinuousGalerkin]:
    """Residual and action of random vectors on this rank, with the discretization. Collective."""
    mesh = box_mesh(cell, FACES[cell], seed=4, comm=comm, **settings)
    problem = Problem(mesh, PHYSICS, Options(degree=1, kernel=variant, check_kernels=False, pmat="none"))
    random, calls = np.random.default_rng(5 + mesh.comm.rank), problem.callbacks
    u, rate, du, f, y = (problem.create_vec() for _ in range(5))
    for vector in (u, rate, du):
        vector.setArray(random.uniform(0.2, 1.0, vector.getLocalSize()))
    calls.ifunction(None, 0.3, u, rate, f)
    calls.ijacobian(None, 0.3, u, rate, 1.7, calls.jacobian, calls.jacobian)
    calls.jacobian.mult(du, y)
    return {"residual": f.getArray().copy(), "action": y.getArray().copy()}, problem.discretization


@pytest.mark.parametrize("cell", FACES)
def test_sums_of_fans_are_those_of_element_vectors(monkeypatch, cell):
    monkeypatch.setitem(patches.PATCH_CELLS, cell, 64)
    (found, disc), (expected, _) = (sums(cell, variant, PETSc.COMM_SELF) for variant in ("patch", "cell"))
    assert disc.cells_per_thread == LONGEST and disc.patches.count > 2
    assert len(disc.patches.rows) > 20 and (disc.patches.rounds.shape[2] > 1) == (cell == "tetrahedron")
    for name in expected:
        assert np.abs(found[name] - expected[name]).max() < 1e-13 * np.abs(expected[name]).max()


def test_ranks(mpirun):
    """On 3 ranks, and on 5 of which some have no cells, in the script's own assertions."""
    for ranks, faces in ((3, "9,8"), (5, "1,1")):
        assert "sums agree" in mpirun(ranks, Path(__file__), faces, timeout=200).stdout


def test_patches_without_unknowns():
    """One cell whose vertices are all essential: nothing to compare, and the data are the solution."""
    physics = Physics(
        {"u": 1}, "f0[0] = 0.0;", "f1[0] = u_x[0]; f1[1] = u_x[1];", boundary=[Dirichlet("boundary", 2.0)]
    )
    problem = Problem(box_mesh("quadrilateral", (1, 1), comm=PETSc.COMM_SELF), physics, kernel="patch")
    assert abs(problem.integral("u[0]", problem.solve()) - 2.0) < 1e-12


def main() -> None:
    FACES["triangle"] = tuple(int(n) for n in sys.argv[1].split(","))
    (found, disc), (expected, _) = (sums("triangle", v, PETSc.COMM_WORLD, partition_seed=2) for v in ("patch", "cell"))
    assert disc.mesh.comm.allreduce(disc.dofmap.num_ghosts) > 0
    for name in expected:
        assert np.abs(found[name] - expected[name]).max(initial=0.0) < 1e-13
    PETSc.Sys.Print("sums agree", comm=PETSc.COMM_WORLD)


if __name__ == "__main__":
    main()
