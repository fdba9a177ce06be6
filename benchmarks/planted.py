"""Mutation score of the tests: one small mistake at a time is planted in the package or a kernel.

    python benchmarks/planted.py record -to map.json            # which tests run which lines and kernels
    python benchmarks/planted.py score -map map.json -count 100 -seed 1 -to planted.json

A mistake is an operator, an index or a sign changed, a condition negated, or a call left out. It is planted in a copy
of the repository. The tests that execute its line then run, those of its own folder first, then those that start MPI,
until one fails or the recorded time of the next would pass a limit. `record` runs the quick tier and needs the package
`coverage`; tests that fail then are left out. Views, help texts and messages receive no mistakes.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = (
    "commands/",
    "output/style.py",
    "__main__.py",
)  # pictures' style, the command line
MOST_SECONDS = 240.0  # of tests for one mistake, as recorded
PATIENCE = 3.0  # times the recorded seconds after which tests hang
STARTS = 60.0  # seconds for Python's start and programs compiled again


# Recording -------------------------------------------------------------------------------------------------------


class Recorder:
    """pytest plugin: lines of the package and kernel files that each test uses."""

    def __init__(self, folder: str):
        import coverage

        self.folder = Path(folder)
        self.coverage = coverage.Coverage(source_pkgs=["petsc_hdg"], data_file=None)
        self.kernels: dict[str, set] = {}
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.ranks: list[str] = []
        self.test = ""
        self.coverage.start()
        self.coverage.switch_context("import")
        self._watch()

    def _watch(self) -> None:
        from petsc_hdg.device.kernel import Kernel

        made = Kernel.__init__

        def watched(kernel, spec, device):
            for name in re.findall(r'^#line 1 "(\w+\.clh?)"', spec.program_source(), re.MULTILINE):
                self.kernels.setdefault(name, set()).add(self.test)
            made(kernel, spec, device)

        Kernel.__init__ = watched

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        """Tests that start MPI execute lines in processes that are not recorded."""
        self.ranks = [item.nodeid for item in items if "mpirun" in item.fixturenames]

    def pytest_runtest_logstart(self, nodeid):
        """Lines from here on belong to this test."""
        self.test = nodeid
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report):
        """Add up the seconds of a test."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self):
        """Write what was recorded; each process of the tests has its own file."""
        self.coverage.stop()
        data, lines = self.coverage.get_data(), {}
        for name in data.measured_files():
            found = {line: sorted(tests) for line, tests in data.contexts_by_lineno(name).items()}
            lines[os.path.relpath(name, ROOT)] = found
        record = {"lines": lines, "kernels": {k: sorted(v) for k, v in self.kernels.items()}, "seconds": self.seconds}
        record.update(failed=sorted(self.failed), ranks=self.ranks)
        (self.folder / f"{os.getpid()}.json").write_text(json.dumps(record))


def pytest_configure(config):
    """Record where a folder is named, in the processes that run tests."""
    folder = os.environ.get("PLANTED_RECORD")
    if folder and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        config.pluginmanager.register(Recorder(folder))


def record(to: str, options: list[str]) -> None:
    """Run the tests with the recorder and join what its processes wrote."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(_pytest(*(options or ["--quick"])), cwd=ROOT, env=_environment(ROOT, PLANTED_RECORD=folder))
        joined = {"lines": {}, "kernels": {}, "seconds": {}, "failed": [], "ranks": []}
        for path in Path(folder).glob("*.json"):
            one = json.loads(path.read_text())
            joined["seconds"].update(one["seconds"])
            joined["failed"] += one["failed"]
            joined["ranks"] = one["ranks"]
            for name, tests in one["kernels"].items():
                joined["kernels"][name] = sorted({*joined["kernels"].get(name, ()), *tests})
            for name, lines in one["lines"].items():
                mine = joined["lines"].setdefault(name, {})
                for line, tests in lines.items():
                    mine[line] = sorted({*mine.get(line, ()), *tests} - {"", "import"})
    Path(to).write_text(json.dumps(joined))


def _pytest(*options: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-p", "planted", "-q", *options]


def _environment(root: Path, **more: str) -> dict:
    path = os.pathsep.join((str(root), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")))
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **more}


# Mistakes --------------------------------------------------------------------------------------------------------

OPERATORS = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "+", ast.MatMult: "*",
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in",
    ast.NotIn: "in", ast.And: "or", ast.Or: "and", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
SAYS = re.compile(r"Error\(|warn|raise |shown\(|\bview\b|describe|summary|__repr__|f\"|print\(|advice")


def python_mistakes(path: Path) -> list[tuple[int, str, str, str]]:
    """(line, kind, old text of the file's line, new text) of every mistake that can be planted in a Python file."""
    text = path.read_text(encoding="utf-8")
    lines, found = text.splitlines(), []

    def plant(node, kind: str, start: int, end: int, new: str) -> None:
        line = lines[node.lineno - 1]
        if node.lineno == node.end_lineno and not SAYS.search(line):
            found.append((node.lineno, kind, line, line[:start] + new + line[end:]))

    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef) or SAYS.search(function.name):
            continue
        for node in ast.walk(function):
            _plant(node, plant, lines)
    return sorted(set(found))


def _plant(node, plant, lines: list[str]) -> None:
    if isinstance(node, ast.BinOp) and node.left.end_lineno == node.right.lineno:
        between = lines[node.right.lineno - 1][node.left.end_col_offset : node.right.col_offset]
        if re.fullmatch(r"\s*(\+|-|\*|/|//|%|@)\s*", between):
            plant(node, "operator", node.left.end_col_offset, node.right.col_offset, f" {OPERATORS[type(node.op)]} ")
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and node.left.end_lineno == node.comparators[0].lineno:
        new = f" {OPERATORS[type(node.ops[0])]} "
        plant(node, "comparison", node.left.end_col_offset, node.comparators[0].col_offset, new)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        plant(node, "sign", node.col_offset, node.operand.col_offset, "")
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
        plant(node.slice, "index", node.slice.col_offset, node.slice.end_col_offset, str(node.slice.value + 1))
    elif isinstance(node, ast.If) and node.test.lineno == node.test.end_lineno:
        test = lines[node.test.lineno - 1][node.test.col_offset : node.test.end_col_offset]
        plant(node.test, "condition", node.test.col_offset, node.test.end_col_offset, f"not ({test})")
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        plant(node, "call left out", node.col_offset, node.end_col_offset, "pass")


SIGNS = {
    "+": "-",
    "-": "+",
    "*": "+",
    "/": "*",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "+=": "-=",
    "-=": "+=",
    "==": "!=",
}


def kernel_mistakes(path: Path) -> list[tuple[int, str, str, str]]:
    """The same of a kernel file, by its text: operators between blanks or names, indices, statements left out."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        code = line.split("//")[0]
        if not code.strip() or code.lstrip().startswith(("#", "*", "/*")) or "barrier" in code:
            continue
        for match in re.finditer(
            r"(?<=[\w)\]] )(\+=|-=|<=|>=|==|[-+*/<>])(?= [\w(\-])|(?<=[\w)\]])(\*)(?=[\w(])", code
        ):
            old = match[0]
            found.append((number, "operator", line, line[: match.start()] + SIGNS[old] + line[match.end() :]))
        for match in re.finditer(r"\[(\w+)\]", code):
            if "=" in code:
                new = f"[{match[1]} + 1]" if not match[1].isdigit() else f"[{int(match[1]) + 1}]"
                found.append((number, "index", line, line[: match.start()] + new + line[match.end() :]))
        if re.fullmatch(r"\s+\w[\w\[\] +*\-/.()>]*\s(\+=|-=|=)\s.*;\s*", code) and not re.match(
            r"\s+(const|real|int|PRIVATE|__\w+)\s", code
        ):
            found.append((number, "statement left out", line, re.match(r"\s*", line)[0] + ";"))
    return found


def all_mistakes() -> dict[str, list]:
    """File → its mistakes."""
    python = [p for p in sorted((ROOT / "petsc_hdg").rglob("*.py")) if not any(x in p.as_posix() for x in LEFT_OUT)]
    kernels = [p for p in sorted((ROOT / "kernels_cl").rglob("*.cl*")) if not p.name.startswith(("bench", "selftest"))]
    found = {p: python_mistakes(p) for p in python} | {p: kernel_mistakes(p) for p in kernels}
    return {str(path.relative_to(ROOT)): mistakes for path, mistakes in found.items() if mistakes}


def chosen(count: int, seed: int) -> list[tuple]:
    """`count` mistakes, two of five in kernels: files by the number of their lines."""
    rng, by_file = random.Random(seed), all_mistakes()
    parts = ([f for f in by_file if f.startswith("kernels_cl")], [f for f in by_file if not f.startswith("kernels_cl")])
    picked = []
    while len(picked) < count:
        files = parts[0] if rng.random() < 0.4 else parts[1]
        name = rng.choices(files, [len(by_file[f]) for f in files])[0]
        picked.append((name, *rng.choice(by_file[name])))
    return picked


# Score -----------------------------------------------------------------------------------------------------------


def tests_of(name: str, line: int, known: dict) -> tuple[list[str], float]:
    """Tests that may use a line of the package or a kernel file, likely and short ones first, and their seconds."""
    if name.startswith("kernels_cl"):
        in_physics = [test for test in known["seconds"] if test.startswith("tests/physics/")]
        tests = known["kernels"].get(Path(name).name, []) + (in_physics if name.endswith("petsc.clh") else [])
    else:
        tests = known["lines"].get(name, {}).get(str(line), [])
    room, seconds, chosen, spent = Path(name).parts[1].removesuffix(".py"), known["seconds"], [], 0.0
    for group, most in ((set(tests) - set(known["ranks"]), MOST_SECONDS / 2), (known["ranks"], MOST_SECONDS)):
        for test in sorted(group, key=lambda test: (f"/{room}/" not in test, seconds.get(test, 0.0))):
            if test in seconds and test not in known["failed"] and spent + seconds[test] < most:
                chosen.append(test)
                spent += seconds[test]
    return chosen, spent


def found_by(copy: Path, name: str, line: int, new: str, known: dict) -> tuple[str, str]:
    """(verdict, test that failed) for one mistake planted in a copy of the repository."""
    tests, seconds = tests_of(name, line, known)
    if not tests:
        return "no test", ""
    path = copy / name
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    lines[line - 1] = new
    path.write_text("\n".join(lines), encoding="utf-8")
    listed = copy / "listed.txt"
    listed.write_text("\n".join(tests))
    # Checks that passed are remembered with their programs: they are tried with an empty cache.
    environment = _environment(copy)
    if "judge(" in text:
        environment["PETSC_HDG_CACHE"] = str(copy / "output" / "kernels")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"@{listed}"],
            cwd=copy, env=environment, timeout=STARTS + PATIENCE * seconds, capture_output=True, text=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "hangs", tests[0]
    finally:
        path.write_text(text, encoding="utf-8")
    failed = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", done.stdout, re.MULTILINE)
    if done.returncode == 0:
        return "survived", ""
    test = failed[1] if failed else f"exit {done.returncode}"
    if "::" not in test:  # a mistake that ends an import, or tests that cannot be collected together
        command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", f"@{listed}"]
        subprocess.run(command, cwd=copy, env=_environment(copy), check=True, capture_output=True)
    return "found", test


def _left_behind(folder: str, names: list[str]) -> set[str]:
    """What a copy of the repository does without: hidden and compiled files, outputs, results."""
    there = {"": {"output"}, "benchmarks": {"results"}}.get(os.path.relpath(folder, ROOT).replace(".", ""), set())
    return {name for name in names if name.startswith(".") or name == "__pycache__" or name in there}


def score(options) -> None:
    """Plant the mistakes one by one and write what became of each."""
    known, rows = json.loads(Path(options.map).read_text()), []
    picked = chosen(options.count, options.seed)[options.first :: options.step]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=_left_behind)
        (copy / "output").mkdir()
        for name, line, kind, old, new in picked:
            start = time.monotonic()
            verdict, test = found_by(copy, name, line, new, known)
            seconds = round(time.monotonic() - start, 1)
            rows.append(dict(file=name, line=line, kind=kind, old=old.strip(), new=new.strip(), verdict=verdict))
            rows[-1].update(test=test, seconds=seconds)
            print(
                f"{verdict:9} {seconds:6.1f} s  {name}:{line} {kind}: {old.strip()}  ->  {new.strip()}  {test}",
                flush=True,
            )
            Path(options.to).write_text(json.dumps(rows, indent=1))
    found = sum(row["verdict"] in ("found", "hangs") for row in rows)
    print(f"{found} of {len(rows)} found")


def main() -> None:
    """Record, or score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("record")
    one.add_argument("-to", required=True)
    one.add_argument("options", nargs="*", help="options of pytest, after --; the quick tier without any")
    two = commands.add_parser("score")
    two.add_argument("-map", required=True)
    two.add_argument("-to", required=True)
    for name, default in (("-count", 100), ("-seed", 1), ("-first", 0), ("-step", 1)):
        two.add_argument(name, type=int, default=default)
    options = parser.parse_args()
    record(options.to, options.options) if options.command == "record" else score(options)


if __name__ == "__main__":
    main()
