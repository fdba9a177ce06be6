"""House rules: imports point down and never in circles, who talks to OpenCL and to the options, sizes, headers."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from petsc_hdg.codegen.library import needed_names

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "petsc_hdg"

# A module may import modules of lower levels and its own folder. `stages` is PETSc's log, open to all above it.
LEVELS = {
    "log": 0,
    "errors": 0.1,
    "lookup": 0,
    "nvml": 0,
    "threads": 0,
    "representation": 0.25,
    "value_checks": 0.25,
    "database": 0.4,
    "options": 0.5,
    "progress": 0.6,
    "stages": 0.7,
    "petsc": 0.75,
    "reference": 1,
    "physics": 1,
    "codegen": 1,
    "device": 1.5,
    "mesh": 2,  # which the devices of the ranks are dealt
    "discretizations": 3,
    "operators": 4,
    "krylov": 4.5,
    "output": 4,
    "problem": 5,
    "run": 5,
    "__init__": 5.5,  # the public names, looked up at first use
    "commands": 6,
    "__main__": 7,
}
# Packages that only some modules may import.
ONLY_IN = {
    "ctypes": {"petsc", "device", "nvml"},
    "pyopencl": {"device"},
    "basix": {"reference", "mesh", "output", "commands", "discretizations"},
    "meshio": {"mesh", "output", "commands"},
    "pymetis": {"mesh"},
    "threadpoolctl": {"threads"},
    "matplotlib": {"output", "commands"},
    "pyvista": {"output"},
    "h5py": {"output"},
    "pycparser": {"physics", "commands"},
    "scipy": set(),  # the tests only: no requirement of the package
    "sympy": {"physics", "commands"},
}
PURE = {"reference", "physics", "codegen"}  # numpy only: no PETSc, no MPI, no OpenCL
READS_OPTIONS = {"database", "options", "mesh", "run"}  # the mesh reads PETSc's own -dm_plex_*, run asks for -help
MOST_LINES = 500

SOURCES = sorted(PACKAGE.rglob("*.py"))
KERNELS = sorted(path for path in (ROOT / "kernels_cl").rglob("*") if path.suffix in (".cl", ".clh"))
CHECKED = sorted([*SOURCES, *KERNELS, *(ROOT / "tests").rglob("*.py"), *(ROOT / "examples").rglob("*.py")])


def part(path: Path) -> str:
    """Folder or module of the package that a source file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(path: Path) -> list[tuple[int, str]]:
    """(line, full module name) of everything imported, also inside functions; relative names are resolved."""
    package = ("petsc_hdg", *path.relative_to(PACKAGE).parent.parts)
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*base, *([node.module] if node.module else [])])
            found += [(node.lineno, f"{base}.{alias.name}") for alias in node.names]
    return found


def petsc_hdg_part(name: str) -> str | None:
    """Part of the package that a full module name lies in, None for other packages."""
    parts = name.split(".")
    if parts[0] != "petsc_hdg":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in LEVELS else "__init__"


def import_faults(path: Path) -> list[str]:
    """Imports of a source file that point upwards, to a peer, or to a package it may not use."""
    mine, faults = part(path), []
    for line, name in imported(path):
        other, package = petsc_hdg_part(name), name.split(".")[0]
        if other is not None and other != mine and LEVELS[other] >= LEVELS[mine]:
            faults.append(f"{path.name}:{line} ({mine}) imports {name} ({other})")
        if mine not in ONLY_IN.get(package, {mine}):
            faults.append(f"{path.name}:{line} ({mine}) imports {package}")
        if mine in PURE and package in ("petsc4py", "mpi4py"):
            faults.append(f"{path.name}:{line} ({mine}) imports {package}")
    return faults


def test_imports_point_down():
    assert {part(path) for path in SOURCES} <= LEVELS.keys(), "give each part a level in LEVELS"
    assert [fault for path in SOURCES for fault in import_faults(path)] == []


def rooms(folder: Path) -> dict[str, set[str]]:
    """Files and folders of a folder, and which of the others each imports; `__init__` may import all."""
    name = "petsc_hdg." + ".".join([*folder.relative_to(PACKAGE).parts, ""])
    found = {path.stem: set() for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    for path in folder.rglob("*.py"):
        room = path.relative_to(folder).with_suffix("").parts[0]
        others = [other.removeprefix(name).split(".")[0] for _, other in imported(path) if other.startswith(name)]
        found[room] |= {other for other in others if other in found} - {room}
    del found["__init__"]
    return found


FOLDERS = sorted({path.parent for path in SOURCES} - {PACKAGE})


def test_no_room_imports_one_that_imports_it():
    circles = {str(folder.relative_to(PACKAGE)): circle(folder) for folder in FOLDERS}
    assert {folder: left for folder, left in circles.items() if left} == {}, "these import each other"


def circle(folder: Path) -> dict[str, set[str]]:
    """The rooms of a folder that are left when those that import none, or only such, are taken away."""
    left = rooms(folder)
    while ground := {room for room, others in left.items() if not others & left.keys()}:
        left = {room: others for room, others in left.items() if room not in ground}
    return left


def test_only_options_reads_the_database():
    for path in SOURCES:
        if part(path) not in READS_OPTIONS:
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            names = [ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)]
            assert "PETSc.Options" not in names, path


def test_the_rules_can_be_broken(tmp_path, monkeypatch):
    monkeypatch.setattr("test_house.PACKAGE", tmp_path)
    (tmp_path / "physics").mkdir()
    path = tmp_path / "physics" / "bad.py"
    path.write_text("import pyopencl as cl\nfrom ..device import Kernel\nfrom .. import mesh\nfrom . import fine\n")
    path.write_text(path.read_text() + "def f():\n    from petsc4py import PETSc\n    import petsc_hdg.reference\n")
    assert [fault.split()[0] for fault in import_faults(path)] == [f"bad.py:{line}" for line in (1, 2, 3, 6, 7)]
    (tmp_path / "physics" / "__init__.py").write_text("")
    (tmp_path / "physics" / "fine.py").write_text("x = 1\n")
    assert circle(tmp_path / "physics") == {}
    (tmp_path / "physics" / "fine.py").write_text("from .bad import f\n")
    assert circle(tmp_path / "physics").keys() == {"bad", "fine"}


def test_files_are_short():
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in CHECKED}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def header(text: str) -> str:
    """The comment lines a kernel file opens with."""
    lines = text.splitlines()
    length = next((i for i, line in enumerate(lines) if not line.startswith("//") and line.strip()), len(lines))
    return "\n".join(lines[:length])


def used_capitals(text: str) -> set[str]:
    """Capital names a kernel file uses and does not define itself."""
    code = re.sub(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"', " ", text, flags=re.DOTALL)
    code = re.sub(r"#\s*(?:pragma|error)[^\n]*", " ", code)
    own = set(re.findall(r"#\s*define\s+(\w+)", code))
    own |= set(re.findall(r"\w+", " ".join(re.findall(r"#\s*define\s+\w+\(([^)]*)\)", code))))
    return set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", code)) - own


_OPENCL = re.compile(r"CLK_|M_|FLT_|DBL_|INT_MAX|INT_MIN|HUGE_VAL|NAN\b|INFINITY")


def said(text: str) -> set[str]:
    """Names on the '// needs:' and '// optional:' lines of a header."""
    optional = " ".join(re.findall(r"^//\s*optional:(.*)$", header(text), re.MULTILINE))
    return {*(needed_names(header(text)) or []), *optional.split()}


def shared() -> set[str]:
    """Names that headers (.clh) define or say they need: files after them may use these."""
    texts = [path.read_text(encoding="utf-8") for path in KERNELS]
    defined = {name for text in texts for name in re.findall(r"#\s*define\s+(\w+)", text)}
    return defined.union(*(said(text) for path, text in zip(KERNELS, texts, strict=True) if path.suffix == ".clh"))


def test_kernels_say_what_they_need():
    known = shared()
    for path in KERNELS:
        text = path.read_text(encoding="utf-8")
        assert len(header(text).splitlines()) >= 2, f"{path}: the header says what the file computes"
        assert needed_names(header(text)) is not None, f"{path}: the header has a line '// needs: NAME ...' or 'none'"
        unsaid = {name for name in used_capitals(text) - said(text) - known if not _OPENCL.match(name)}
        assert not unsaid, f"{path}: used but on no '// needs:' or '// optional:' line: {sorted(unsaid)}"


def test_atomic_functions_are_declared():
    """PoCL prints errors and compiles again, with its long header, where builtins.clh lacks one."""
    declared = next(path for path in KERNELS if path.name == "builtins.clh").read_text(encoding="utf-8")
    for path in KERNELS:
        for name in set(re.findall(r"\batom(?:ic)?_\w+", path.read_text(encoding="utf-8"))):
            assert f" {name}(" in declared, f"{path}: builtins.clh does not declare {name}"


def test_names_of_kernel_files_are_their_own():
    names = [path.name for path in KERNELS]
    assert len(set(names)) == len(names)


def test_some_kernels_and_sources_were_found():
    assert len(KERNELS) >= 4 and len(SOURCES) >= 10


def test_type_checkers_see_the_public_names():
    import petsc_hdg

    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname: node.module for node in block.body for alias in node.names}
    assert seen == petsc_hdg._PUBLIC
