"""Tiers of the tests: `--quick` keeps what `make test` runs, `--part k/n` one of n parts of the files.

Quick are all tests but those marked `full`; of those that start MPI the ones marked `quick`. Of each table it is the
fewest rows that show every value of every parameter once. Of a range of whole numbers, as of degrees or seeds, the
lowest two count. A parameter that differs in all rows, as a number to compare with, does not count beside one that does
not.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict

MOST_NUMBERS = 2  # of a range that the quick tier shows
START_OF_MPI = 20  # number of other tests that take as long as one that starts MPI
SLOWEST = 10  # files that the summary names


def add_options(parser) -> None:
    """Add the options of the tests to pytest's."""
    group = parser.getgroup("petsc_hdg")
    group.addoption("--quick", action="store_true", help="the quick tier: what `make test` runs")
    group.addoption(
        "--optimized", action="store_true", help="compile kernels with the compiler's optimization, as users do"
    )
    group.addoption("--part", metavar="k/n", type=_part, help="the k-th of n parts of the test files, k from 0 on")


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
    if part := config.getoption("--part"):
        files = {path: i % part[1] for i, path in enumerate(sorted({item.path for item in items}))}
        kept = [item for item in kept if files[item.path] == part[0]]
    if len(kept) < len(items):
        chosen = set(kept)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]
    costs = Counter()
    for item in items:
        costs[item.path] += START_OF_MPI if "mpirun" in item.fixturenames else 1
    items.sort(key=lambda item: -costs[item.path])


def _is_quick(item) -> bool:
    if "mpirun" in item.fixturenames:
        return item.get_closest_marker("quick") is not None
    return item.get_closest_marker("full") is None


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


class Costs:
    """Seconds of each file and programs compiled, for the summary."""

    def __init__(self):
        self.seconds, self.start = Counter(), time.time()

    def pytest_runtest_logreport(self, report):
        """Count the seconds of a phase of a test for its file."""
        self.seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_terminal_summary(self, terminalreporter):
        """List the slowest files, and count what was added to the cache of programs."""
        terminalreporter.section(f"slowest {SLOWEST} files")
        for name, seconds in self.seconds.most_common(SLOWEST):
            terminalreporter.write_line(f"{seconds:7.1f} s  {name}")
        from petsc_hdg.device.cache import cache_folder  # starts MPI, which processes started later would inherit

        compiled = sum(path.stat().st_mtime > self.start for path in cache_folder().glob("*/program.cl"))
        terminalreporter.write_line(f"{compiled} programs compiled into {cache_folder()}")


def configure(config) -> None:
    """Time files in the process that reports."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Costs())
