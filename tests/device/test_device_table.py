"""Which rank has which device: a table, a sentence where ranks share GPUs, the same on all ranks."""

from types import SimpleNamespace

import pytest
from mpi4py import MPI

from petsc_hdg.device import platforms, ranks
from petsc_hdg.device.ranks import Place


def node(number: int, devices: int, count: int, is_gpu: bool = True) -> list[Place]:
    """Places of `count` ranks of a node that take its devices in turn."""
    return [Place(number, f"host{number}", "H200", f"PCI {r % devices}", is_gpu) for r in range(count)]


def test_a_line_for_each_device():
    assert ranks.table(node(0, 2, 3)) == ["  ranks 0, 2: H200, PCI 0", "  rank 1: H200, PCI 1"]
    found = ranks.table(node(0, 1, 1) + node(1, 1, 2))
    assert found == ["  rank 0: node 0 (host0), H200, PCI 0", "  ranks 1, 2: node 1 (host1), H200, PCI 0"]
    many = ranks.table(node(0, 20, 20))
    assert len(many) == ranks.MOST + 1 and many[-1] == "  and 4 more devices"


def test_gpus_that_are_shared():
    assert ranks.sharing(node(0, 4, 4) + node(1, 4, 4)) == ""
    assert ranks.sharing(node(0, 1, 3, is_gpu=False)) == ""
    said = ranks.sharing(node(0, 4, 4) + node(1, 2, 3))
    assert said.startswith("2 ranks share 1 GPU (2 on H200 of node 1)")


def test_a_warning_from_one_rank():
    with pytest.warns(UserWarning, match="3 ranks share 1 GPU"):
        ranks.warn_of_sharing(node(0, 1, 3))


def test_what_tells_devices_apart(device, monkeypatch):
    (place,) = ranks.places(device, MPI.COMM_SELF)
    assert place.device == device.name and place.identity == platforms.identity(device.cl_device)
    nvidia = SimpleNamespace(pci_domain_id_nv=0, pci_bus_id_nv=27, pci_slot_id_nv=1)
    assert platforms.identity(nvidia) == "PCI 0000:1b:01"
    standard = SimpleNamespace(pci_bus_info_khr=SimpleNamespace(pci_domain=1, pci_bus=2, pci_device=3))
    assert platforms.identity(standard) == "PCI 0001:02:03"
    platform = SimpleNamespace(name="Any")
    twins = [SimpleNamespace(platform=platform, number=k) for k in range(2)]
    platform.get_devices = lambda: twins
    assert platforms.identity(twins[1]) == "device 1 of Any"
