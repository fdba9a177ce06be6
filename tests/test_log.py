"""Messages of a run: what each level says, on rank 0 alone, and through Python's logging."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import petsc_hdg as fe
from petsc_hdg import log
from petsc_hdg.errors import OptionError
from petsc_hdg.physics import library

SCRIPT = Path(__file__).with_name("run_log.py")
# Of each level, lines that it adds to those of the levels before it.
ADDED = {
    "quiet": (),
    "warning": ("UserWarning: the waves of physics 'wave'",),
    "info": (
        "petsc_hdg info: made <Mesh: 32 triangle cells on",
        "petsc_hdg info: made <Problem 'minimal_surface' by",
        "petsc_hdg info: tries Newton's method from the linear extension of the data",
        r"petsc_hdg info: solved with \d+ Newton iterations and \d+ linear",
        r"petsc_hdg info: wrote \S+u.vtu",
        "petsc_hdg info: solves by LU: factors serve all steps",
        r"petsc_hdg info: made 2 steps to t = 0.2, with \d+ Newton iterations",
    ),
    "debug": (r"petsc_hdg debug: program cg_residual: (loaded|compiled) in", "petsc_hdg debug: stage solve took"),
}


def test_levels_add_lines(mpirun, tmp_path):
    assert tuple(ADDED) == tuple(log.LEVELS)
    for ranks, level in ((1, "quiet"), (1, "warning"), (3, "info"), (1, "debug")):
        said, due = mpirun(ranks, SCRIPT, tmp_path / "u.vtu", "-fe_log_level", level).stderr, True
        for name, lines in ADDED.items():
            found = {line: len(re.findall(line, said)) for line in lines}
            assert all(found.values()) if due else not any(found.values()), (level, found, said)
            due &= name != level
        assert len(re.findall("made <Mesh", said)) == (level in ("info", "debug")), "once, whatever the ranks"


def test_handlers_of_the_user_take_the_messages(caplog, capsys):
    problem = fe.Problem(fe.Mesh.box((2, 2)), library.poisson(boundary=fe.Dirichlet("boundary", 0.0)), log_level="info")
    problem.solve()
    assert [record.name for record in caplog.records] == ["petsc_hdg"] * 2 and not capsys.readouterr().err
    assert caplog.records[1].message == "solved with 1 Newton iteration and 1 linear"
    problem.with_options(log_level="quiet").solve()
    assert len(caplog.records) == 2 and not log.warns()
    problem.with_options(log_level="warning")
    assert log.warns()


@pytest.fixture(autouse=True)
def default_level():
    """Leave the level as it was."""
    yield
    log.settle("warning", 0)


def test_other_ranks_only_warn():
    log.settle("debug", 1)
    assert log.LOGGER.level == logging.WARNING
    log.settle("quiet", 1)
    assert log.LOGGER.level == logging.ERROR


def test_an_unknown_level_is_refused():
    with pytest.raises(OptionError, match="-fe_log_level .*loud.*quiet, warning, info, debug"):
        fe.Options(log_level="loud").validate()
