"""The README keeps its word: its Python runs, its table is that of options.py, its links and commands exist."""

from __future__ import annotations

import re
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest

from petsc_hdg.options import Options, option_name

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def row(f) -> str:
    """The README's line for an option."""
    default = str(f.default).lower() if isinstance(f.default, bool) else str(f.default)
    choices = ", ".join(f"`{choice}`" for choice in f.metadata["choices"] or ())
    shown, listed = f"`{default}`" if default else "", f": {choices}" if choices else ""
    return f"| `-{option_name(f)}` | {shown} | {f.metadata['help']}{listed} |"


def test_table_of_options():
    expected = [row(f) for f in fields(Options) if f.name != "prefix"]
    assert [line for line in README.splitlines() if line.startswith("| `-")] == expected


def python_of(path: Path) -> str:
    """All Python of a page, as one script."""
    return "\n".join(re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL))


QUICK = [pytest.param(path, marks=pytest.mark.quick if path.name == "README.md" else ()) for path in GUIDE]


@pytest.mark.parametrize("path", QUICK, ids=lambda path: path.name)
def test_python_of_the_guide_runs(mpirun, tmp_path, path):
    code = python_of(path)
    if not code:
        pytest.skip("no Python on this page")
    script = tmp_path / f"{path.stem}.py"
    script.write_text(code, encoding="utf-8")
    said = mpirun(1, script).stdout
    for comment in re.findall(r"print\(.*?\)  # (.*)", code):
        assert comment in said


@pytest.mark.parametrize("path", GUIDE, ids=lambda path: path.name)
def test_links_of_the_guide(path):
    text = path.read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+?)\)", text) if not target.startswith("http")]
    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_commands_of_the_readme():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"\bmake ([a-z-]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for command in set(re.findall(r"-m petsc_hdg (\w+)", README)):
        assert find_spec(f"petsc_hdg.commands.{command}"), command
    for script in set(re.findall(r"(?:python|PYTHON) (examples/\S+\.py)", README)):
        assert (ROOT / script).is_file(), script


def test_every_example_is_in_the_readme():
    listed = set(re.findall(r"^\| \[(\w+\.py)\]", README, re.MULTILINE))
    assert listed == {path.name for path in (ROOT / "examples").glob("*.py")}
