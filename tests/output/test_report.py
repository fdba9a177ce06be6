"""Reports: what is written, what is refused, how they read."""

import json

import numpy as np
import pytest
from mpi4py import MPI

from petsc_hdg.errors import OptionError
from petsc_hdg.output import format_report, write_report
from petsc_hdg.output.report import KEYS

COMM = MPI.COMM_SELF
DATA = {
    "backend": "cg_gpu",
    "degree": 2,
    "ranks": np.int32(3),
    "cells": 19786,
    "dofs": np.int64(81234),
    "device": "cpu",
    "vec_mode": "host",
    "iterations": {"nonlinear": 1, "linear": 24},
    "errors": {"L2": np.float64(1.25e-6), "H1": None},
    "seconds": {"mesh": 0.5, "solve": 2.0},
}


def test_written_and_read_back(tmp_path):
    write_report(tmp_path / "r.json", COMM, DATA)
    found = json.loads((tmp_path / "r.json").read_text())
    assert list(found) == list(KEYS) and found["errors"] == {"L2": 1.25e-6, "H1": None} and found["dofs"] == 81234


def test_not_finite_is_null_with_a_note(tmp_path):
    data = {**DATA, "errors": {"L2": float("nan"), "H1": np.inf}, "extra": np.array([1.0, -np.inf])}
    write_report(tmp_path / "r.json", COMM, data)
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["errors"] == {"L2": None, "H1": None} and found["extra"] == [1.0, None]
    assert found["notes"] == ["errors.L2 was nan", "errors.H1 was inf", "extra[1] was -inf"]


@pytest.mark.parametrize("key", KEYS)
def test_missing_key(tmp_path, key):
    with pytest.raises(OptionError, match=f"lacks {key}"):
        write_report(tmp_path / "r.json", COMM, {k: of for k, of in DATA.items() if k != key})
    assert not list(tmp_path.iterdir())


def test_refused(tmp_path):
    with pytest.raises(OptionError, match="lacks errors.H1"):
        write_report(tmp_path / "r.json", COMM, {**DATA, "errors": {"L2": 1.0}})
    with pytest.raises(OptionError, match="'seconds.solve' is a complex"):
        write_report(tmp_path / "r.json", COMM, {**DATA, "seconds": {"solve": 1j}})
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="file is no folder"):
        write_report(tmp_path / "file" / "r.json", COMM, DATA)


def test_table():
    text = format_report({**DATA, "errors": {"L2": float("nan"), "H1": 1.0}})
    for part in ("cg_gpu, degree 2", "19 786 cells", "81 234", "1 nonlinear, 24 linear", "L2 not known, H1 1.000e+00"):
        assert part in text
    assert "error " not in format_report({**DATA, "errors": {"L2": None, "H1": None}})
    assert "errors.L2 was nan" in text and max(map(len, text.splitlines())) < 80 and not text.endswith("\n")
