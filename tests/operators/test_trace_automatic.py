"""`-hdg_trace_mat auto`: which format it takes and says, and that a solve with it gives what dense blocks give."""

from __future__ import annotations

import numpy as np
import pytest
from bare_trace import BareTrace
from trace_samples import FACES, box, close, compare, direction, real_product, shaken

import petsc_hdg as fe
from petsc_hdg.discretizations.congruence import Shapes
from petsc_hdg.operators.trace import stores
from petsc_hdg.operators.trace.stores import create_format

SYMMETRIC = "u_x[d]"
CONVECTIVE = "u_x[d] + (d + 1)*u[0]"


def physics(flux: str) -> fe.Physics:
    return fe.Physics(
        {"u": 1},
        f0="f0[0] = u[0] - x[0];",
        f1=f"for (d = 0; d < dim; ++d) f1[d] = {flux};",
        boundary=[fe.Dirichlet("left", "g[0] = 1;"), fe.Robin("right", "f0[0] = 2*u[0];")],
    )


def on_gpu(monkeypatch, small: float = 0.0, gpu: bool = True) -> None:
    """Choices as on a GPU or a CPU, on this device, where matrices up to `small` bytes count as small."""
    monkeypatch.setattr(stores, "may_be_symmetric", lambda device: gpu)
    monkeypatch.setattr(stores, "SMALL", small)


@pytest.mark.parametrize(
    "amount,flux,gpu,kind,reason",
    [
        (0.0, CONVECTIVE, True, "congruent", "cells are copies of each other"),
        (0.005, SYMMETRIC, False, "dbf", "cells differ, and the device is a CPU"),
        (0.005, SYMMETRIC, True, "symmetric", "the matrix is symmetric"),
        (0.005, CONVECTIVE, True, "dbf", "the matrix is not symmetric"),
    ],
)
def test_choices(amount, flux, gpu, kind, reason, monkeypatch):
    on_gpu(monkeypatch, gpu=gpu)
    check_choice(amount, flux, kind, reason, monkeypatch)


def test_small_matrices_are_dense_blocks(monkeypatch):
    """Up to the bytes of dense blocks: 5 of 4 by 4 doubles a facet."""
    layout = real_product(shaken(box("triangle"), 0.005), "dbf", physics(SYMMETRIC))[-1].layout
    nbytes = 8 * 5 * layout.block**2 * layout.num_facets
    on_gpu(monkeypatch, nbytes)
    check_choice(0.005, SYMMETRIC, "dbf", "the matrix is small", monkeypatch)
    on_gpu(monkeypatch, nbytes - 1)
    check_choice(0.005, SYMMETRIC, "symmetric", "the matrix is symmetric", monkeypatch)


def check_choice(amount, flux, kind, reason, monkeypatch) -> None:
    """A format, why it was taken, and that its products are those of dense blocks."""
    *got, trace = real_product(shaken(box("triangle"), amount), "auto", physics(flux))
    assert trace.chosen.kind == kind and reason in trace.description
    monkeypatch.undo()
    *expected, _ = real_product(shaken(box("triangle"), amount), "dbf", physics(flux))
    for a, b in zip(got, expected, strict=True):
        assert np.abs(a - b).max() < 1e-11 * np.abs(b).max()


def test_the_choice_is_made_anew(monkeypatch):
    """Sharing goes, a matrix stops being symmetric, and a copy stays as it was."""
    on_gpu(monkeypatch)
    op = BareTrace("triangle", 1, 1, symmetric=True, faces=FACES["triangle"])
    trace = create_format("auto", op)
    op.K[:] = op.K[0]
    count = op.mesh.num_cells
    trace.share(Shapes(np.zeros(count, dtype=np.int32), np.zeros(1, dtype=np.int32)))
    fill(op, trace)
    assert trace.chosen.kind == "congruent"
    A, (x, values) = op.matrix(), direction(op)
    copied = trace.copy()
    trace.share(None)
    op.K = op._random_matrices(symmetric=True)
    fill(op, trace)
    assert trace.chosen.kind == "symmetric" and not trace.retry()
    compare(op, trace)
    op.K[-1, 0, 1] += 1.0
    op.fill(trace, 100)
    assert trace.retry()
    fill(op, trace)
    assert trace.chosen.kind == "dbf"
    compare(op, trace)
    close(op, op.local(lambda *y: copied.mult(x, *y)), A @ values)


def fill(op, trace) -> None:
    op.fill(trace, 100)
    assert not trace.retry()


def test_unknowns_that_facets_share():
    problem = fe.Problem(box("triangle"), physics(SYMMETRIC), backend="cg_gpu", degree=3, cg_condense=True)
    assert "element matrices" in problem.view()
