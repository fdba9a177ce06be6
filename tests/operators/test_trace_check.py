"""Trace formats at their first use on a device: right kernels pass, a wrong one is found."""

from __future__ import annotations

import numpy as np
import pytest
from bare_trace import BareTrace
from sample_meshes import SHAPES
from trace_samples import EPS, ESSENTIAL, congruent

from petsc_hdg.device import verdicts as kept
from petsc_hdg.errors import DeviceError
from petsc_hdg.operators.trace.check import check_trace
from petsc_hdg.operators.trace.stores import create_format

COMPARED = {
    "dbf": {"trace_assemble"} | {f"trace_dbf_{n}" for n in ("product", "transposed", "column")},
    "element": {f"trace_element_{n}" for n in ("product", "transposed", "column")},
    "shared": {"trace_congruent_product", "trace_congruent_column"},
    "symmetric": {f"trace_symmetric_{n}" for n in ("product", "cut", "column")},
}


@pytest.fixture
def verdicts(monkeypatch):
    """What is recorded of kernels: (name, right, difference); none is remembered."""
    found = []
    monkeypatch.setattr(kept, "needs_check", lambda kernel: True)
    monkeypatch.setattr(
        kept, "record", lambda kernel, ok, text: found.append((kernel.spec.name, ok, float(text.split()[-1])))
    )
    return found


@pytest.mark.parametrize("precision", EPS)
@pytest.mark.parametrize("essential", ESSENTIAL)
@pytest.mark.parametrize("kind", COMPARED)
@pytest.mark.parametrize("cell", SHAPES)
def test_first_use_finds_the_kernels_right(kind, cell, essential, precision, verdicts):
    op = BareTrace(cell, 1, 2, ESSENTIAL[essential], precision)
    trace = congruent(op, np.zeros(op.mesh.num_cells)) if kind == "shared" else create_format(kind, op)
    trace.share(None)
    check_trace(trace)
    assert {name for name, ok, _ in verdicts if ok} == COMPARED[kind] == set(trace.taken)
    assert max(d for _, _, d in verdicts) < 1e4 * EPS[precision]


@pytest.mark.parametrize("kind", ("dbf", "element", "symmetric"))
def test_first_use_finds_a_wrong_kernel(kind, verdicts):
    op = BareTrace("triangle", 1, 2)
    trace, name = create_format(kind, op), f"trace_{kind}_product"
    trace.share(None)
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
