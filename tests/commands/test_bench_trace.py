"""Rows of `bench trace`, and the CSR pattern that its peer is measured with."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from bare_trace import BareTrace
from bench import trace
from bench.cusparse import bsr_pattern, csr_pattern, csr_seconds
from sample_meshes import SHAPES

from petsc_hdg.discretizations.trace.layout import trace_layout

pytestmark = pytest.mark.full


@pytest.mark.parametrize("cell", SHAPES)
def test_pattern_is_that_of_the_matrix(cell):
    disc = BareTrace(cell, 1, 2, [("left", (0, 1))])
    layout = trace_layout(disc.mesh, disc.dofmap, disc.spaces[0])
    start, columns = csr_pattern(layout)
    assert start.dtype == columns.dtype == np.int32
    found = sp.csr_matrix((np.ones(len(columns)), columns, start), shape=(disc.num_free, disc.num_free))
    expected = disc.matrix()
    expected.sort_indices()
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    start, columns = bsr_pattern(layout)
    blocks = sp.bsr_matrix((np.ones((len(columns), layout.block, layout.block)), columns, start), shape=found.shape)
    assert (blocks.tocsr() != found).nnz == 0 and blocks.nnz == found.nnz


def test_there_is_no_peer_without_an_nvidia_gpu():
    disc = BareTrace("triangle", 0, 1)
    assert csr_seconds(trace_layout(disc.mesh, disc.dofmap, disc.spaces[0]), disc.arrays, 1) == {}


@pytest.fixture(scope="module")
def rows(mpirun, tmp_path_factory) -> list[dict]:
    path = tmp_path_factory.mktemp("bench") / "rows.json"
    options = ["-cells", "5000", "-repeat", "1", "-only", "triangle P1", "-json", path]
    mpirun(1, "benchmarks/bench", "trace", *options)
    return json.loads(path.read_text())


def test_bench_rows_count_what_is_stored(rows):
    names = [f"trace {name}" for name in trace.MEASUREMENTS]
    congruent = ["trace element congruent"]
    assert [r["kernel"] for r in rows] == [f"{n} (Roca)" for n in names] + 2 * names + 2 * congruent
    shared = rows[-2]
    assert shared["components"] == 1 and shared["cells"] > 4000
    assert shared["dofs"] > 3 * shared["cells"]  # 2 functions on 1.5 facets a cell
    vectors, numbers = 16 * shared["dofs"], 2 * 5 * shared["dofs"] / 2  # 16 bits each
    assert 1 < shared["bytes_compulsory"] / (vectors + numbers) < 1.1
    dense, assembly, element, symmetric = rows[:4]
    facets = dense["dofs"] // 8
    assert facets == 11783 and dense["components"] == 4 and dense["dof_kind"] == "trace"
    assert dense["flops"] == 2 * facets * 5 * 8**2
    least = 8 * facets * 5 * 8**2 + 4 * 5 * facets + 2 * 8 * dense["dofs"]
    assert least <= dense["bytes_compulsory"] < 1.01 * least
    assert assembly["bytes_compulsory"] > 8 * (facets * 5 * 8**2 + element["cells"] * 24**2)
    assert element["bytes_compulsory"] == pytest.approx(
        2 * 8 * dense["dofs"] + element["cells"] * (8 * 24**2 + 96), rel=0.01
    )
    assert symmetric["bytes_compulsory"] < 0.6 * element["bytes_compulsory"]
