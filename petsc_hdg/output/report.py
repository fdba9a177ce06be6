"""The report of a run: JSON for programs, a short table for people."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from html import escape

import numpy as np

from ..errors import OptionError, collectively
from ..value_checks import plural, shown
from .atomic import atomic_file

KEYS = ("backend", "degree", "ranks", "cells", "dofs", "device", "vec_mode", "iterations", "errors", "seconds")
ERRORS = ("L2", "H1")


class Report(dict):
    """The numbers of a run: a dict that shows itself as a table."""

    def __repr__(self) -> str:
        return format_report(self) if self.keys() >= set(KEYS) else super().__repr__()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def write_report(path, comm, data: dict) -> None:
    """Write `data` of rank 0 as JSON. Collective over `comm` (mpi4py).

    data must have KEYS: `errors` a mapping with "L2", "H1" and maybe others (a number, or None where there is no exact
    solution), `seconds` stage → seconds; further keys are written too. NaN and infinity become null, each with a line
    in "notes".
    Raises OptionError on all ranks for a missing key, a value JSON has no form for, or a path that cannot be written.
    """
    with collectively(comm):
        if comm.rank == 0:
            text = json.dumps(plain_report(data), indent=2, allow_nan=False) + "\n"
            with atomic_file(path) as file:
                file.write(text.encode())


def plain_report(data: dict) -> dict:
    """`data` as JSON's own types, checked. Raises OptionError."""
    if not isinstance(data, Mapping):
        raise OptionError(f"A report is given as {shown(data)}; give what problem.report returns.")
    missing = [key for key in KEYS if key not in data]
    missing += [f"errors.{key}" for key in ERRORS if "errors" in data and key not in (data["errors"] or {})]
    if missing:
        raise OptionError(f"The report lacks {', '.join(missing)}; it takes {', '.join(KEYS)} (errors: L2 and H1).")
    notes: list[str] = []
    result = _plain(dict(data), "", notes)
    if notes:
        result["notes"] = [*result.get("notes", []), *notes]
    return result


def _plain(value, name: str, notes: list[str]):
    """One value as a type of JSON; adds to `notes` what was not finite."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(of, f"{name}.{key}".lstrip("."), notes) for key, of in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(of, f"{name}[{i}]", notes) for i, of in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        notes.append(f"{name} was {value}")
        return None
    if value is None or isinstance(value, str | bool | int | float):
        return value
    kind = type(value).__name__
    raise OptionError(f"The report's '{name}' is a {kind}; numbers, text, None, lists and mappings are accepted.")


def format_report(data: dict) -> str:
    """The report as a table for the terminal, without a newline at its end. Raises OptionError as `write_report`."""
    report = plain_report(data)
    shown = {
        "scheme": f"{report['backend']}, degree {report['degree']}",
        "mesh": f"{plural(report['cells'], 'cell', text=_count)}, {plural(report['ranks'], 'rank')}",
        "unknowns": _count(report["dofs"]),
        "device": f"{report['device']}, Vec mode {report['vec_mode']}",
        "iterations": _iterations(report["iterations"]),
    }
    if any(value is not None for value in data["errors"].values()):  # else no exact solution is known
        shown["error"] = ", ".join(f"{norm} {_number(value)}" for norm, value in report["errors"].items())
    width = max(map(len, shown))
    lines = [f"  {name:<{width}}  {text}" for name, text in shown.items()]
    lines += _seconds(report["seconds"], width)
    return "\n".join(lines + [f"  {'note':<{width}}  {note}" for note in report.get("notes", [])])


def _count(value) -> str:
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value)


def _number(value) -> str:
    return "not known" if value is None else f"{value:.3e}"


def _iterations(value) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{_count(n)} {name}" for name, n in value.items())
    return _count(value)


def _seconds(seconds: dict | None, width: int) -> list[str]:
    """A line a stage: seconds and a bar of its share of the longest."""
    times = {stage: t for stage, t in (seconds or {}).items() if isinstance(t, int | float)}
    if not times:
        return []
    longest, names = max(times.values()) or 1.0, max(map(len, times))
    lines = []
    for stage, t in times.items():
        head = "seconds" if not lines else ""
        lines.append(f"  {head:<{width}}  {stage:<{names}} {t:8.2f} {'▪' * round(20 * t / longest)}".rstrip())
    return lines
