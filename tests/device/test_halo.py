"""Halo exchange on 1 … 4 ranks against a plain gather of everything."""

import pytest
from mpi4py import MPI

from petsc_hdg.device import Arrays, Halo
from petsc_hdg.errors import DeviceError

SCRIPT = __file__.replace("test_halo", "run_halo")


@pytest.mark.parametrize("ranks, node", [(2, 2), (4, 3), pytest.param(3, 1, marks=pytest.mark.quick)])
def test_exchange(mpirun, ranks, node):
    """On nodes of `node` ranks: one node, some neighbours elsewhere, all elsewhere."""
    done = mpirun(ranks, SCRIPT, "auto", "windows", "messages", env={"PETSC_HDG_NODE_RANKS": str(node)})
    assert "halo agrees" in done.stdout and not done.stderr


@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.quick), 3])
def test_exchange_by_kernels(mpirun, ranks):
    """By launches alone: each device writes the memory of others."""
    done = mpirun(ranks, SCRIPT, "peers")
    assert "halo agrees" in done.stdout and not done.stderr


def test_no_room_for_windows(mpirun):
    """Messages take over, and who insists on windows hears why there are none."""
    assert "no room is said" in mpirun(2, SCRIPT, "full").stdout


@pytest.mark.quick
def test_bad_graphs_are_errors_on_every_rank(mpirun):
    assert "errors agree" in mpirun(3, SCRIPT, "bad").stdout


def test_one_rank_does_nothing(device):
    arrays = Arrays(device)
    halo = Halo(MPI.COMM_SELF, 10, [], [], arrays)
    halo.forward(None, None)
    halo.reverse_add(None, None)
    assert not halo.plan.active and arrays.total() == (0, 0)


def test_order_of_calls(device):
    halo = Halo(MPI.COMM_SELF, 10, [], [], Arrays(device))
    halo.forward_begin(None)
    with pytest.raises(DeviceError, match="under way"):
        halo.reverse_add_begin(None)
    with pytest.raises(DeviceError, match="ends as reverse_add, but forward"):
        halo.reverse_add_end(None)
    halo.forward_end(None)
    with pytest.raises(DeviceError, match="but none"):
        halo.forward_end(None)
