"""Interiors of cells in checkpoints: at their places whatever the numbers of a mesh, and not needed by a restart."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from sample_meshes import box_mesh

import petsc_hdg as fe
from petsc_hdg.problem.newton.joint_newton import Interiors

SCHEMES = {"hdg_gpu": {"backend": "hdg_gpu", "degree": 2}, "cg_gpu": {"cg_condense": True, "degree": 3}}


def problem(scheme: str, order: int, f1: str = "(1 + u[0]*u[0])*u_x[d]") -> fe.Problem:
    mesh = box_mesh("quadrilateral", (4, 4), amplitude=0, order_seed=order, comm=PETSc.COMM_SELF)
    load = fe.Physics({"u": 1}, "f0[0] = -1;", f"for (d = 0; d < dim; ++d) f1[d] = {f1};",
                      boundary=[fe.Dirichlet("boundary", 0.0)], name="load")  # fmt: skip
    return fe.Problem(mesh, load, check_kernels=False, **SCHEMES[scheme])


def at_nodes(found: fe.Problem) -> np.ndarray:
    """A function of x [eliminated dof, cell] at the nodes of the interiors of rectangles."""
    disc, mesh = found.discretization, found.mesh
    inside = np.asarray(disc.cell_element.nodes)[-disc.num_eliminated :]
    corners = mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells, :3]]
    x = corners[None, :, 0] + np.einsum("nk,ckd->ncd", inside, corners[:, 1:] - corners[:, :1])
    return np.sin(3 * x[..., 0]) + x[..., 1]


def interior(found: fe.Problem) -> np.ndarray:
    disc = found.discretization
    shape = (disc.num_eliminated, disc.stride)
    return found.arrays.to_host(found.operator.interior, shape)[:, : found.mesh.num_cells]


def filled(found: fe.Problem) -> fe.Problem:
    disc = found.discretization
    values = np.zeros((disc.num_eliminated, disc.stride))
    values[:, : found.mesh.num_cells] = at_nodes(found)
    found.arrays.upload(found.operator.interior, values, "test")
    return found


@pytest.mark.parametrize("scheme", SCHEMES)
def test_come_back_to_other_numbers(scheme, tmp_path):
    first, second = filled(problem(scheme, 1)), problem(scheme, 2)
    assert np.abs(at_nodes(first) - at_nodes(second)).max() > 0.1, "numbers are the same"
    first.checkpoint(tmp_path / "a.h5", first.create_vec())
    second.restart(tmp_path / "a.h5")
    assert np.abs(interior(second) - at_nodes(second)).max() < 1e-14


def test_are_not_needed(tmp_path, monkeypatch):
    first = filled(problem("hdg_gpu", 1))
    with monkeypatch.context() as patch:
        patch.setattr(Interiors, "are_kept", staticmethod(lambda problem: False))
        first.checkpoint(tmp_path / "old.h5", first.create_vec())
    second = problem("hdg_gpu", 2)
    assert second.restart(tmp_path / "old.h5") is not None and second.checkpoints.interiors is not None
    assert not interior(second).any()


@pytest.mark.parametrize("f1, kept", [("(1 + u[0]*u[0])*u_x[d]", True), ("u_x[d]", False)])
def test_are_kept_where_physics_is_nonlinear(f1, kept):
    assert Interiors.are_kept(problem("hdg_gpu", 1, f1)) == kept


@pytest.mark.parametrize("cell, degree", [("quadrilateral", 4), ("triangle", 3), ("tetrahedron", 2)])
def test_begin_smoothly_next_to_the_trace(cell, degree):
    """At affine functions themselves, near others that a cell has, and between the bounds of any trace."""
    mesh = box_mesh(cell, None, seed=3, comm=PETSc.COMM_SELF)
    load = fe.Physics({"u": 1}, "-1", "(1 + u[0]*u[0])*u_x[d]", boundary=[fe.Dirichlet("boundary", 0.0)])
    found = fe.Problem(mesh, load, backend="hdg_gpu", degree=degree, check_kernels=False)
    disc = found.discretization
    spec = disc.begin_spec()
    extension = np.asarray(spec.tables["EXTENSION"]).reshape(disc.num_interior, disc.num_trace)
    inside, outside = disc.cell_element.nodes, disc.spaces[0].element.nodes
    affine, smooth = (lambda x: 2 + x @ np.arange(1, disc.dim + 1)), (lambda x: x[:, 0] ** 2 - x[:, 1] ** 2)
    np.testing.assert_allclose(extension @ affine(outside), affine(inside), atol=1e-12)
    np.testing.assert_allclose(extension @ smooth(outside), smooth(inside), atol=0.1)
    u = found.create_vec()
    u.setArray(np.random.default_rng(4).uniform(0.5, 2.0, u.local_size))
    with found.access.read(u) as x:
        found.operator.begin(x)
        trace = found.operator.trace(x, 0.0)
        values = np.concatenate([found.arrays.to_host(b, n) for b, n in (
            (trace.owned, disc.dofmap.num_owned), (trace.tail, disc.dofmap.num_tail))])  # fmt: skip
    traces = values[disc.dofmap.compact[disc.dofmap.cell_dofs]].T
    expected = np.clip(extension @ traces, traces.min(axis=0), traces.max(axis=0))
    np.testing.assert_allclose(interior(found), expected, atol=1e-13)
