"""Seconds by stage: a stage within another one is counted once."""

from __future__ import annotations

import time

import pytest

from petsc_hdg import stages


def test_a_stage_within_another(monkeypatch):
    for name in ("outer", "inner"):
        with stages.stage(name):  # starts PETSc, which takes its time
            pass
    monkeypatch.setattr(stages, "SECONDS", {})
    start = time.perf_counter()
    with stages.stage("outer"):
        time.sleep(0.02)
        with stages.stage("inner"):
            time.sleep(0.05)
            with stages.stage("outer"):
                time.sleep(0.01)
    passed, found = time.perf_counter() - start, stages.SECONDS
    assert found["inner"] == pytest.approx(0.05, abs=0.02) and found["outer"] == pytest.approx(0.03, abs=0.02)
    assert passed - 0.01 < found["inner"] + found["outer"] < passed


def test_a_stage_that_fails_is_closed(monkeypatch):
    monkeypatch.setattr(stages, "SECONDS", {})
    with pytest.raises(ValueError), stages.stage("outer"), stages.stage("inner"):
        raise ValueError
    assert stages._INSIDE == [] and {*stages.SECONDS} == {"outer", "inner"}
    assert stages.petsc_stage("outer") is not None and stages.petsc_stage("never") is None
