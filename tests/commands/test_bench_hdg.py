"""Rows of `bench hdg`: what they count, and copies of a tile that are what the tile is."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from bench import hdg
from bench.cublas import condensation_seconds
from bench.tiled import shaken_box

from petsc_hdg.device import Arrays, Device
from petsc_hdg.operators.condensed.operator import CondensedOperator
from petsc_hdg.options import Options

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def rows(mpirun, tmp_path_factory) -> list[dict]:
    path = tmp_path_factory.mktemp("bench") / "rows.json"
    options = ["-cells", "500", "-repeat", "1", "-only", "local", "-json", path]
    mpirun(1, "benchmarks/bench", "hdg", *options)
    return json.loads(path.read_text())


def test_rows_of_every_case(rows):
    titles = [f"{name} {title}" for name, (_, measures) in hdg.SCHEMES.items() for title in measures]
    cases = [(cell, degree) for cell, _, degrees in hdg.CPU_CASES for degree in degrees]
    assert [(r["kernel"], r["cell"], r["degree"]) for r in rows] == [(t, *case) for case in cases for t in titles]


def test_lines_are_asked_for():
    given, device, gpu = SimpleNamespace(only="local"), Device.select("cpu"), SimpleNamespace(is_gpu=True)
    assert hdg.lines(device, given, "hexahedron") == {} == hdg.lines(gpu, given, "triangle")
    assert list(hdg.lines(gpu, given, "hexahedron")) == [hdg.LINES]
    given.only = hdg.LINES
    assert list(hdg.lines(device, given, "hexahedron")) == [hdg.LINES]


def test_lines_stand_beside_products():
    given, device = SimpleNamespace(fe_precision="double", cells=54, repeat=1), Device.select("cpu")
    case, measures = (hdg.SCHEMES["hdg"][0], "hexahedron", 1, 0), {"a": (hdg.LINES, hdg.lines_row)}
    made = hdg._prepare(device, given, 1e9, case, measures, ["a"])["a"]()
    assert made["cells"] == 54 and made["seconds_median"] > 0 and made["peer"]["products"] > 0
    assert 0 < made["difference"] < 1e-12
    assert made["limit_seconds"] == made["bytes_compulsory"] / 1e9


def test_there_is_no_row_of_lines_where_cells_have_none():
    given, device = SimpleNamespace(fe_precision="double", cells=128, repeat=1), Device.select("cpu")
    case = (hdg.SCHEMES["hdg"][0], "triangle", 1, 1)
    measures = {"lines": (hdg.LINES, hdg.lines_row), "all": ("local matrices", hdg.local_solve_row)}
    assert list(hdg._prepare(device, given, 1e9, case, measures, list(measures))) == ["all"]


def test_rows_count_compulsory_bytes(rows):
    """Triangles of degree 1: 3 eliminated unknowns, 6 of the trace."""
    both, alone, solve, condensed = rows[:4]
    cells = both["cells"]
    assert both["dofs"] == 6 * cells
    assert both["bytes_compulsory"] - alone["bytes_compulsory"] == 8 * 18 * cells
    nodes = alone["bytes_compulsory"] - cells * (8 * (36 + 6 + 3) + 4 * (6 + 3))
    assert 0 < nodes < 8 * 2 * 3 * cells
    assert solve["bytes_compulsory"] > cells * (8 * (18 + 6) + 24) and solve["flops"] == 36 * cells
    assert condensed["dofs"] == 3 * condensed["cells"] and condensed["scheme"] == "cg_gpu"


@pytest.mark.parametrize("name", hdg.SCHEMES)
def test_copies_of_a_tile(name):
    plain, tiled = hdg.SCHEMES[name][0]
    options = Options(degree=3, hdg_tau="1", hdg_trace_mat="aij")
    tile = plain(shaken_box("triangle", (3, 2)), hdg.reaction_diffusion(1), options)
    arrays, found = Arrays(Device.select("cpu")), {}
    one, x = len(tile.dofmap.compact), np.random.default_rng(1).uniform(-1, 1, len(tile.dofmap.compact))
    for copies, disc in ((1, tile), (3, tiled(tile, 3))):
        op = CondensedOperator(disc, arrays)
        assert op.dofmap.num_owned == copies * one
        interior = op.local_state(arrays.to_device(np.tile(x, copies)))
        found[copies] = arrays.to_host(interior, (disc.num_eliminated, disc.stride))[:, : disc.mesh.num_cells]
    np.testing.assert_allclose(found[3], np.tile(found[1], 3), rtol=0, atol=1e-12 * np.abs(found[1]).max())
    assert np.abs(found[1]).max() > 0.1


def test_there_is_no_peer_without_an_nvidia_gpu():
    tile = hdg.HybridizedDG(shaken_box("triangle", (2, 2)), hdg.reaction_diffusion(1), Options(degree=1))
    assert condensation_seconds(tile, Device.select("cpu"), 8, 1) == {}
