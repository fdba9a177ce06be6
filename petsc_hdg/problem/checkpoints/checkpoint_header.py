"""Header of checkpoints, checked against what a restart reads: a file may have been made by hand."""

from __future__ import annotations

import json
import re
import sys

from ...output.checkpoint_file import unclear

NAME = re.compile(r"\w[\w-]*")


def _number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _count(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _is(kind: type):
    return lambda value: isinstance(value, kind)


def _numbers(value) -> bool:
    return isinstance(value, dict) and all(map(_number, value.values()))


def _list_of(check, count: int | None = None):
    return lambda value: isinstance(value, list) and all(map(check, value)) and count in (None, len(value))


def _name(value) -> bool:
    return isinstance(value, str) and NAME.fullmatch(value) is not None


ABOUT = {
    "problem": _is(dict),
    "constants": _numbers,
    "kind": _is(str),
    "t": _number,
    "step": _count,
    "numbers": _numbers,
    "details": _is(dict),
    "arrays": lambda value: _list_of(_name)(value) and "u" in value and len(set(value)) == len(value),
}
DETAILS = {  # by kind, see checkpoint_schedule.py and newton_checkpoints.py
    "time": {"method": _is(str), "dt": _number, "history": _list_of(_list_of(_number, 2)), "started": _is(bool)},
    "slabs": {"times": _list_of(_number, 3)},
    "newton": {"newton": _count, "norm": _number},
    "loads": {},
    "state": {},
}


def check(path, about: dict) -> None:
    """Raise CheckpointError unless a restart finds all that it reads, of the right types."""
    complete = _has(about, ABOUT) and about["kind"] in DETAILS and _has(about["details"], DETAILS[about["kind"]])
    history = about["details"].get("history", []) if complete else []
    if not complete or not {f"u{k - len(history)}" for k in range(len(history))} <= set(about["arrays"]):
        raise unclear(path)


def _has(given: dict, checks: dict) -> bool:
    return all(key in given and check(given[key]) for key, check in checks.items())


def alike(theirs, mine) -> bool:
    """Return True if what a checkpoint says of its problem is of the kind of what this problem says."""
    mine = json.loads(json.dumps(mine))
    if isinstance(mine, list):
        return _list_of(_number, len(mine))(theirs)
    return type(theirs) is type(mine)
