"""The line of progress: what it counts, where it is shown, and where not."""

from __future__ import annotations

import io
import re
import time

from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg import progress
from petsc_hdg.physics import library
from petsc_hdg.progress import PROGRESS

EDGE = [fe.Dirichlet("boundary", 0.0)]
HEAT = fe.Physics(
    {"u": 1},
    "f0[0] = u_t[0] - 1;",
    "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    boundary=EDGE,
    name="heat",
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch) -> Terminal:
    """Standard error, as a terminal that shows lines from the first moment on."""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress.sys, "stderr", Terminal())
    return progress.sys.stderr


def heat(**options):
    return fe.Problem(fe.Mesh.box((4, 4)), HEAT, degree=1, **options)


def test_runs_in_time():
    problem, seen = heat(progress="on"), []
    problem.solve_in_time(problem.interpolate(0.0), 0.2, 0.01, monitor=lambda t, u: seen.append(PROGRESS.text(2.0)))
    pattern = r"solve 2 s, step 9, t = 0\.09 of 0\.2, Newton \d+, linear \d+, \S+ iterations/s, 45 %, \d+ s left"
    assert re.fullmatch(pattern, seen[9]), seen
    assert not PROGRESS.work and not PROGRESS.newton, "the next run counts anew"


def test_load_steps():
    problem = fe.Problem(fe.Mesh.box((4, 4)), library.p_laplacian(boundary=EDGE), degree=1, progress="on")
    u, seen = problem.create_vec(), []
    for p in problem.load_steps((2.5, 3.0, 3.5), u):
        problem.set_constants(p=p)
        problem.solve(u).copy(u)
        seen.append(PROGRESS.text(1.0))
    assert re.search(r"load step 1 of 3, Newton \d+, linear \d+, .* 33 %", seen[1]), seen


def test_slabs():
    problem, seen = heat(backend="poly_gpu", progress="on"), []
    u = problem.interpolate(0.0)
    fe.SpaceTime(problem).march(u, 0.0, 0.1, 5, lambda t, u: seen.append(PROGRESS.text(1.0)))
    assert re.search("slab 3 of 5, Newton [34]", seen[3]), seen


def test_a_terminal_shows_it_and_is_left_clean(monkeypatch):
    shown = terminal(monkeypatch)
    PROGRESS.settle("auto", rank=0)
    assert PROGRESS.is_on
    with PROGRESS.task("solve"):
        while "solve 0 s" not in shown.getvalue():
            time.sleep(0.001)
    assert "\n" not in shown.getvalue() and shown.getvalue().endswith(progress.CLEAR)


def test_silent_where_nobody_looks(monkeypatch):
    shown = terminal(monkeypatch)
    PROGRESS.settle("on", rank=1)
    assert not PROGRESS.is_on
    heat(progress="off").create_ts()
    assert not PROGRESS.is_on
    with petsc_options(ts_monitor=""):
        heat().create_ts()
    assert not PROGRESS.is_on and not shown.getvalue()
    shown.isatty = lambda: False
    PROGRESS.settle("auto", rank=0)
    assert not PROGRESS.is_on


def test_durations():
    assert [progress._duration(s) for s in (7.9, 125, 3605)] == ["7 s", "2:05", "1:00:05"]
