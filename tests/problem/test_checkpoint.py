"""Files of checkpoints: whole or as before, refused in one sentence where they are damaged or of something else."""

from __future__ import annotations

import json
import os
import resource

import h5py
import numpy as np
import pytest
from mpi4py import MPI
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.errors import CheckpointError, OptionError, PetscHdgError
from petsc_hdg.mesh.canonical import GlobalOrder
from petsc_hdg.options import Options
from petsc_hdg.output import checkpoint_file
from petsc_hdg.output.atomic import atomic_path

COMM = MPI.COMM_SELF
F1 = "for (d = 0; d < dim; ++d) f1[d] = k*u_x[d];"
ABOUT = {"kind": "state", "numbers": {}}


def physics(**more) -> fe.Physics:
    conditions = [fe.Dirichlet("boundary", "g[0] = 0;"), fe.Neumann("left", "g[0] = 0;")]
    given = {"constants": {"k": 1.0}, "boundary": conditions, "name": "plain"} | more
    return fe.Physics({"u": 1}, "f0[0] = -1;", F1, **given)


def problem(mesh=None, text=None, **options) -> fe.Problem:
    settings = {"degree": 2, "check_kernels": False} | options
    mesh = mesh or box()
    return fe.Problem(mesh, text or physics(), Options(**settings))


def box(**more) -> fe.Mesh:
    return fe.Mesh.box((4, 4), comm=PETSc.COMM_SELF, **more)


def moved() -> fe.Mesh:
    """A box whose middle vertex is elsewhere."""
    dm = box().dm
    places = dm.getCoordinatesLocal().getArray().reshape(-1, 2)
    places[(places == 0.5).all(axis=1)] += 1e-5
    return fe.Mesh(dm)


def renamed() -> fe.Mesh:
    """A box with the vertices of essential conditions where they were, and the facets "left" elsewhere."""
    dm = box().dm
    dm.removeLabel("left")
    dm.createLabel("left")
    for facet in dm.getStratumIS("right", 1).getIndices():
        dm.setLabelValue("left", facet, 1)
    return fe.Mesh(dm)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A problem, its solution and the checkpoint of it."""
    path = tmp_path_factory.mktemp("checkpoint") / "a.h5"
    found = problem()
    found.set_constants(k=2.5)
    u = found.solve()
    found.checkpoint(path, u, 0.1, 7, angle=1 / 3)
    return found, u, path


def test_comes_back(written):
    _, u, path = written
    again = problem()
    state, into = again.restart(path), again.create_vec()
    assert np.array_equal(state.u.getArray(), u.getArray()) and u.norm() > 0.1
    assert (state.t, state.step, state.kind, state.numbers) == (0.1, 7, "state", {"angle": 1 / 3})
    assert again.physics.constants["k"] == 2.5
    again.restart(path, u=into)
    assert np.array_equal(into.getArray(), u.getArray())
    assert problem().restart() is None


def test_has_the_time_of_its_state(tmp_path):
    one = problem()
    one.checkpoint(tmp_path / "a.h5", one.interpolate(1.0, 0.7))
    assert problem().restart(tmp_path / "a.h5").t == 0.7


def test_is_plain_hdf5(written):
    found, u, path = written
    with h5py.File(path) as file:
        assert json.loads(file.attrs["about"])["problem"]["unknowns"] == found.num_unknowns
        assert np.isclose(np.linalg.norm(file["u"]), u.norm())
    assert path.read_bytes().startswith(b"petsc_hdg checkpoint 1\n")
    before = path.read_bytes()
    found.checkpoint(path, u, 0.1, 7, angle=1 / 3)
    assert path.read_bytes() == before, "the same state gives the same file"


OTHERS = {  # what is different -> how it is told
    "-fe_degree 2": lambda: problem(degree=1),
    "scheme cg_gpu": lambda: problem(backend="sipg_gpu"),
    "-cg_condense": lambda: problem(cg_condense=True),
    "cells is 32, and that of this mesh 64": lambda: problem(fe.Mesh.box((8, 4), comm=PETSc.COMM_SELF)),
    "at other places": lambda: problem(moved()),
    r"from \(0, 0\) to \(1, 1\), and this one from \(5, 0\) to": lambda: problem(box(lower=(5, 0), upper=(6, 1))),
    r"and this one from \(0, 0\) to \(2, 2\)": lambda: problem(box(upper=2.0)),
    "stand on other facets of the mesh": lambda: problem(renamed()),
    "shape triangle": lambda: problem(box(simplex=False)),
    "unknowns": lambda: problem(text=physics(boundary=[fe.Dirichlet("left", "g[0] = 0;")])),
    "another text": lambda: problem(text=physics(boundary=[fe.Dirichlet("boundary", "g[0] = 1;")])),
    "u: 1, and this physics has u: 2": lambda: problem(text=fe.Physics({"u": 2}, "f0[0] = -1; f0[1] = 0;")),
}


@pytest.mark.full
@pytest.mark.parametrize("words", OTHERS)
def test_of_another_problem(written, words):
    other = OTHERS[words]()
    with pytest.raises(CheckpointError, match=words) as caught:
        other.restart(written[2])
    assert "restart with the mesh, physics and options" in str(caught.value) and str(written[2]) in str(caught.value)


def test_every_byte_counts(written, tmp_path):
    """Whatever is changed, cut off or added, HDF5 never sees it."""
    whole, random = written[2].read_bytes(), np.random.default_rng(5)
    damages = [whole[: int(random.integers(len(whole)))] for _ in range(20)] + [b"", whole + b"x", b"\0" * 600, b"a\nb"]
    for place in random.integers(0, len(whole), 60):
        damages.append(whole[:place] + bytes([whole[place] ^ (1 << int(random.integers(8)))]) + whole[place + 1 :])
    other, seen = problem(), set()
    for number, damaged in enumerate(damages):
        path = tmp_path / "b.h5"
        path.write_bytes(damaged)
        padding = len(damaged) == len(whole) and damaged[512:] == whole[512:] and damaged[:90] == whole[:90]
        try:
            other.restart(path)
            assert padding, number
        except CheckpointError as error:
            seen.add(str(error).replace(str(path), "").split(":")[0][:40])
    assert len(seen) >= 3


@pytest.mark.parametrize("name, words", [("", "Is a directory|directory"), ("no.h5", "No such file")])
def test_no_file(tmp_path, name, words):
    with pytest.raises(CheckpointError, match=words):
        problem().restart(tmp_path / name)


def test_states_that_are_no_numbers_are_not_written(written, tmp_path):
    found, u, _ = written
    path, bad = tmp_path / "a.h5", u.copy()
    found.checkpoint(path, u)
    before = path.read_bytes()
    bad.setValue(0, np.nan)
    bad.assemble()
    with pytest.raises(CheckpointError, match="no finite numbers"):
        found.checkpoint(path, bad)
    assert path.read_bytes() == before


def test_full_disk_leaves_the_file_before(tmp_path):
    path = tmp_path / "a.h5"
    checkpoint_file.write(path, COMM, ABOUT, {"u": np.arange(10.0)})
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(PetscHdgError, match="a.h5"):
            checkpoint_file.write(path, COMM, ABOUT, {"u": np.arange(1e5)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["a.h5"]
    with pytest.raises(OptionError, match="a.h5 is no folder"):
        checkpoint_file.write(path / "b.h5", COMM, ABOUT, {"u": np.arange(10.0)})


def test_leftovers_of_dead_processes_go(tmp_path):
    gone, alive, other = (
        tmp_path / f".{n}.0a.part" for n in ("a.h5.4194304999", f"a.h5.{os.getppid()}", "b.h5.4194304999")
    )
    for path in (gone, alive, other):
        path.write_text("")
    with atomic_path(tmp_path / "a.h5", durable=True) as part:
        part.write_text("x")
    assert not gone.exists() and alive.exists() and other.exists()


def test_many_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_file, "CHUNK", 7)
    arrays = {"u": np.arange(30.0), "cells": np.arange(40.0).reshape(10, 4), "nothing": np.zeros((0, 3))}
    checkpoint_file.write(tmp_path / "a.h5", COMM, ABOUT, arrays)
    with checkpoint_file.opened(tmp_path / "a.h5", COMM) as file:
        for name, values in arrays.items():
            assert np.array_equal(file.read(name, values.shape), values)
        with pytest.raises(CheckpointError, match="'u'"):
            file.read("u", (31,))


def test_order_of_items():
    numbers = np.random.default_rng(2).permutation(50)
    order, values = GlobalOrder(COMM, numbers), np.random.default_rng(3).uniform(size=(50, 3))
    assert np.array_equal(order.collect(values)[numbers], values) and np.array_equal(
        order.deal(order.collect(values)), values
    )
    assert np.array_equal(GlobalOrder.of_keys(COMM, numbers * 17, 900).numbers, numbers)
    with pytest.raises(ValueError):
        GlobalOrder.of_keys(COMM, np.array([3, 4, 3]), 5)


def test_two_problems_do_not_share_a_file(tmp_path):
    path = str(tmp_path / "a.h5")
    first, second = (problem(checkpoint=path, text=physics(name=name)) for name in ("one", "two"))
    list(first.load_steps([1, 2], first.create_vec()))
    with pytest.raises(CheckpointError, match="prefixes"):
        list(second.load_steps([1, 2], second.create_vec()))


def test_kinds_and_times(tmp_path):
    path = str(tmp_path / "a.h5")
    steps = problem(checkpoint=path, checkpoint_interval=1)
    list(steps.load_steps([1, 2, 3], steps.create_vec()))
    with pytest.raises(CheckpointError, match="3 steps of a load behind it, and this run has 2"):
        other = problem(restart=path)
        list(other.load_steps([1, 2], other.create_vec()))
    done = problem(restart=path)
    assert list(done.load_steps([1, 2, 3, 4], done.create_vec())) == [4]
    with pytest.raises(CheckpointError, match="steps of a load .* and a run in time"):
        wrong = problem(restart=path)
        wrong.restart(path, ts=PETSc.TS().create(PETSc.COMM_SELF))


def own_ts(found: fe.Problem, u: PETSc.Vec, end: float, **restart) -> PETSc.TS:
    """A TS of the user's own, taken to its end."""
    ts = PETSc.TS().create(PETSc.COMM_SELF)
    found.attach(ts)
    ts.setType("bdf")
    ts.setTimeStep(0.01)
    ts.setMaxTime(end)
    ts.setExactFinalTime(PETSc.TS.ExactFinalTime.STEPOVER)
    ts.getSNES().getKSP().getPC().setType("lu")
    found.restart(ts=ts, u=u)
    ts.solve(u)
    return ts


def test_the_users_own_ts(tmp_path):
    path = str(tmp_path / "a.h5")
    heat = fe.Physics({"u": 1}, "f0[0] = u_t[0] - 1;", F1, constants={"k": 1.0}, boundary=physics().boundary)
    mesh = fe.Mesh.box((4, 4), comm=PETSc.COMM_SELF)
    settings = {"degree": 2, "check_kernels": False, "checkpoint_interval": 4}
    alone, first, again = (
        fe.Problem(mesh, heat, Options(**settings, **more)) for more in ({}, {"checkpoint": path}, {"restart": path})
    )
    u, before, after = (found.create_vec() for found in (alone, first, again))
    steps = own_ts(alone, u, 0.1).getStepNumber()
    assert 4 <= own_ts(first, before, 0.05).getStepNumber() < steps
    assert own_ts(again, after, 0.1).getStepNumber() == steps
    assert np.array_equal(after.getArray(), u.getArray()) and not np.allclose(before.getArray(), u.getArray())
    with pytest.raises(CheckpointError, match="this run goes from 0 to 0.02"):
        own_ts(fe.Problem(mesh, heat, Options(**settings, restart=path)), after, 0.02)
