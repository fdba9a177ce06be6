"""Trace formats with random element matrices against scipy: products, transposes, diagonals, blocks, memory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from sample_meshes import SHAPES
from trace_stand_in import TraceStandIn

from petsc_hdg.device import verified
from petsc_hdg.device.vecs import VecAccess
from petsc_hdg.discretizations import trace_specs
from petsc_hdg.errors import DeviceError, OptionError, SolveError
from petsc_hdg.operators import block_jacobi
from petsc_hdg.operators.check_trace import check_trace
from petsc_hdg.operators.facet_blocks import FacetBlocks
from petsc_hdg.operators.trace_formats import FORMATS, create_format
from petsc_hdg.operators.trace_matrix import TraceMatrix
from petsc_hdg.operators.vectors import TailedVector

EPS = {"double": 2.0**-52, "single": 2.0**-23}
ESSENTIAL = {"none": (), "whole": [("left", (0, 1)), ("top", (0, 1))], "partial": [("left", (1,)), ("top", (0, 1))]}
CASES = [(cell, degree, nc) for cell in SHAPES for degree in (0, 1, 2) for nc in (1, 2)]
KINDS = ("dbf", "element", "packed", "symmetric")
OF_SYMMETRIC = ("packed", "symmetric")  # which take symmetric matrices


def test_every_format_is_here():
    assert set(FORMATS) | {"packed"} == {*KINDS, "auto"}


def made(kind, *arguments, tile=1000, **settings):
    op = TraceStandIn(*arguments, symmetric=kind in OF_SYMMETRIC, **settings)
    op.format = create_format(kind.replace("packed", "element"), op)
    op.fill(op.format, tile)
    return op, op.format


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
    for trace.by_facet in (True, False):
        close(op, op.local(lambda *y: trace.mult(x, *y)), A @ values)
    close(op, op.local(lambda *y: trace.mult_transpose(x, *y)), A.T @ values)
    close(op, op.local(trace.diagonal), A.diagonal())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell,degree,nc", CASES)
def test_products_and_diagonals(kind, cell, degree, nc):
    op, trace = made(kind, cell, degree, nc, ESSENTIAL["whole"] if nc == 2 else [("left", (0,))], tile=7)
    assert op.dofmap.num_constrained and op.mesh.num_cells > 7
    compare(op, trace)


@pytest.mark.parametrize("essential", ESSENTIAL)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", SHAPES)
def test_essential_components(kind, cell, essential):
    op, trace = made(kind, cell, 1, 2, ESSENTIAL[essential], tile=5)
    assert trace.layout.is_blocked == (essential != "partial")
    compare(op, trace)


@pytest.mark.parametrize("tile", [1, 2, 3, 5, 8, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_tiles_of_any_size_give_the_same_bits(kind, tile):
    op, trace = made(kind, "triangle", 1, 1)
    whole = values_of(trace)
    op.fill(trace, tile)  # over the old values
    np.testing.assert_array_equal(values_of(trace), whole)


def values_of(trace) -> np.ndarray:
    if trace.kind == "symmetric":
        sizes = zip((trace.pairs, trace.own), trace._sizes, strict=True)
        return np.concatenate([trace.arrays.to_host(b, n) for b, n in sizes])
    buffer = trace.A if trace.kind == "dbf" else trace.packed or trace.unpacked
    return trace.arrays.to_host(buffer, trace.matrix_reals)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", ("quadrilateral", "tetrahedron"))
def test_single_precision(kind, cell):
    op, trace = made(kind, cell, 2, 2, ESSENTIAL["partial"], precision="single", tile=6)
    compare(op, trace)


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


def applied(layout, inverse, x, transpose) -> np.ndarray:
    y = np.zeros_like(x)
    for block, numbers in zip(inverse, layout.numbers, strict=False):
        free = numbers < len(x)
        y[numbers[free]] = (block.T if transpose else block)[np.ix_(free, free)] @ x[numbers[free]]
    return y


def test_inverses_take_pivots():
    """Blocks that elimination without row exchanges cannot invert."""
    op = TraceStandIn("triangle", 2, 2)
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
    op = TraceStandIn("triangle", 1, 1)
    op.K[:] = 0.0
    op.fill(trace := create_format("dbf", op), 100)
    blocks = FacetBlocks(trace)
    blocks.collect()
    with pytest.raises(SolveError, match="trace matrix is singular: use another -pc_type"):
        blocks.invert()


def test_symmetry_decides_the_storage():
    op, trace = made("packed", "triangle", 1, 2)
    packed = trace.nbytes
    assert trace.symmetric and trace.unpacked is None
    op.K[-1, 0, 1] += 1.0  # in the last tile
    op.fill(trace, 5)
    assert not trace.symmetric and trace.packed is None and trace.nbytes > 1.3 * packed
    compare(op, trace)
    op.K[-1, 0, 1] -= 1.0
    op.fill(trace, 5)
    assert not trace.symmetric
    compare(op, trace)


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_keeps_its_values(kind):
    op, trace = made(kind, "quadrilateral", 1, 1)
    A, (x, values) = op.matrix(), direction(op)
    kept = trace.copy()
    op.K *= 3.0
    op.fill(trace, 100)
    close(op, op.local(lambda *y: kept.mult(x, *y)), A @ values)
    close(op, op.local(lambda *y: trace.mult(x, *y)), 3 * (A @ values))


def test_bytes_of_table_1():
    """Roca, Nguyen and Peraire 2011, table 1: matrix, inflated vector, result and indices, in MiB cut to 2 digits."""
    op, trace = made("dbf", "triangle", 1, 2)
    assert abs(trace.nbytes - dbf_bytes(trace.layout.num_facets, trace.layout.block)) < 8 * 32 * 5 * trace.layout.block
    table = {1: (8, 33.29), 2: (12, 71.40), 3: (16, 123.89), 4: (20, 190.75), 5: (24, 272.00)}
    for degree, (m, printed) in table.items():
        assert m == 4 * (degree + 1)
        total = dbf_bytes(11780, m) + 8 * 11780 * m * 6
        assert abs(total / 2**20 - printed) < 0.011, degree


def dbf_bytes(facets: int, m: int) -> int:
    return 8 * 5 * m * m * facets + 4 * 5 * facets


@pytest.mark.parametrize("precision", EPS)
@pytest.mark.parametrize("essential", ESSENTIAL)
@pytest.mark.parametrize("kind", ("dbf", "element", "symmetric"))
@pytest.mark.parametrize("cell", SHAPES)
def test_first_use_finds_the_kernels_right(kind, cell, essential, precision, verdicts):
    op = TraceStandIn(cell, 1, 2, ESSENTIAL[essential], precision)
    trace = create_format(kind, op)
    check_trace(trace)
    assert {name for name, ok, _ in verdicts if ok} == COMPARED[kind] and max(d for _, _, d in verdicts) < 1e4 * EPS[
        precision
    ]


COMPARED = {
    "dbf": {f"trace_dbf_{n}" for n in ("assemble", "product", "product_facet", "transposed", "column")},
    "element": {f"trace_{n}" for n in ("element_product", "element_transposed", "element_column")}
    | {"trace_packed_product", "trace_packed_column"}
    | {"trace_congruent_product", "trace_congruent_column"},
    "symmetric": {f"trace_symmetric_{n}" for n in ("product", "cut", "column")},
}


@pytest.fixture
def verdicts(monkeypatch):
    """What is recorded of kernels: (name, right, difference); none is remembered."""
    found = []
    monkeypatch.setattr(verified, "needs_check", lambda kernel: True)
    monkeypatch.setattr(
        verified, "record", lambda kernel, ok, text: found.append((kernel.spec.name, ok, float(text.split()[-1])))
    )
    return found


@pytest.mark.parametrize("kind", ("dbf", "element", "symmetric"))
def test_first_use_finds_a_wrong_kernel(kind, verdicts):
    op = TraceStandIn("triangle", 1, 2)
    trace = create_format(kind, op)
    name = {"element": "trace_packed_product"}.get(kind, f"trace_{kind}_product")
    trace.kernels[name] = Idle(trace.kernels[name])
    with pytest.raises(DeviceError, match=f"kernel '{name}' gives wrong results"):
        check_trace(trace)


class Idle:
    """A kernel that does nothing."""

    def __init__(self, kernel):
        self.kernel, self.spec, self.device = kernel, kernel.spec, kernel.device

    def of_part(self, part):
        return self

    def __call__(self, items, *arguments, first=0):
        self.kernel(0, *arguments)


def test_unknown_formats_are_refused():
    with pytest.raises(
        OptionError,
        match="-hdg_trace_mat csr is not a format of stored blocks; these are dbf, element, symmetric, auto",
    ):
        create_format("csr", TraceStandIn("triangle", 0, 1))


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
    with pytest.raises(Exception, match="need the assembled trace matrix|error code 101"):
        mat.getDiagonalBlock()
    living = len(block_jacobi.LIVING["Mat"])
    copied.destroy()
    assert len(block_jacobi.LIVING["Mat"]) == living - 1


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
    assert pc.handle in block_jacobi.LIVING["PC"]
    handle = pc.handle
    pc.setType("none")
    assert handle not in block_jacobi.LIVING["PC"]


def test_facet_block_jacobi_needs_a_trace_matrix():
    op = TraceStandIn("triangle", 1, 1)
    pc = PETSc.PC().create(PETSc.COMM_SELF)
    pc.setOperators(op.aij())
    pc.setType("python")
    pc.setPythonType("petsc_hdg.FacetBlockJacobi")
    with pytest.raises(Exception, match="FacetBlockJacobi takes a stored trace matrix|error code 101"):
        pc.setUp()


@pytest.mark.parametrize("ranks", [3])
def test_three_ranks_equal_aij(mpirun, ranks):
    found = json.loads(mpirun(ranks, Path(__file__).parents[1] / "run_trace.py").stdout.splitlines()[-1])
    assert len(found) == 40 and max(max(v.values()) for v in found.values()) < 200 * EPS["double"]
    assert {k.split()[-1] for k in found} == set(ESSENTIAL) - {"none"}


@pytest.mark.parametrize("cell,degree,nc", [("triangle", 1, 1), ("tetrahedron", 1, 2), ("hexahedron", 3, 1)])
def test_sums_between_patches(cell, degree, nc, monkeypatch):
    """Patches of four cells; the last case takes the unknowns of a facet in two chunks."""
    monkeypatch.setattr(trace_specs, "SYMMETRIC_CELLS", {False: (4,)})
    op, trace = made("symmetric", cell, degree, nc, [("left", (0,))], tile=3)
    facets = trace.layout.facets_per_cell
    if facets % 2 == 0:  # several threads a cell, as on GPUs
        trace._lay_out(replace(trace.shape, parts=facets // 2))
        del trace.kernels
        op.fill(trace, 3)
    assert trace.patches.count > 1 and trace.patches.cut.shape[1] > 0
    assert (trace.shape.chunk < trace.layout.block) == (degree == 3)
    compare(op, trace)


def test_an_asymmetric_matrix_is_refused_by_symmetric_blocks():
    op, trace = made("symmetric", "triangle", 1, 1)
    op.K[-1, 0, 1] += 1.0
    op.fill(trace, 5)
    assert trace.asymmetric
    with pytest.raises(SolveError, match="not symmetric: use -hdg_trace_mat auto or dbf"):
        compare(op, trace)
    op.K[-1, 0, 1] -= 1.0
    op.fill(trace, 5)
    compare(op, trace)
