"""Checkpoints made by hand, with a right digest, are refused in a sentence; a full disk is one, too."""

from __future__ import annotations

import json
import resource

import h5py
import numpy as np
import pytest
from mpi4py import MPI
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.errors import CheckpointError, OptionError
from petsc_hdg.output import checkpoint_file

COMM = MPI.COMM_SELF
COUNT = 10


def sealed(path) -> None:
    """Give a file the head of its bytes."""
    with open(path, "r+b") as file:
        size, digest = checkpoint_file._measured(file)
        file.seek(0)
        head = f"{checkpoint_file.MAGIC}\n{size}\n{digest}\n"
        file.write(head.encode().ljust(checkpoint_file.BLOCK, b"\0"))


def replaced(make):
    """A change that puts something else in the place of the array."""

    def change(file):
        file.copy("u", "kept")
        del file["u"]
        make(file)

    return change


def virtual(file):
    layout = h5py.VirtualLayout((COUNT,), "<f8")
    layout[:] = h5py.VirtualSource(".", "kept", (COUNT,))
    file.create_virtual_dataset("u", layout)


def reference(file):
    file.create_dataset("u", (COUNT,), h5py.ref_dtype)


ARRAYS = {
    "missing": lambda file: None,
    "group": lambda file: file.create_group("u"),
    "the root": lambda file: file.__setitem__("u", file["/"]),
    "type": lambda file: file.__setitem__("u", np.dtype("<f8")),
    "soft link": lambda file: file.__setitem__("u", h5py.SoftLink("/kept")),
    "soft link to itself": lambda file: file.__setitem__("u", h5py.SoftLink("/u")),
    "external link": lambda file: file.__setitem__("u", h5py.ExternalLink("other.h5", "/u")),
    "bytes of another file": lambda file: file.create_dataset("u", (COUNT,), "<f8", external=[("/etc/passwd", 0, 80)]),
    "virtual": virtual,
    "filtered": lambda file: file.create_dataset("u", (COUNT,), "<f8", compression="gzip"),
    "whole numbers": lambda file: file.create_dataset("u", (COUNT,), "<i8"),
    "records": lambda file: file.create_dataset("u", (COUNT,), [("x", "<f8")]),
    "references": reference,
    "texts": lambda file: file.create_dataset("u", (COUNT,), h5py.string_dtype()),
    "nothing": lambda file: file.create_dataset("u", data=h5py.Empty("<f8")),
    "another shape": lambda file: file.create_dataset("u", (COUNT, 1), "<f8"),
}


@pytest.fixture
def path(tmp_path):
    for name in ("a.h5", "other.h5"):
        checkpoint_file.write(tmp_path / name, COMM, {"kind": "state"}, {"u": np.arange(float(COUNT))})
    return tmp_path / "a.h5"


@pytest.mark.parametrize("case", ARRAYS)
def test_what_is_no_array_of_the_file(path, case):
    with h5py.File(path, "r+") as file:
        replaced(ARRAYS[case])(file)
    sealed(path)
    with checkpoint_file.opened(path, COMM) as file:
        with pytest.raises(CheckpointError, match="holds no fitting 'u'"):
            file.read("u", (COUNT,))
        assert np.array_equal(file.read("kept", (COUNT,)), np.arange(float(COUNT)))


TEXTS = [3, "{", "[1]", '"u"', "null", "[" * 100_000, np.arange(3), h5py.Empty("S1"), b"\xff", "NaN"]


@pytest.mark.parametrize("text", TEXTS, ids=[str(k) for k in range(len(TEXTS))])
def test_what_does_not_say_what_it_is(path, text):
    with h5py.File(path, "r+", libver="latest") as file:
        del file.attrs["about"]
        file.attrs["about"] = text
    sealed(path)
    with pytest.raises(CheckpointError, match="does not say what it is of"), checkpoint_file.opened(path, COMM):
        pytest.fail("the block must not run")


def without(key):
    return lambda about: about.pop(key)


def of_problem(**values):
    return lambda about: about["problem"].update(values)


def with_(**values):
    return lambda about: about.update(values)


BDF = {"method": "bdf", "dt": 1.0, "started": True}
ABOUT = {
    f"no {key}": without(key) for key in ("problem", "constants", "kind", "t", "step", "numbers", "details", "arrays")
}
ABOUT |= {
    "problem a list": with_(problem=[]),
    "no degree": lambda about: about["problem"].pop("degree"),
    "degree a text": of_problem(degree="2"),
    "box of texts": lambda about: about["problem"].update(box=["0"] * len(about["problem"]["box"])),
    "box of one": of_problem(box=[1.0]),
    "box a number": of_problem(box=1.0),
    "fields a list": of_problem(fields=["u"]),
    "constants of texts": with_(constants={"k": "1"}),
    "kind a list": with_(kind=["state"]),
    "kind unknown": with_(kind="magic"),
    "t a text": with_(t="now"),
    "t no number": with_(t=float("nan")),
    "t too large": with_(t=10**400),
    "step below 0": with_(step=-1),
    "step too large": with_(step=10**30),
    "step a fraction": with_(step=1.5),
    "step a truth": with_(step=True),
    "numbers a list": with_(numbers=[1]),
    "details a text": with_(details="dt"),
    "details of another kind": with_(kind="time"),
    "history of texts": with_(kind="time", details=BDF | {"history": ["a"]}),
    "history without states": with_(kind="time", details=BDF | {"history": [[0, 1]]}),
    "march of one": with_(kind="slabs", details={"times": [1]}),
    "norm missing": with_(kind="newton", details={"newton": 1}),
    "arrays a text": with_(arrays="u"),
    "arrays of arrays": with_(arrays=[["u"]]),
    "arrays elsewhere": with_(arrays=["u", "../u"]),
    "arrays twice": with_(arrays=["u", "u"]),
    "no u": with_(arrays=[]),
}  # fmt: skip


def make_problem() -> fe.Problem:
    flux = "for (d = 0; d < dim; ++d) f1[d] = k*u_x[d];"
    conditions = [fe.Dirichlet("boundary", "g[0] = 0;")]
    physics = fe.Physics({"u": 1}, "f0[0] = -1;", flux, constants={"k": 1.0}, boundary=conditions)
    mesh = fe.Mesh.box((4, 4), comm=PETSc.COMM_SELF)
    return fe.Problem(mesh, physics, fe.Options(degree=1, check_kernels=False))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A problem and the checkpoint of a state, with its text."""
    path, problem = tmp_path_factory.mktemp("forged") / "a.h5", make_problem()
    u = problem.create_vec()
    u.set(1.0)
    problem.checkpoint(path, u)
    with h5py.File(path) as file:
        return problem, path, file.attrs["about"]


@pytest.mark.parametrize("case", ABOUT)
def test_what_says_something_else(written, case):
    problem, path, text = written
    about = json.loads(text)
    ABOUT[case](about)
    with h5py.File(path, "r+") as file:
        file.attrs["about"] = json.dumps(about)
    sealed(path)
    with pytest.raises(CheckpointError, match="does not say what it is of"):
        problem.restart(path)


def test_numbers_of_a_state_are_finite(written):
    problem, path, text = written
    with h5py.File(path, "r+") as file:
        file.attrs["about"] = text
    sealed(path)
    assert problem.restart(path).u.norm() > 0
    with h5py.File(path, "r+") as file:
        file["u"][0] = np.nan
    sealed(path)
    with pytest.raises(CheckpointError, match="cannot be gone on from: 'u' has values that are no finite numbers"):
        problem.restart(path)


def test_a_disk_that_is_full_at_any_byte(tmp_path, capfd):
    """The error is one sentence, HDF5 says nothing, and what was there stays: also where the last bytes do not fit."""
    path, values = tmp_path / "a.h5", np.arange(1000.0)
    checkpoint_file.write(path, COMM, {"kind": "state"}, {"u": values})
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    for most in [*range(0, len(before), 700), len(before) - 1]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
        try:
            with pytest.raises(OptionError, match=r"^Cannot write .*a.h5: File too large; give a file .*\.$"):
                checkpoint_file.write(path, COMM, {"kind": "state"}, {"u": values + 1})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["a.h5"]
    assert capfd.readouterr() == ("", "")
