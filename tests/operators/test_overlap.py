"""Kernels run while ghost values are under way, and none reads ghosts before they have come."""

from pathlib import Path

import numpy as np
import pytest

import petsc_hdg as fe
from petsc_hdg.device.kernel import Kernel
from petsc_hdg.operators.overlap import FIRST, LAST, LEAST, OUTER, element_cells, part_range

SCRIPT = Path(__file__).with_name("run_overlap.py")


def test_inner_kernels_run_meanwhile(mpirun):
    assert "overlap agrees" in mpirun(2, SCRIPT).stdout


POISSON = {"f0": "f0[0] = -1 + u[0];", "f1": "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"}
PRODUCTS = {  # the launches of a product on one rank
    "cg_gpu": ({"degree": 2, "kernel": "cell"}, ["cg_action", "assemble"]),
    "hdg_gpu": ({"degree": 1, "hdg_trace_mat": "dbf"}, ["trace_dbf_product"]),
    "sipg_gpu": ({"degree": 2, "sipg_kernel": "fused"}, ["sipg_action"]),
}


@pytest.mark.parametrize("backend", PRODUCTS)
def test_one_rank_exchanges_nothing(backend, monkeypatch):
    """No kernel, copy or event more than the product takes."""
    settings, expected = PRODUCTS[backend]
    physics = fe.Physics({"u": 1}, **POISSON, boundary=[fe.Dirichlet("left", "g[0] = x[1];")])
    problem = fe.Problem(fe.Mesh.box([6, 5]), physics, backend=backend, device="cpu", pmat="none", **settings)
    problem.callbacks.linearize(None, problem.create_vec(), problem.callbacks.jacobian, problem.callbacks.jacobian)
    arrays, names, launch = problem.arrays, [], Kernel._launch
    x, y = (arrays.zeros(problem.num_unknowns) for _ in range(2))
    monkeypatch.setattr(Kernel, "_launch", lambda self, *where: names.append(self.spec.name) or launch(self, *where))
    problem.operator.action(x, y)  # tables are made at first use
    names.clear()
    before = arrays.total()
    problem.operator.action(x, y)
    assert names == expected and arrays.total() == before and problem.device.exchanges.count == 0


class _Device:
    def __init__(self, is_gpu: bool, two_queues: bool = False):
        self.is_gpu, self.two_queues = is_gpu, two_queues


@pytest.mark.parametrize("inner,total,step", [(0, 10, 4), (10, 10, 4), (7, 30, 1), (100_000, 100_003, 64), (5, 6, 8)])
@pytest.mark.parametrize("is_gpu", [False, True])
def test_parts_make_up_everything(inner, total, step, is_gpu):
    ranges = [part_range(part, inner, total, step, _Device(is_gpu)) for part in (FIRST, OUTER, LAST)]
    found = np.sort(np.concatenate([np.arange(*ends) for ends in ranges]))
    assert np.array_equal(found, np.arange(total)) and all(first % step == 0 for first, _ in ranges)
    assert max(ranges[0][1], ranges[2][1]) <= inner
    assert part_range(None, inner, total, step, _Device(is_gpu)) == (0, total)
    if is_gpu and inner < LEAST:
        assert ranges[1] == (0, total)
    elif inner >= 2 * step:
        assert ranges[0][1] > 0 and ranges[2][1] > ranges[2][0]
    both = [part_range(part, inner, total, step, _Device(is_gpu, True)) for part in (FIRST, OUTER, LAST)]
    assert both[1] == ranges[1] and both[0] == (0, both[1][0]) and both[2][0] == both[2][1]


def test_element_vectors_of_the_border_come_before_those_that_the_last_sums_wait_for():
    ranges = [element_cells(part, 70, 100, 16, _Device(False)) for part in (FIRST, OUTER, LAST)]
    assert ranges == [(0, 48), (64, 112), (48, 64)]
    ranges = [element_cells(part, 70, 100, 16, _Device(False, True)) for part in (FIRST, OUTER, LAST)]
    assert ranges == [(0, 64), (64, 112), (64, 64)]
    assert element_cells(FIRST, 70, 100, 16, _Device(True)) == (0, 0)
