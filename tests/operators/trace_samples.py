"""Sample trace matrices in every format, boxes of congruent cells, and the comparison of products with scipy's."""

from __future__ import annotations

from functools import partial

import numpy as np
from bare_trace import BareTrace

import petsc_hdg as fe
from petsc_hdg.discretizations.congruence import Shapes
from petsc_hdg.operators.trace.congruent_facets import CongruentFacets
from petsc_hdg.operators.trace.stores import create_format
from petsc_hdg.operators.vectors import TailedVector

EPS = {"double": 2.0**-52, "single": 2.0**-23}
ESSENTIAL = {"none": (), "whole": [("left", (0, 1)), ("top", (0, 1))], "partial": [("left", (1,)), ("top", (0, 1))]}
KINDS = ("dbf", "element", "symmetric")
FACES = {"triangle": (16, 12), "quadrilateral": (24, 16), "tetrahedron": (6, 6, 6), "hexahedron": (8, 6, 6)}


def made(kind, *arguments, tile=1000, **settings):
    op = BareTrace(*arguments, symmetric=kind == "symmetric", **settings)
    op.format = create_format(kind, op)
    op.format.share(None)
    op.fill(op.format, tile)
    return op, op.format


def congruent(op, shape) -> CongruentFacets:
    """A format for cells of shapes [cell], one of each having the first of its cells for a representative."""
    found = np.unique(shape, return_index=True)[1]
    return CongruentFacets(op, None, Shapes(np.asarray(shape, np.int32), found.astype(np.int32)))


def direction(op) -> tuple[TailedVector, np.ndarray]:
    """A random vector on the device, ghosts included, and the same on the host."""
    values = np.random.default_rng(1).uniform(-1, 1, op.num_free)
    x = TailedVector(op)
    x.owned = op.arrays.to_device(np.append(values[: op.dofmap.num_owned], 0.0))
    x.tail = op.arrays.to_device(
        np.concatenate([values[op.dofmap.num_owned :], np.zeros(op.dofmap.num_constrained + 1)])
    )
    return x, values


def close(op, got, expected) -> None:
    assert got.shape == expected.shape and np.isfinite(got).all() and np.abs(expected).max() > 1e-3
    error = np.abs(got - expected).max() / np.abs(expected).max()
    assert error < 200 * EPS[op.arrays.precision]


def compare(op, trace) -> None:
    A, (x, values) = op.matrix(), direction(op)
    close(op, op.local(lambda *y: trace.mult(x, *y)), A @ values)
    close(op, op.local(lambda *y: trace.mult(x, *y, transpose=True)), A.T @ values)
    close(op, op.local(trace.diagonal), A.diagonal())


def keeps_its_values(op, trace) -> None:
    """A copy has the values from before a change of the matrices."""
    A, (x, values) = op.matrix(), direction(op)
    kept = trace.copy()
    op.K *= 3.0
    op.fill(trace, 100)
    close(op, op.local(lambda *y: kept.mult(x, *y)), A @ values)
    close(op, op.local(lambda *y: trace.mult(x, *y)), 3 * (A @ values))


def box(cell: str, **settings) -> fe.Mesh:
    return fe.Mesh.box(FACES[cell], simplex=cell in ("triangle", "tetrahedron"), **settings)


def shaken(mesh: fe.Mesh, amount: float) -> fe.Mesh:
    """The mesh with every vertex moved at random by up to `amount`."""
    mesh.geometry.nodes += np.random.default_rng(1).uniform(-amount, amount, mesh.geometry.nodes.shape)
    return mesh


def real_product(mesh, kind: str, physics) -> tuple:
    """Products with a random vector of a linear problem's trace matrix and its transpose, its diagonal; the format."""
    problem = fe.Problem(mesh, physics, backend="hdg_gpu", degree=1, hdg_trace_mat=kind)
    op = problem.operator
    op.linearize(op.arrays.zeros(max(1, op.dofmap.num_owned)))
    x = op.arrays.to_device(np.random.default_rng(1).uniform(-1, 1, op.dofmap.num_owned))
    found = []
    for run in (
        partial(op.format.apply, x),
        partial(op.format.apply, x, transpose=True),
        partial(op.format.apply_column, -1),
    ):
        y = op.arrays.zeros(op.dofmap.num_owned)
        run(y)
        found.append(op.arrays.to_host(y, op.dofmap.num_owned))
    return *found, op.format
