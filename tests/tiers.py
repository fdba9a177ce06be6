"""Tiers of the tests: `--quick` keeps what `make test` runs, `--part k/n` one of n parts of the files.

Quick are all tests but those marked `full`, of a mark with texts the rows that hold one in their name; of those that
start MPI the ones marked `quick`. Of each table it is the fewest rows that show every value of every parameter once. Of
a range of whole numbers, as of degrees or seeds, the lowest two count. A parameter that differs in all rows, as a
number to compare with, does not count beside one that does not.
"""

from __future__ import annotations

import json
import re
import resource
import time
from collections import Counter, defaultdict
from pathlib import Path

MOST_NUMBERS = 2  # of a range that the quick tier shows
SLOWEST = 10  # files and kernels that the summary names
MEASURED = Path(__file__).with_name("costs.json")  # processor seconds of files, all tests; --costs writes it


def add_options(parser) -> None:
    """Add the options of the tests to pytest's."""
    group = parser.getgroup("petsc_hdg")
    group.addoption("--quick", action="store_true", help="the quick tier: what `make test` runs")
    group.addoption(
        "--optimized", action="store_true", help="compile kernels with the compiler's optimization, as users do"
    )
    group.addoption("--part", metavar="k/n", type=_part, help="the k-th of n parts of the test files, k from 0 on")
    group.addoption("--costs", action="store_true", help=f"write the files' processor seconds into {MEASURED.name}")


def _part(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)/([1-9]\d*)", text)
    if not found:
        raise ValueError(f"--part {text}: give k/n, as 0/2 and 1/2")
    return int(found[1]) % int(found[2]), int(found[2])


def choose(config, items: list) -> None:
    """Leave out what belongs to other tiers and parts; the longest files begin, so that processes end together."""
    kept = list(items)
    if config.getoption("--quick"):
        kept = [item for rows in _tables(items).values() for item in _fewest(rows)]
    costs = _costs(items)
    if part := config.getoption("--part"):
        files = _parts(costs, part[1])
        kept = [item for item in kept if files[item.path] == part[0]]
    if len(kept) < len(items):
        chosen = set(kept)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]
    items.sort(key=lambda item: -costs[item.path])


def _costs(items) -> dict[Path, float]:
    """Processor seconds of each file: measured ones, else a second for each test."""
    measured, counts = json.loads(MEASURED.read_text()), Counter(item.path for item in items)
    here = {path: path.relative_to(MEASURED.parent).as_posix() for path in counts}
    return {path: measured.get(here[path], float(count)) for path, count in counts.items()}


def _parts(costs: dict[Path, float], number: int) -> dict[Path, int]:
    """The part of each file: the longest first, each to the part that has least."""
    sums, files = [0.0] * number, {}
    for path in sorted(costs, key=lambda path: (-costs[path], path)):
        files[path] = min(range(number), key=sums.__getitem__)
        sums[files[path]] += costs[path]
    return files


def _is_quick(item) -> bool:
    if "mpirun" in item.fixturenames:
        return item.get_closest_marker("quick") is not None
    row = item.nodeid.partition("[")[2]
    return all(mark.args and not any(part in row for part in mark.args) for mark in item.iter_markers("full"))


def _tables(items) -> dict[tuple, list]:
    """Rows of each test function."""
    tables = defaultdict(list)
    for item in items:
        tables[item.path, item.nodeid.partition("[")[0]].append(item)
    return tables


def _fewest(rows: list) -> list:
    """The rows, in their order, that show every value of every parameter once: greedily, those that show most first."""
    rows = [row for row in rows if _is_quick(row)]
    if len(rows) < 2 or not hasattr(rows[0], "callspec"):
        return rows
    shown = _values([row.callspec.params for row in rows])
    missing, chosen = set().union(*shown), set()
    while missing:
        best = max(range(len(rows)), key=lambda i: (len(shown[i] & missing), -i))
        chosen.add(best)
        missing -= shown[best]
    return [row for i, row in enumerate(rows) if i in chosen]


def _values(rows: list[dict]) -> list[set]:
    """For each row the (parameter, value) pairs that count."""
    columns = {name: [_key(row[name]) for row in rows] for name in rows[0]}
    repeated = {name for name, column in columns.items() if len(set(column)) < len(rows)} or set(columns)
    numbers = {
        name: sorted(set(columns[name]))[MOST_NUMBERS:]
        for name in repeated
        if all(type(value) is int for value in columns[name])
    }
    return [
        {
            (name, column[i])
            for name, column in columns.items()
            if name in repeated and column[i] not in numbers.get(name, ())
        }
        for i in range(len(rows))
    ]


def _key(value):
    """A value that can be hashed and compared."""
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


class Spent:
    """Costs of this process and the processes that it has waited for: processor seconds, starts of MPI, and for each
    kernel the seconds of compiling it here."""

    def __init__(self):
        self.starts, self.compiling, self._before = 0, Counter(), self._processor()

    @staticmethod
    def _processor() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in used)

    def timed(self, kernel, function, *arguments):
        """The function's result; its processor seconds count for the kernel of that name."""
        before = self._processor()
        try:
            return function(*arguments)
        finally:
            self.compiling[kernel(*arguments)] += self._processor() - before

    def since(self) -> dict:
        """Costs since the last call."""
        before, self._before = self._before, self._processor()
        found = {"seconds": self._before - before, "starts": self.starts, "compiling": dict(self.compiling)}
        self.starts, self.compiling = 0, Counter()
        return found


SPENT = Spent()


class Costs:
    """Costs of each file, and programs compiled, for the summary."""

    def __init__(self, config):
        self.config, self.start = config, time.time()
        self.seconds, self.starts, self.compiling = Counter(), Counter(), Counter()

    def pytest_runtest_logreport(self, report):
        """Count what a phase of a test cost for its file. That of a process that ended with it is not known."""
        if not hasattr(report, "costs"):
            return
        path = report.nodeid.partition("::")[0]
        self.seconds[path] += report.costs["seconds"]
        self.starts[path] += report.costs["starts"]
        self.compiling.update(report.costs["compiling"])

    def pytest_terminal_summary(self, terminalreporter):
        """List the files and kernels that cost most, and what was added to the cache of programs."""
        total = f"{sum(self.seconds.values()):.0f} s of processors, {sum(self.starts.values())} starts of MPI"
        terminalreporter.section(f"{total}: most in")
        for path, seconds in self.seconds.most_common(SLOWEST):
            terminalreporter.write_line(f"{seconds:7.1f} s {self.starts[path]:4d} starts  {path}")
        terminalreporter.section(f"{sum(self.compiling.values()):.0f} s of compiling in the tests' processes: most for")
        from petsc_hdg.device.cache import cache_folder  # starts MPI, which processes started later would inherit

        texts = [path for path in cache_folder().glob("*/program.cl") if path.stat().st_mtime > self.start]
        last = Counter(re.findall(r'#line 1 "(\w+)\.cl', path.read_text())[-1] for path in texts)
        for kernel, seconds in self.compiling.most_common(SLOWEST):
            terminalreporter.write_line(f"{seconds:7.1f} s  {kernel}")
        files = ", ".join(f"{number} {name}" for name, number in last.most_common(SLOWEST))
        terminalreporter.write_line(f"{len(texts)} programs compiled into {cache_folder()}: {files}, …")
        if self.config.getoption("--costs") and not self.config.getoption("--quick"):
            found = {path.partition("/")[2]: round(seconds, 1) for path, seconds in sorted(self.seconds.items())}
            MEASURED.write_text(json.dumps({**json.loads(MEASURED.read_text()), **found}, indent=1) + "\n")


def configure(config) -> None:
    """Count costs in the process that reports."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Costs(config))
