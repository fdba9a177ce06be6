"""Rows and tables of the papers' experiments: what the scripts of this folder share.

A script has `groups(device, given, copy)`, its measurements as groups of rows (bench/group.py), and `tables(results)`,
the paper's tables with ours beside them. Each row says by `table` which tables it belongs to. `run` measures;
benchmarks/papers_page.py writes docs/papers.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
BENCHMARKS = FOLDER.parent
RESULTS = BENCHMARKS / "results"
SCALES = ("small", "full", "gpu")
NONE = ""  # a cell of a table for which there is no figure
sys.path.insert(0, str(BENCHMARKS))


def printed(name: str) -> dict:
    """The tables of a paper as it prints them: a JSON file of this folder."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


# Measuring -----------------------------------------------------------------------------------------------------------


def run(paper: str, about: str, groups: Callable[..., Iterable], arguments: list[str] | None = None) -> int:
    """Measure the rows of a paper's script and write them to FOLDER/paper.json as they come; returns the exit code.

    Options that this does not know are PETSc's.
    """
    from bench import chosen
    from bench.group import measure, shown_by
    from bench.record import Record
    from petsc4py import PETSc

    from petsc_hdg.commands.bench import copy_bandwidth
    from petsc_hdg.device import Device

    given, others = _parser(about).parse_known_args(arguments)
    PETSc.Options().insertString(" ".join(others))
    device = Device.select(given.fe_device)
    copy = copy_bandwidth(device)
    print(f"{paper}: {device.view()}\n  copy of a buffer: {copy / 1e9:.1f} GB/s, read and written bytes counted")
    folder = Path(given.results)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{paper}.json"
    record = Record(str(file), given.resume, given.seconds, {"device": device.name, "scale": given.scale})
    listed = list(groups(device, given, copy))
    left = measure(chosen(listed, given.only) if given.only else listed, record, shown_by(line), device)
    return record.end(left)


def _parser(about: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-fe_device", default="any", help="gpu, cpu, any, an index, or part of a name")
    parser.add_argument("-scale", default="small", choices=SCALES, help="a CPU in minutes, in an hour; a GPU")
    parser.add_argument("-results", default=str(RESULTS / "papers"), help="folder that receives the JSON file")
    parser.add_argument("-only", default="", help="rows whose name contains this text")
    parser.add_argument("-repeat", type=int, default=5, help="measurements per row; the median is given")
    parser.add_argument("-seconds", type=float, default=None, help="begin no row after so many of them")
    parser.add_argument("-resume", action="store_true", help="keep the rows of the file and go on")
    return parser


def line(row: dict) -> str:
    """A row as text: its scalars."""
    left_out = ("table", "device", "copy_GBs", "scale", "precision", "components", "scheme", "dof_kind")
    shown = [f"{k} {number(v)}" for k, v in row.items() if k not in left_out and not isinstance(v, dict | list)]
    inner = [f"{k} {number(v)}" for d in row.values() if isinstance(d, dict) for k, v in d.items()]
    return "  ".join([row["table"], *shown, *inner])


# Tables --------------------------------------------------------------------------------------------------------------


class Results:
    """Measured rows of a paper: on a CPU by PoCL, on an H100 and on an H200.

    paper: name of its script.   earlier: table → file of benchmarks/results with rows of an H100, which come after
    those of results/papers_h100: `pick` takes the first.
    """

    def __init__(self, paper: str, earlier: dict[str, str] | None = None, folder: Path = RESULTS):
        self.paper, self.earlier, self.folder = paper, earlier or {}, folder

    @cached_property
    def pocl(self) -> list[dict]:
        """Those of `-scale full`, then those of `make papers`."""
        return [r for name in ("papers_full", "papers") for r in _measured(self.folder / name / f"{self.paper}.json")]

    @cached_property
    def h100(self) -> list[dict]:
        found = _measured(self.folder / "papers_h100" / f"{self.paper}.json")
        for table, name in self.earlier.items():
            found += [{**row, "table": table} for row in _rows_of(self.folder / f"{name}.json")]
        return found

    @cached_property
    def h200(self) -> list[dict]:
        return _measured(self.folder / "papers_h200" / f"{self.paper}.json")

    @property
    def by_device(self) -> dict[str, list[dict]]:
        """Heading of a column → rows."""
        return {"H100": self.h100, "H200": self.h200, "PoCL": self.pocl}


def _measured(path: Path) -> list[dict]:
    return [r for r in _rows_of(path) if "failed" not in r] if path.exists() else []


def _rows_of(path: Path) -> list[dict]:
    """Rows of a file: a list, or all lists of a dictionary."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return data if isinstance(data, list) else [row for rows in data.values() if isinstance(rows, list) for row in rows]


def pick(rows: list[dict], **keys) -> dict:
    """The first row with these values, {} if there is none."""
    return next((row for row in rows if all(row.get(k) == v for k, v in keys.items())), {})


@dataclass
class Table:
    """A table of the page.

    title: as the paper calls it.   scope: heading of a column → what its figures are of.   note: a sentence on scope.
    rows: [row][column], told apart by the first `keys` columns.
    """

    title: str
    scope: dict[str, str]
    rows: list[list]
    note: str
    keys: int = 1

    def markdown(self) -> str:
        """The table without rows and columns that have no figure."""
        kept = [k for k in range(len(self.scope)) if k < self.keys or any(row[k] != NONE for row in self.rows)]
        heads, texts = list(self.scope), list(self.scope.values())
        rows = [[row[k] for k in kept] for row in self.rows if any(v != NONE for v in row[self.keys :])]
        lines = [f"### {self.title}\n"]
        if rows:
            lines += [_cells(heads[k] for k in kept), "|" + " --- |" * len(kept)]
            if any(texts):
                lines.append(_cells(f"*{texts[k]}*" if texts[k] else "" for k in kept))
            lines += [_cells(number(v) for v in row) for row in rows] + [""]
        return "\n".join([*lines, self.note, ""])


def _cells(values: Iterable[str]) -> str:
    return "| " + " | ".join(str(v).replace("|", "/") for v in values) + " |"


def number(value) -> str:
    """A figure with four digits; texts as they are."""
    if not isinstance(value, float):
        return str(value)
    if 1e3 <= abs(value) < 1e7:
        return f"{value:.0f}"
    if value and not 1e-3 <= abs(value) < 1e3:
        return f"{value:.3e}"
    return f"{value:.4g}"


def ms(seconds) -> float | str:
    """Milliseconds of seconds, or no figure."""
    return NONE if seconds in (None, NONE) else 1e3 * seconds
