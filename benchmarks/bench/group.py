"""Rows that share an operator, and how all groups of a run are measured."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from petsc_hdg.device import Arrays

from .record import Record


@dataclass(frozen=True)
class Group:
    """Rows that share what is made for them.

    names: of its rows.   prepare(names): for some of them, name → function of nothing that measures the row; without
    those that turn out not to exist on this device.
    """

    names: tuple[str, ...]
    prepare: Callable[[list[str]], dict[str, Callable[[], dict]]]


def row_name(title: str, cell: str, degree: int, components: int = 1) -> str:
    """The name of a row of one kernel."""
    return f"{title} {cell} P{degree}" + (f" × {components}" if components > 1 else "")


def shown_by(formatted: Callable[[dict], str]) -> Callable[[dict], dict]:
    """A function that prints a row as formatted(row), and returns it."""

    def show(row: dict) -> dict:
        print("  " + formatted(row), flush=True)
        return row

    return show


def measure(groups: Iterable[Group], record: Record, show, device=None) -> int:
    """Measure what `record` lacks of all groups; returns how many rows are left.

    show(row): prints a row, and returns what is kept of it. A row that fails is left out, and so are all that would
    come after it if the device then answers no more.
    """
    groups = list(groups)
    due = record.due([name for group in groups for name in group.names])
    again = {name for name in due if name in record.failed_before}
    for now in ({*due} - again, again):
        for group in groups:
            wanted = [name for name in group.names if name in now]
            if not wanted:
                continue
            if record.is_over or not _run(group, wanted, record, show, device):
                return len({*due} - record.done)
    return 0


def _run(group: Group, wanted: list[str], record: Record, show, device) -> bool:
    """Measure rows of a group; whether others can follow."""
    measurements = _tried(wanted, record, lambda: group.prepare(wanted))
    if measurements is None:
        return _answers(device)
    record.skip(name for name in wanted if name not in measurements)
    for name in measurements:
        if record.is_over:
            return False
        record.begin(name)
        row = _tried([name], record, measurements[name])
        if row is not None:
            record.keep(name, show(row))
        elif not _answers(device):
            return False
    del measurements
    gc.collect()  # operators and their parts hold each other, and the device's memory
    return True


def _tried(names: list[str], record: Record, call):
    """The value of `call()`; None if it fails."""
    try:
        return call()
    except Exception as error:  # whatever one row fails for, others can be measured
        record.fail(names, error)
    return None


def _answers(device) -> bool:
    """Whether a device still works after an error."""
    if device is None:
        return True
    try:
        arrays = Arrays(device)
        return bool((arrays.to_host(arrays.zeros(16), 16) == 0).all())
    except Exception as error:  # of the driver, of any kind
        said = f"  {device.name} answers no more ({type(error).__name__}): the rest needs another run"
        print(said, file=sys.stderr, flush=True)
        return False
