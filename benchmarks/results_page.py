"""Write docs/results.md: the tables of all files of benchmarks/results that the documentation cites.

    python benchmarks/results_page.py

A file has rows, or several lists of rows. What all rows of a list have in common stands above its table. Rows of
`python benchmarks/bench` have a column per degree; of others, the columns are the scalars that differ, in the units of
the file. Numbers have four digits. tests/test_results_page.py compares the page with the files.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS, RESULTS = ROOT / "docs", ROOT / "benchmarks" / "results"
PAGE = DOCS / "results.md"
HEAD = """# Results

The rows behind the figures of the other pages, one section per file of
`benchmarks/results`. This page is written by `python benchmarks/results_page.py`.

Tables with a column per degree have GDOF/s, in brackets the fraction of the bandwidth of a copy, and after a semicolon
how many times as fast as a peer in the same run the kernel is. Other columns have the units of their names, or seconds.
"""
# What tells apart rows of `python benchmarks/bench` (benchmarks/bench/row.py), but their degree.
BENCH = ("device", "kernel", "cell", "components", "precision", "vec_mode", "mesh", "state", "factor")
LEFT_OUT = {"name", "arguments", "elapsed_seconds", "command", "note", "nodes", "dof_kind", "asked"}
LEFT_OUT |= {
    "setup_seconds",
    "bytes_to_device",
    "bytes_to_host",
    "device_memory_most",
    "window_bytes",
    "message_bytes",
    "asked",
}
LONGEST = 40  # characters of a text that is a column
MOST_ROWS = 100  # of a list that is not a bench's: longer ones, of single runs, are in the file


def citations() -> dict[str, list[str]]:
    """Name of a file → names of the pages that link to it."""
    found: dict[str, list[str]] = {}
    for page in sorted({*DOCS.glob("*.md"), ROOT / "README.md"} - {PAGE}):
        for name in re.findall(r"benchmarks/results/(\w+)\.json\)", page.read_text(encoding="utf-8")):
            if page.name not in found.setdefault(name, []):
                found[name].append(page.name)
    return dict(sorted(found.items()))


def page() -> str:
    """The text of docs/results.md."""
    return "\n".join([HEAD, *(section(name, pages) for name, pages in citations().items())])


def section(name: str, pages: list[str]) -> str:
    """Heading, the pages that cite the file, and its tables."""
    data = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    where = ", ".join(f"[{page}]({page})" for page in pages)
    return "\n".join([f"## {name}\n", f"Cited by {where}.\n", *tables("", data)])


def tables(title: str, data) -> list[str]:
    """Tables of all lists of rows in the data, and a line of what else it says."""
    if isinstance(data, list):
        rows = [flat(row) for row in data if isinstance(row, dict)]
        if not all({"degree", "dof_per_s", "fraction_of_copy"} <= row.keys() for row in rows):
            if len(rows) > MOST_ROWS:
                return [f"{title}{len(rows)} rows are in the file.\n"]
            kinds = dict.fromkeys(row.get("kernel") for row in rows)
            return [table(title, [row for row in rows if row.get("kernel") == kind]) for kind in kinds]
        return [table(title, by_degree(rows))]
    said = flat(data)
    found = [f"{title}{listed(said)}.\n"] if said else []
    for key, value in data.items():
        if isinstance(value, list):
            found += tables("" if key == "rows" else f"{key.replace('_', ' ')}: ", value)
    return found


def flat(row: dict) -> dict:
    """Scalars of a row; those of a dictionary in it as `key: inner key`. The peer of a kernel becomes times as fast."""
    found = {}
    for key, value in row.items():
        if key in LEFT_OUT:
            continue
        if key == "peer" and value and "seconds_median" in row:
            found[key] = ", ".join(f"{seconds / row['seconds_median']:.3g} × {who}" for who, seconds in value.items())
        elif isinstance(value, dict):
            found |= {f"{key}: {inner}": number for inner, number in value.items() if is_scalar(number)}
        elif is_scalar(value):
            found[key] = value
    return found


def is_scalar(value) -> bool:
    return isinstance(value, str | int | float) and not (isinstance(value, str) and len(value) > LONGEST)


def table(title: str, rows: list[dict]) -> str:
    """The rows as Markdown, what they share before it."""
    names = dict.fromkeys(name for row in rows for name in row)
    different = [name for name in names if name.startswith("p = ") or len({json.dumps(r.get(name)) for r in rows}) > 1]
    same = set(names) - set(different) if len(rows) > 1 else set()
    columns = [name for name in names if name not in same]
    lines = [" | ".join(["", *(name.replace("_", " ") for name in columns), ""]), "|" + " --- |" * len(columns)]
    lines += [" | ".join(["", *(shown(row.get(name, "")) for name in columns), ""]) for row in rows]
    head = f"{title}{listed({name: rows[0].get(name, '') for name in names if name in same})}"
    heading = [f"{head}.\n"] if same else [f"{title}\n"] if title else []
    return "\n".join([*heading, *(line.strip() for line in lines), ""])


def by_degree(rows: list[dict]) -> list[dict]:
    """One row for all degrees of a kernel; sizes, which differ with the degree, only where they tell rows apart."""
    cases = [tuple((name, row[name]) for name in BENCH if name in row) for row in rows]
    if len({(case, row["degree"]) for case, row in zip(cases, rows, strict=True)}) < len(rows):
        cases = [(*case, ("dofs", row["dofs"])) for case, row in zip(cases, rows, strict=True)]
    found: dict[tuple, dict] = {}
    for case, row in zip(cases, rows, strict=True):
        rate = f"{shown(row['dof_per_s'] / 1e9)} ({row['fraction_of_copy']:.2g})"
        rate += f"; {row['peer']}" if row.get("peer") else ""
        found.setdefault(case, {})[f"p = {row['degree']}"] = rate
    names = [name for name in (*BENCH, "dofs") if any(name in dict(case) for case in found)]
    names += [f"p = {degree}" for degree in sorted({row["degree"] for row in rows})]
    return [{name: (dict(case) | rates).get(name, "") for name in names} for case, rates in found.items()]


def listed(values: dict) -> str:
    return "; ".join(f"{name.replace('_', ' ')} {shown(value)}" for name, value in values.items())


def shown(value) -> str:
    """A value in a cell of a table."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).replace("|", "/")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
