"""The README and the pages of docs keep their word: their Python runs, the table of options is that of options.py,
links and commands exist, every example and every public name is listed."""

from __future__ import annotations

import re
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest

import petsc_hdg
from petsc_hdg.database import option_name
from petsc_hdg.options import Options
from petsc_hdg.output.grid import Grid
from petsc_hdg.problem.results.derived_fields import Derived
from petsc_hdg.representation import Described

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
GUIDE = sorted([ROOT / "README.md", *(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)])
WITH_COMMANDS = [ROOT / "README.md", *(DOCS / f"{name}.md" for name in ("commands", "examples", "index", "install"))]
OTHERS = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "benchmarks" / "NOTES.md"]
IN_QUICK_TIER = ("README.md",)
RANKS = {"ranks.md": 2}


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def row(f) -> str:
    """The line of docs/options.md for an option."""
    default = str(f.default).lower() if isinstance(f.default, bool) else str(f.default)
    choices = ", ".join(f"`{choice}`" for choice in f.metadata["choices"] or ())
    shown, listed = f"`{default}`" if default else "", f": {choices}" if choices else ""
    return f"| `-{option_name(f)}` | {shown} | {f.metadata['help']}{listed} |"


def test_table_of_options():
    expected = [row(f) for f in fields(Options) if f.name != "prefix"]
    assert [line for line in text_of(DOCS / "options.md").splitlines() if line.startswith("| `-")] == expected


def test_every_option_is_explained():
    """On some page, beside its row in the table; and pages name no others."""
    known = {option_name(f) for f in fields(Options) if f.name != "prefix"}
    prose = "\n".join(re.sub(r"^\| `-.*$", "", text_of(path), flags=re.MULTILINE) for path in GUIDE)
    assert set(re.findall(r"-((?:fe|hdg|cg|sipg|poly)_[a-z_]+)", prose)) == known


def python_of(path: Path) -> str:
    """All Python of a page, as one script."""
    return "\n".join(re.findall(r"```python\n(.*?)```", text_of(path), re.DOTALL))


def without_lines(text: str) -> str:
    """C text without its directives of lines."""
    return re.sub(r"^#line .*\n", "", text, flags=re.MULTILINE)


QUICK = [pytest.param(path, marks=pytest.mark.quick if path.name in IN_QUICK_TIER else ()) for path in GUIDE]


@pytest.mark.parametrize("path", QUICK, ids=lambda path: path.name)
def test_python_of_the_guide_runs(mpirun, tmp_path, path):
    """From an empty folder, but for the mesh files that a page links to."""
    code = python_of(path)
    if not code:
        pytest.skip("no Python on this page")
    for link in re.findall(r"\]\(([^)#]+\.msh)\)", text_of(path)):
        mesh = (path.parent / link).resolve()
        copy = tmp_path / mesh.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(mesh.read_bytes())
    script = tmp_path / f"{path.stem}.py"
    script.write_text(code, encoding="utf-8")
    said = mpirun(RANKS.get(path.name, 1), script, cwd=tmp_path).stdout
    for comment in re.findall(r"print\(.*?\)  # (.*)", code):
        assert comment in said
    programs = "".join(text_of(program) for program in tmp_path.rglob("*.cl"))
    for block in re.findall(r"```c\n(.*?)```", text_of(path), re.DOTALL) if programs else ():
        for part in block.split("// …\n"):
            assert without_lines(part) in without_lines(programs)


@pytest.mark.parametrize("path", [*GUIDE, *OTHERS], ids=lambda path: path.name)
def test_links_of_the_guide(path):
    text = path.read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+?)\)", text) if not target.startswith("http")]
    assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", WITH_COMMANDS, ids=lambda path: path.name)
def test_commands_of_the_guide(path):
    makefile, text = text_of(ROOT / "Makefile"), text_of(path)
    for target in set(re.findall(r"\bmake ([a-z-]+)", text)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for command in set(re.findall(r"-m petsc_hdg (\w+)", text)):
        assert find_spec(f"petsc_hdg.commands.{command}"), command
    for script in set(re.findall(r"(?:python|PYTHON|precompile) (examples/\S+\.py)", text)):
        assert (ROOT / script).is_file(), script


def test_every_target_is_in_the_table_of_commands():
    targets = set(re.findall(r"^([a-z-]+):.*## ", text_of(ROOT / "Makefile"), re.MULTILINE))
    listed = set(re.findall(r"`make ([a-z-]+)`", text_of(DOCS / "commands.md")))
    assert listed == targets


def test_every_example_is_in_the_gallery():
    listed = set(re.findall(r"^\| \[(\w+\.py)\]", text_of(DOCS / "examples.md"), re.MULTILINE))
    assert listed == {path.name for path in (ROOT / "examples").glob("*.py")}


def test_every_public_name_is_in_the_reference():
    listed = re.findall(r"^\.\. auto(?:class|function|exception):: (\w+)$", text_of(DOCS / "api.md"), re.MULTILINE)
    assert sorted(listed) == petsc_hdg.__all__


@pytest.mark.parametrize("name", ["Problem", "Physics", "Mesh", "Derived", "Grid"])
def test_every_name_of_an_object_is_in_the_reference(name):
    """What completion offers is a member on the page, or a row of the table in the class' docstring."""
    page = text_of(DOCS / "api.md")
    found = re.search(rf"^\.\. autoclass:: {name}(?:\(\))?\n   :members: (.*(?:\n      .*)*)", page, re.MULTILINE)
    kind = getattr(petsc_hdg, name, None) or {"Derived": Derived, "Grid": Grid}[name]
    rows = re.findall(r"^ *(\w+(?:, \w+)*)  +\S", kind.__doc__, re.MULTILINE)
    given = kind.PUBLIC if issubclass(kind, Described) else (*kind.__dataclass_fields__, *vars(kind))
    offered = [name for name in given if not name.startswith("_")]
    assert len(offered) > 5 and set(offered) - set(re.findall(r"\w+", ", ".join([found[1], *rows]))) == set()


def test_every_page_is_in_the_contents():
    contents = "".join(re.findall(r"```{toctree}\n(.*?)```", text_of(DOCS / "index.md"), re.DOTALL))
    listed = {line for line in contents.splitlines() if line and not line.startswith(":")}
    pages = {str(path.relative_to(DOCS).with_suffix("")) for path in GUIDE if path.is_relative_to(DOCS)}
    assert listed == pages - {"index"}
