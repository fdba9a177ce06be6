"""Series of files with times: what they list and hold, after restarts too, for each kind of run and on two ranks."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import h5py
import meshio
import numpy as np
import pytest
from run_checkpoint import Stop, problem_of, steady
from sample_meshes import box_mesh
from sample_time import HEAT, problem_in_time, start
from vtu_reader import read_vtu

import petsc_hdg as fe
from petsc_hdg.errors import OptionError
from petsc_hdg.options import Options
from petsc_hdg.physics.library import elasticity

SCRIPT = Path(__file__).with_name("run_series.py")
STEPS, DT = 10, 0.05


def listed(path) -> tuple[list[float], list[str]]:
    """Times and files of a collection, whose files are there."""
    root = ET.parse(path).getroot()
    assert root.attrib["type"] == "Collection"
    entries = [entry.attrib for entry in root.iter("DataSet")]
    files = [entry["file"] for entry in entries]
    assert len(set(files)) == len(files) and all((path.parent / name).is_file() for name in files)
    return [float(entry["timestep"]) for entry in entries], files


def values(path, name: str = "u") -> np.ndarray:
    """The values of a field in a file, as meshio reads them."""
    return meshio.read(path).point_data[name]


def run_of(path, stop_after: int = 0, t0: float = 0.0, t1: float = STEPS * DT, **settings):
    """A run of HEAT, stopped after some steps if that is asked for."""
    problem, seen = problem_in_time(HEAT, check_kernels=False, output=str(path), **settings), []

    def monitor(t, u):
        seen.append(t)
        if len(seen) == stop_after:
            raise Stop

    try:
        return problem, problem.solve_in_time(start(problem, t0), t1, DT, t0, monitor)
    except Stop:
        return problem, None


def test_states_have_their_times(tmp_path):
    path = tmp_path / "a b&c.pvd"
    problem, u = run_of(path, output_interval=4)
    times, files = listed(path)
    assert np.allclose(times, [0, 0.2, 0.4, 0.5], atol=1e-12) and files[-1] == "a b&c_00003.vtu"
    exact = meshio.read(tmp_path / files[2])
    x = exact.points
    assert np.abs(exact.point_data["u"].ravel() - np.sin(0.4) * (1 + x[:, 0] * x[:, 1])).max() < 2e-3
    last = problem.cell_values(u, times[-1])["u"]
    assert np.isclose(values(tmp_path / files[-1]).max(), last.max(), rtol=1e-14)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("interval", [1, 4])
def test_a_restart_replaces_what_is_later(tmp_path, interval):
    path, alone, checkpoint = tmp_path / "run.pvd", tmp_path / "alone.pvd", str(tmp_path / "run.h5")
    run_of(path, stop_after=8, checkpoint=checkpoint, checkpoint_interval=3, output_interval=interval)
    before = listed(path)[1]
    assert len(before) == 1 + 7 // interval, "the run ends before its eighth state is written"
    if interval == 1:
        (tmp_path / before[-1]).write_text("of the seventh step, after the last checkpoint")
    run_of(path, restart=checkpoint, output_interval=interval)
    run_of(alone, checkpoint=str(tmp_path / "alone.h5"), checkpoint_interval=3, output_interval=interval)
    (times, files), (expected, others) = listed(path), listed(alone)
    assert times == expected and len(times) == (11 if interval == 1 else 4)
    for mine, other in zip(files, others, strict=True):
        assert np.array_equal(values(tmp_path / mine), values(tmp_path / other)), (mine, other)


def test_another_run_begins_anew_and_one_that_goes_on_goes_on(tmp_path):
    path = tmp_path / "run.pvd"
    run_of(path)
    assert len(listed(path)[0]) == 11
    problem, u = run_of(path, t1=2 * DT)
    assert np.allclose(listed(path)[0], [0, DT, 2 * DT])
    problem.solve_in_time(u, 4 * DT, DT, 2 * DT)
    assert np.allclose(listed(path)[0], np.arange(5) * DT) and listed(path)[1][-1] == "run_00004.vtu"
    problem.write(path, u, 3.5 * DT)
    assert np.allclose(listed(path)[0], [0, DT, 2 * DT, 3 * DT, 3.5 * DT])


def test_steps_of_a_load_and_slabs(tmp_path):
    path = tmp_path / "loads.pvd"
    problem = problem_of(steady(), "cg_gpu", 1, (2, 2), {"output": str(path), "output_interval": 2}, 1)
    u = problem.create_vec()
    for k in problem.load_steps((0.1, 0.2, 0.3), u):
        problem.set_constants(k=k)
        problem.solve(u).copy(u)
    assert listed(path)[0] == [2.0, 3.0]
    assert np.isclose(values(tmp_path / listed(path)[1][-1]).max(), u.max()[1], rtol=1e-14)
    path = tmp_path / "slabs.pvd"
    problem = problem_in_time(HEAT, check_kernels=False, backend="sipg_gpu", output=str(path), output_interval=2)
    fe.SpaceTime(problem, degree=1).march(start(problem), 0.0, 0.3, 3)
    assert np.allclose(listed(path)[0], [0, 0.2, 0.3], atol=1e-14)


def test_two_ranks(mpirun, tmp_path):
    said = []
    for ranks in (1, 2):
        path = tmp_path / f"run{ranks}.pvd"
        said.append(mpirun(ranks, SCRIPT, path).stdout.split(" of ")[0])
        times, files = listed(path)
        assert np.allclose(times, [0, 0.2, 0.4, 0.5])
        found = read_vtu(tmp_path / files[-1])  # meshio takes one of several pieces
        assert len(found["cells"]) == 9
        assert np.isclose(found["point_data"]["u"].max(), np.sin(0.5) * 2, rtol=1e-3)
    assert np.isclose(float(said[0]), float(said[1]), rtol=1e-9)


def xdmf_states(path) -> tuple[np.ndarray, str, list[tuple[float, dict, dict]]]:
    """Points, kind of the cells and states of a series of XDMF, as meshio reads them."""
    with meshio.xdmf.TimeSeriesReader(path) as series:
        points, (block,) = series.read_points_cells()
        assert block.data.min() == 0 and block.data.max() == len(points) - 1
        return points, block.type, [series.read_data(step) for step in range(series.num_steps)]


def arrays_of(path) -> list[int]:
    """Number of arrays in each HDF5 file of a series."""
    found = []
    for name in sorted(path.parent.glob(f"{path.stem}_*.h5")):
        with h5py.File(name) as file:
            found.append(len(file))
    return found


def test_xdmf_on_one_and_three_ranks(mpirun, tmp_path):
    for ranks in (1, 3):
        path = tmp_path / f"of {ranks} & more.xdmf"
        mpirun(ranks, SCRIPT, path)
        points, kind, states = xdmf_states(path)
        assert kind == "quad9" and len(points) == 49, "cells share nodes"
        assert np.allclose([t for t, *_ in states], [0, 0.2, 0.4, 0.5])
        for t, at_points, in_cells in states:
            assert np.abs(at_points["u"] - np.sin(t) * (1 + points[:, 0] * points[:, 1])).max() < 2e-3
            assert set(in_cells["rank"][0]) == set(range(ranks)) and len(in_cells["rank"][0]) == 9
        assert len(list(tmp_path.glob(f"of {ranks}*"))) == 5 and not list(tmp_path.glob(".*"))
        assert arrays_of(path) == [4, 2, 2, 2], "the first file has the mesh"


def test_xdmf_goes_on_after_a_restart(tmp_path):
    path, checkpoint = tmp_path / "run.XDMF", str(tmp_path / "run.h5")
    run_of(path, stop_after=8, checkpoint=checkpoint, checkpoint_interval=3)
    before = xdmf_states(path)[2]
    problem, u = run_of(path, restart=checkpoint)
    *_, states = xdmf_states(path)
    assert len(before) == 8 and np.allclose([t for t, *_ in states], np.arange(11) * DT)
    assert len(set(arrays_of(path)[1:])) == 1 and arrays_of(path)[0] == arrays_of(path)[1] + 2
    assert all(np.array_equal(new[1]["u"], old[1]["u"]) for new, old in zip(states, before, strict=False))
    last = problem.cell_values(u, STEPS * DT)["u"]
    assert np.isclose(states[-1][1]["u"].max(), last.max(), rtol=1e-14)
    problem.checkpoint(tmp_path / "state.h5", u)
    problem.restart(tmp_path / "state.h5")
    (tmp_path / "other.xdmf").write_text("<VTKFile/>")
    with pytest.raises(OptionError, match="it is no collection of HDF5 files .it is not of that type.; remove it"):
        problem.write(tmp_path / "other.xdmf", u)


@pytest.mark.parametrize("cell", ["triangle", "quadrilateral", "tetrahedron", "hexahedron"])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_xdmf_has_the_arrays_of_meshio(tmp_path, cell, degree):
    elastic = elasticity(2 if cell in ("triangle", "quadrilateral") else 3)
    problem = fe.Problem(box_mesh(cell), elastic, Options(degree=degree, check_kernels=False))
    u = problem.interpolate(lambda x: x**2)
    fields = {"slope & more": "grad_u", "two": "obj[0] = x[0]; obj[1] = u[1]; obj[2] = 1; obj[3] = 2;"}
    problem.write(tmp_path / "u.xdmf", u, fields=fields)
    points, kind, ((t, at_points, in_cells),) = xdmf_states(tmp_path / "u.xdmf")
    expected = problem.to_meshio(u, fields=fields)
    assert t == 0 and kind == expected.cells[0].type and np.array_equal(points, expected.points)
    assert at_points.keys() == expected.point_data.keys() == {"u", *fields} and list(in_cells) == ["rank"]
    assert all(np.array_equal(at_points[name], of) for name, of in expected.point_data.items())


def test_two_problems_do_not_share_a_series(tmp_path):
    first, _ = run_of(tmp_path / "run.pvd", t1=DT)
    with pytest.raises(OptionError, match="Two problems of this run would write the series .*run.pvd by turns; give"):
        run_of(tmp_path / "run.pvd", t1=DT)
    first.held = first  # a cycle, which Python frees late
    del first
    run_of(tmp_path / "run.pvd", t1=DT)


def test_refusals(tmp_path):
    for output in ("run.vtu", "pvd"):
        with pytest.raises(OptionError, match="-fe_output .*: give a name that ends in .pvd or .xdmf"):
            fe.Problem(fe.Mesh.box((2, 2)), steady(), output=output)
    problem, u = run_of(tmp_path / "fine.pvd", t1=DT)
    with pytest.raises(OptionError, match="a:b.xdmf: XDMF has no names with a colon; give another"):
        problem.write(tmp_path / "a:b.xdmf", u)
    with pytest.raises(OptionError, match="fine.pvd is no folder"):
        problem.write(tmp_path / "fine.pvd" / "run.pvd", u)
    for wrong in ((None, 0.0), (u, np.nan)):
        with pytest.raises(OptionError):
            problem.write(tmp_path / "fine.pvd", *wrong)
    assert len(listed(tmp_path / "fine.pvd")[0]) == 2, "nothing is lost for what cannot be written"
    problem.checkpoint(tmp_path / "state.h5", u)
    problem.restart(tmp_path / "state.h5")
    for text in ("", "<a/>", '<VTKFile type="Collection"><DataSet timestep="x" file="a"/></VTKFile>'):
        (tmp_path / "other.pvd").write_text(text)
        with pytest.raises(OptionError, match="it is no collection of VTU files .*; remove it") as caught:
            problem.write(tmp_path / "other.pvd", u)
        assert "\n" not in str(caught.value) and (tmp_path / "other.pvd").read_text() == text
