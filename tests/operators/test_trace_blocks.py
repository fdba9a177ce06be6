"""A stored trace matrix in PETSc's hands: its Mat, its facets' blocks and their inverses, block Jacobi as a PC."""

from __future__ import annotations

import numpy as np
import pytest
from bare_trace import BareTrace
from petsc4py import PETSc
from sample_meshes import SHAPES
from trace_samples import ESSENTIAL, KINDS, close, made

from petsc_hdg.device.vecs import VecAccess
from petsc_hdg.errors import SolveError
from petsc_hdg.operators.trace.matrix import FacetBlocks, TraceMatrix
from petsc_hdg.operators.trace.stores import create_format


@pytest.mark.parametrize("kind", KINDS)
def test_mat_operations(kind):
    op, trace = made(kind, "triangle", 2, 2, ESSENTIAL["partial"])
    aij = op.aij()
    mat = TraceMatrix(op, VecAccess(op.arrays)).as_mat(aij.getSizes()[0], aij.comm, PETSc.Vec.Type.STANDARD)
    x, y = mat.createVecs()
    assert x.getType() == PETSc.Vec.Type.SEQ and x.getSizes() == aij.createVecs()[0].getSizes()
    x.setArray(np.random.default_rng(3).uniform(-1, 1, x.getLocalSize()))
    copied = mat.duplicate(copy=True)
    for a, b in ((mat, aij), (copied, aij)):
        close(op, a.getDiagonal().getArray(), b.getDiagonal().getArray())
        for product in ("mult", "multTranspose"):
            expected = y.duplicate()
            getattr(a, product)(x, y)
            getattr(b, product)(x, expected)
            close(op, y.getArray(), expected.getArray())
    viewer = PETSc.Viewer().createASCII("/dev/null", comm=aij.comm)
    mat.view(viewer)
    with pytest.raises(Exception, match="come from the assembled matrix, and there is none|error code 101"):
        mat.getDiagonalBlock()
    context = copied.getPythonContext()
    assert context.holders == 1
    copied.destroy()
    assert context.holders == 0


@pytest.mark.parametrize("essential", ESSENTIAL)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", SHAPES)
def test_blocks_and_their_inverses(kind, cell, essential):
    op, trace = made(kind, cell, 1, 2, ESSENTIAL[essential])
    blocks = FacetBlocks(trace)
    blocks.collect()
    layout, A = blocks.layout, op.matrix().toarray()
    expected = np.zeros((layout.num_owned, layout.block, layout.block))
    for f, numbers in enumerate(layout.numbers[: layout.num_owned]):
        free = numbers < op.num_free
        expected[f] = np.eye(layout.block)
        expected[f][np.ix_(free, free)] = A[np.ix_(numbers[free], numbers[free])]
    close(op, blocks.to_host(), expected)
    blocks.invert()
    close(op, blocks.to_host(), np.linalg.inv(expected))
    x = np.random.default_rng(2).uniform(-1, 1, op.dofmap.num_owned)
    for transpose in (False, True):
        y = op.arrays.zeros(len(x))
        blocks.apply(op.arrays.to_device(x), y, transpose)
        close(op, op.arrays.to_host(y, len(x)), applied(layout, np.linalg.inv(expected), x, transpose))
    product, b, before = np.random.default_rng(3).uniform(-1, 1, (3, len(x)))
    given = [op.arrays.to_device(each) for each in (product, x, b, before)]
    blocks.combine(*given, keep=0.3, mix=-0.7, scale=1.3)
    corrected = applied(layout, np.linalg.inv(expected), b - product, False)
    close(op, op.arrays.to_host(given[-1], len(x)), 0.3 * before - 0.7 * x + 1.3 * corrected)


def applied(layout, inverse, x, transpose) -> np.ndarray:
    y = np.zeros_like(x)
    for block, numbers in zip(inverse, layout.numbers, strict=False):
        free = numbers < len(x)
        y[numbers[free]] = (block.T if transpose else block)[np.ix_(free, free)] @ x[numbers[free]]
    return y


def test_inverses_take_pivots():
    """Blocks that elimination without row exchanges cannot invert."""
    op = BareTrace("triangle", 2, 2)
    m = op.spaces[0].num_dofs // 3
    reversal = np.kron(np.eye(3), np.eye(m)[::-1])
    op.K[:] = reversal + 1e-3 * np.random.default_rng(4).uniform(-1, 1, op.K.shape)
    op.fill(trace := create_format("dbf", op), 100)
    blocks = FacetBlocks(trace)
    blocks.collect()
    before = blocks.to_host()
    blocks.invert()
    close(op, blocks.to_host() @ before, np.broadcast_to(np.eye(m), before.shape).copy())


def test_a_singular_block_is_one_sentence():
    op = BareTrace("triangle", 1, 1)
    op.K[:] = 0.0
    op.fill(trace := create_format("dbf", op), 100)
    blocks = FacetBlocks(trace)
    with pytest.raises(SolveError, match="trace matrix is singular: use another -pc_type"):
        blocks.update()


@pytest.mark.parametrize("kind", KINDS)
def test_facet_block_jacobi_is_a_pc(kind):
    op, trace = made(kind, "quadrilateral", 2, 2, ESSENTIAL["partial"])
    aij = op.aij()
    mat = TraceMatrix(op, VecAccess(op.arrays)).as_mat(aij.getSizes()[0], aij.comm, PETSc.Vec.Type.STANDARD)
    ksp = PETSc.KSP().create(aij.comm)
    ksp.setOperators(mat)
    ksp.setType("gmres")
    ksp.setTolerances(rtol=1e-13)
    pc = ksp.getPC()
    pc.setType("python")
    pc.setPythonType("petsc_hdg.FacetBlockJacobi")
    b, x = mat.createVecs()
    b.set(1.0)
    ksp.solve(b, x)
    assert ksp.getConvergedReason() > 0
    assert (aij * x - b).norm() < 1e-12 * b.norm()
    context = pc.getPythonContext()
    assert context.holders == 1
    pc.setType("none")
    assert context.holders == 0


def test_facet_block_jacobi_needs_a_trace_matrix():
    op = BareTrace("triangle", 1, 1)
    pc = PETSc.PC().create(PETSc.COMM_SELF)
    pc.setOperators(op.aij())
    pc.setType("python")
    pc.setPythonType("petsc_hdg.FacetBlockJacobi")
    with pytest.raises(Exception, match="FacetBlockJacobi takes a stored trace matrix|error code 101"):
        pc.setUp()
