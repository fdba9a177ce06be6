"""What a solve copies, and what the device's memory holds: counted, viewed, reported."""

from __future__ import annotations

import json
import re

import pytest

import petsc_hdg as fe
from petsc_hdg.device import Arrays, Device
from petsc_hdg.problem import memory_traffic


def problem(**options) -> fe.Problem:
    flux = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    physics = fe.Physics({"u": 1}, "f0[0] = -1;", flux, boundary=[fe.Dirichlet("boundary", "g[0] = 0;")])
    return fe.Problem(fe.Mesh.box([5, 5]), physics, fe.Options(degree=1, **options))


def test_buffers_are_counted_while_they_live():
    arrays = Arrays(Device.select())
    memory = arrays.device.memory
    assert (memory.held, memory.most) == (0, 0)
    first, second = arrays.zeros(100), arrays.to_device(list(range(50)))
    assert memory.held == 800 + 200
    again = first
    del first
    assert memory.held == 1000
    del again
    assert (memory.held, memory.most) == (200, 1000)
    arrays.upload(second, arrays.to_host(second, 50, "int32"), "x")
    assert memory.held == 200


def test_a_solve_counts_its_own_copies():
    given = problem(pmat="none")
    counts = []
    for _ in range(2):
        before = given.arrays.total()
        given.solve()
        copied = [now - then for now, then in zip(given.arrays.total(), before, strict=True)]
        assert [given.traffic.to_device, given.traffic.to_host] == copied
        counts.append(given.traffic.callbacks["Jacobian product"])
    assert counts[0]["calls"] >= 3 and given.vec_mode == "host"
    for count in counts:  # a vector there and one back, for each product
        assert count["h2d"] == count["d2h"] == 8 * given.num_unknowns * count["calls"]


def test_the_report_has_both(tmp_path):
    given = problem(report=str(tmp_path / "r.json"))
    given.report(given.solve())
    told = json.loads((tmp_path / "r.json").read_text())
    assert told["solve_bytes"] == {"to_device": given.traffic.to_device, "to_host": given.traffic.to_host}
    assert told["solve_bytes"]["to_host"] > 0
    assert told["device_memory"]["most"] >= told["device_memory"]["held"] > 8 * given.num_unknowns


def test_a_report_before_any_solve():
    assert problem().report()["solve_bytes"] is None


def test_the_view_of_two_ranks(mpirun):
    """Bytes are those of all ranks: a product moves 16 an unknown, and more where there are ghosts."""
    products = {}
    for ranks in (1, 2):
        options = ["-fe_view", "-fe_pmat", "none", "-pc_type", "none", "-dm_plex_box_faces", "6,6"]
        said = mpirun(ranks, "examples/poisson.py", *options).stdout
        found = re.search(r"Jacobian product, (\d+) calls: (\S+ k?B) to the device, (\S+ k?B) to the host", said)
        unknowns = int(re.search(r"(\d+) unknowns", said)[1])
        vectors = memory_traffic.size(8 * unknowns * int(found[1]))
        assert (found[2], found[3]) == (vectors, vectors) if ranks == 1 else found[2] == found[3] != vectors
        products[ranks] = int(found[1])
        assert re.search(r"device memory: \S+ kB held, \S+ kB at most, of \S+ GB", said)
        assert "solve: " in said and said.count("Vec mode: host") == 2
        assert ("  ranks 0, 1: " in said) == (ranks == 2)
        halo = re.search(r"halo, (\d+) exchanges: \S+ k?B by shared memory, 0 B by messages; the host waited", said)
        assert int(halo[1]) >= 2 * products[ranks] if ranks == 2 else halo is None
    assert products[1] == pytest.approx(products[2], abs=2)


@pytest.mark.parametrize(
    "nbytes, text",
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (123456, "123 kB"), (2.5e9, "2.5 GB"), (999.6e6, "1 GB")],
)
def test_sizes_in_words(nbytes, text):
    assert memory_traffic.size(nbytes) == text
