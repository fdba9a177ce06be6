"""Trace formats with random element matrices against scipy: products, transposes, diagonals, memory, precision."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bare_trace import BareTrace
from sample_meshes import SHAPES
from trace_samples import EPS, ESSENTIAL, KINDS, compare, keeps_its_values, made

from petsc_hdg.discretizations.trace import specs as trace_specs
from petsc_hdg.errors import OptionError, SolveError
from petsc_hdg.operators.trace.stores import FORMATS, create_format

CASES = [(cell, degree, nc) for cell in SHAPES for degree in (0, 1, 2) for nc in (1, 2)]


def test_every_format_is_here():
    assert set(FORMATS) == {*KINDS, "auto"}


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
    trace = getattr(trace, "chosen", trace)
    buffer = trace.A if trace.kind == "dbf" else trace.values
    return trace.arrays.to_host(buffer, trace.matrix_reals)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", ("quadrilateral", "tetrahedron"))
def test_single_precision(kind, cell):
    op, trace = made(kind, cell, 2, 2, ESSENTIAL["partial"], precision="single", tile=6)
    compare(op, trace)


@pytest.mark.parametrize("cell,degree,nc", [("triangle", 1, 2), ("hexahedron", 1, 1)])
def test_dense_blocks_whose_items_have_a_row(cell, degree, nc):
    """As on a GPU, of 256 work-items a group."""
    op, trace = made("dbf", cell, degree, nc, [("left", (0,))])
    assert trace.specs.dense_rows == trace.layout.block > 2
    trace.specs = replace(trace.specs, limits=replace(trace.specs.limits, is_gpu=True))
    del trace.kernels
    assert trace.specs.dense_rows == 1
    compare(op, trace)


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_keeps_its_values(kind):
    keeps_its_values(*made(kind, "quadrilateral", 1, 1))


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


def test_unknown_formats_are_refused():
    with pytest.raises(
        OptionError,
        match="-hdg_trace_mat csr is not a format of stored blocks; these are dbf, element, symmetric, auto",
    ):
        create_format("csr", BareTrace("triangle", 0, 1))


@pytest.mark.parametrize("ranks", [3])
def test_three_ranks_equal_aij(mpirun, ranks):
    found = json.loads(mpirun(ranks, Path(__file__).with_name("run_trace.py")).stdout.splitlines()[-1])
    assert len(found) == 32 and max(max(v.values()) for v in found.values()) < 200 * EPS["double"]
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
