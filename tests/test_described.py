"""What objects show in notebooks and complete: their facts, escaped, and the names of the guide."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from petsc4py import PETSc
from sample_physics import smooth_poisson

import petsc_hdg as fe
from petsc_hdg.options import Options

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.py")]
OTHERS = {
    "problem": {"operator", "tried", "results"},
    "mesh": {"point_data", "cells"},
    "physics": {"md", "dependence", "library"},
}  # or meshio's, or a folder's


@pytest.fixture(scope="module")
def things():
    mesh = fe.Mesh.box((2, 2), comm=PETSc.COMM_SELF)
    problem = fe.Problem(mesh, smooth_poisson(), Options(check_kernels=False))
    return {"problem": problem, "mesh": mesh, "physics": problem.physics}


@pytest.mark.parametrize("kind", OTHERS)
def test_completion_has_the_names_of_the_guide(things, kind):
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    used = set(re.findall(rf"\b{kind}\.([a-z]\w+)\b", text)) - OTHERS[kind]
    offered = dir(things[kind])
    assert len(used) > 2 and used - set(offered) == set()
    assert offered == sorted(set(offered)) and not [name for name in offered if name.startswith("_")]
    assert [name for name in offered if name != "snes" and not hasattr(things[kind], name)] == []


@pytest.mark.parametrize("kind", OTHERS)
def test_notebooks_show_a_table(things, kind):
    rows = ET.fromstring(things[kind]._repr_html_())
    found = {row[0].text: row[1].text for row in rows.iter("tr")}
    assert rows.tag == "table" and found == {name: fact for name, fact in things[kind].facts().items() if fact}
    known = {"problem": "cg_gpu of degree 1", "mesh": "8 triangle cells on 1 rank", "physics": "smooth Poisson"}
    assert known[kind] in found.values()


def test_a_report_is_a_dict_that_shows_itself(things):
    problem = things["problem"]
    report = problem.report(problem.solve())
    assert report["cells"] == 8 and str(report) == repr(report) == problem.summary(report)
    assert ET.fromstring(report._repr_html_()).text == problem.summary(report)
    report.pop("cells")
    assert repr(report) == repr(dict(report))
