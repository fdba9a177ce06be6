"""Entries in single precision for preconditioners: products, blocks, and the answer, which stays that of doubles."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from bare_trace import BareTrace
from petsc_options import petsc_options
from test_trace_automatic import SYMMETRIC, on_gpu, physics
from trace_samples import ESSENTIAL, box, congruent, direction, shaken

import petsc_hdg as fe
from petsc_hdg.operators.trace.check import check_trace
from petsc_hdg.operators.trace.matrix import FacetBlocks
from petsc_hdg.operators.trace.stores import create_format

KINDS = ("dbf", "element", "symmetric", "congruent")


def both(kind: str):
    """A stand-in, and its matrix stored in double and in single precision."""
    op = BareTrace("quadrilateral", 2, 1, ESSENTIAL["none"], symmetric=kind == "symmetric")
    if kind == "congruent":
        op.K[:] = op.K[0]
    formats = []
    for single in (False, True):
        if kind == "congruent":
            trace = congruent(op, np.zeros(op.mesh.num_cells), single)
        else:
            trace = create_format(kind, op, single)
            trace.share(None)
        op.fill(trace, 7)
        formats.append(trace)
    return op, *formats


@pytest.mark.parametrize("kind", KINDS)
def test_products_differ_by_rounding_of_entries(kind):
    op, exact, rough = both(kind)
    x, _ = direction(op)
    assert rough.nbytes < (0.95 if kind == "congruent" else 0.65) * exact.nbytes
    for product in ("mult", "mult_transpose"):
        expected, got = (op.local(partial(getattr(trace, product), x)) for trace in (exact, rough))
        assert 1e-10 < np.abs(got - expected).max() / np.abs(expected).max() < 1e-6
    expected = op.local(exact.diagonal)
    np.testing.assert_allclose(op.local(rough.diagonal), expected, rtol=1e-6)
    np.testing.assert_array_equal(op.local(rough.copy().diagonal), op.local(rough.diagonal))
    check_trace(rough)


def test_inverted_blocks_are_stored_so_too():
    op, exact, rough = both("symmetric")
    x = op.arrays.to_device(np.random.default_rng(1).uniform(-1, 1, op.dofmap.num_owned))
    found = []
    for trace in (exact, rough):
        blocks = FacetBlocks(trace)
        for _ in range(2):  # a second set-up
            blocks.collect()
            blocks.invert()
        y = op.arrays.zeros(op.dofmap.num_owned)
        blocks.apply(x, y)
        found.append(op.arrays.to_host(y, op.dofmap.num_owned))
    assert 1e-10 < np.abs(found[0] - found[1]).max() / np.abs(found[0]).max() < 1e-5


INNER = {"pc_type": "ksp", "ksp_ksp_type": "gmres", "ksp_ksp_max_it": "8", "ksp_pc_type": "python"}
INNER |= {"ksp_pc_python_type": "petsc_hdg.FacetBlockJacobi", "ksp_type": "fgmres"}


@pytest.mark.parametrize("solver", ({}, INNER), ids=("facet blocks", "inner iteration"))
def test_the_answer_is_that_of_doubles(solver, monkeypatch):
    on_gpu(monkeypatch)
    mesh = shaken(box("triangle"), 0.005)
    found = {}
    for precision in ("double", "single"):
        with petsc_options(ksp_rtol="1e-12", ksp_max_it="2000", **solver):
            problem = fe.Problem(
                mesh, physics(SYMMETRIC), backend="hdg_gpu", degree=2, pmat="none", pmat_precision=precision
            )
            found[precision] = problem.solve().getArray().copy()
        assert problem.operator.format.chosen.kind == "symmetric"
        amat, pmat = problem.snes.getKSP().getOperators()
        assert (amat == pmat) == (precision == "double")
        iterations = problem.linear_iterations
        found[precision, "iterations"] = iterations
    assert "for the preconditioner symmetric blocks" in problem.view() and "in single precision" in problem.view()
    assert abs(found["double", "iterations"] - found["single", "iterations"]) <= 2
    error = np.abs(found["single"] - found["double"]).max() / np.abs(found["double"]).max()
    assert error < 1e-10


@pytest.mark.full
def test_nonsymmetric_systems_and_copies_of_cells():
    """Both formats follow a matrix that is not symmetric, and a dictionary."""
    for amount in (0.005, 0.0):
        problem = fe.Problem(
            shaken(box("triangle"), amount), physics("u_x[d] + (d + 1)*u[0]"), backend="hdg_gpu",
            pmat_precision="single",
        )  # fmt: skip
        assert problem.pmat == "conforming"
        problem.solve()
        kinds = {each.chosen.kind for each in problem.operator.stores.formats}
        assert kinds == {"dbf" if amount else "congruent"}
