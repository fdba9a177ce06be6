"""The rows of a run, on disk after each one: what a run leaves when it is cut short, and where the next goes on."""

from __future__ import annotations

import gc
import json
import sys
import time
import traceback
from pathlib import Path

from petsc_hdg.errors import OptionError, causes, our_error
from petsc_hdg.output.atomic import atomic_file

ENDED = "the run ended before it was measured"


def add_options(parser) -> None:
    """-json, -resume and -seconds."""
    parser.add_argument("-json", default="", help="file that receives the rows, each as it comes")
    parser.add_argument(
        "-resume", action="store_true", help="keep the rows of the -json file and go on; those that failed come last"
    )
    parser.add_argument("-seconds", type=float, default=None, help="begin no row after so many of them")


class Record:
    """Rows by their names, in the order in which they were begun; a row that failed has its name and `failed` alone.

    path: JSON file, replaced as a whole after each row; "": none.   resume: keep the file's rows.
    seconds: after which `is_over`; None: never.
    about: what all rows are measured with (device, precision, arguments); each says it, and kept rows must have it in
    common with this run.
    """

    def __init__(self, path: str = "", resume: bool = False, seconds: float | None = None, about: dict | None = None):
        if resume and not path:
            raise OptionError("-resume goes on with a file of rows: give it by -json FILE")
        self.path, self.seconds, self.start, self.about = path, seconds, time.perf_counter(), about or {}
        self.rows = kept_rows(path, self.about) if resume and Path(path).exists() else {}
        self._texts = {name: _text(row) for name, row in self.rows.items()}  # of many rows, each is encoded once
        self.failed_before = {name for name, row in self.rows.items() if "failed" in row}
        self.done: set[str] = set()  # names that this run has dealt with
        self.failed: list[str] = []
        if self.rows:
            print(f"  -resume: kept of {path}: {_rows(len(self.measured))}{self._untold()}", flush=True)

    @classmethod
    def of(cls, given, **about) -> Record:
        """That of a command's arguments."""
        return cls(given.json, given.resume, given.seconds, about)

    @property
    def measured(self) -> list[dict]:
        """Rows that have been measured, in this run or before."""
        return [row for row in self.rows.values() if "failed" not in row]

    @property
    def is_over(self) -> bool:
        """Whether the seconds are over in which rows may begin."""
        return self.seconds is not None and time.perf_counter() - self.start >= self.seconds

    def due(self, names) -> list[str]:
        """Those to be measured: first what no run has begun, then what an earlier run failed in."""
        return [n for n in names if n not in self.rows] + [n for n in names if n in self.failed_before]

    def begin(self, name: str) -> None:
        """Say in the file that a row is being measured, so that a run that this ends leaves its name."""
        self.rows.pop(name, None)
        self._texts.pop(name, None)
        self._put(name, {"failed": ENDED})

    def keep(self, name: str, row: dict) -> dict:
        """Take a row; returns it with its name, and when it was there, in seconds since the run began."""
        self._put(name, {**self.about, **row, "elapsed_seconds": round(time.perf_counter() - self.start, 2)})
        self.done.add(name)
        return self.rows[name]

    def _untold(self) -> str:
        """What kept rows, which earlier versions wrote, do not say."""
        untold = [key for key in self.about if any(key not in row for row in self.measured)]
        return f"; some do not say their {' and '.join(untold)}" if untold else ""

    def skip(self, names) -> None:
        """Take note that rows do not exist here."""
        self.done.update(names)

    def fail(self, names: list[str], error: Exception) -> None:
        """Take and print what rows of these names failed for."""
        said = sentence(error)
        release(error)
        for name in names:
            self.failed.append(name)
            self.done.add(name)
            self._put(name, {"failed": said})
        print(f"  {'; '.join(names)}: failed: {said}", file=sys.stderr, flush=True)

    def end(self, left: int = 0) -> int:
        """Print what is missing; returns the exit code: 1 if a row failed, or if there was nothing to measure."""
        if self.done and not self.done & self.rows.keys():
            print("  none of these rows exists on this device", file=sys.stderr, flush=True)
            return 1
        if left:
            why = f", as -seconds {self.seconds:g} are over" if self.is_over else ""
            how = f"-json {self.path} -resume goes on" if self.path else "with -json FILE, -resume would go on"
            print(f"  left: {_rows(left)}{why}; {how}", flush=True)
        if self.failed:
            print(f"  failed: {_rows(len(self.failed))}: {'; '.join(self.failed)}", file=sys.stderr, flush=True)
        return 1 if self.failed else 0

    def _put(self, name: str, row: dict) -> None:
        self.rows[name] = {"name": name, **row}
        self._texts[name] = _text(self.rows[name])
        self.failed_before.discard(name)
        if self.path:
            with atomic_file(self.path) as file:
                file.write(("[\n" + ",\n".join(self._texts.values()) + "\n]\n").encode())


def _text(row: dict) -> str:
    """A row as an item of an indented JSON list."""
    return " " + json.dumps(row, indent=1).replace("\n", "\n ")


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def read_rows(name: str, key: str, what: str) -> list[dict]:
    """Measured rows of a file, which have `key`. Raises OptionError, which says `what` the file should be."""
    return [row for row in _all_rows(name, key, what) if "failed" not in row]


def _all_rows(name: str, key: str, what: str) -> list[dict]:
    """Rows of a file, those that failed too; as `read_rows`."""
    try:
        rows = json.loads(Path(name).read_text())
    except (OSError, ValueError) as error:
        raise OptionError(f"'{name}' cannot be read as JSON ({error}); give {what}") from None
    if not isinstance(rows, list) or not all(isinstance(r, dict) and (key in r or "failed" in r) for r in rows):
        raise OptionError(f"'{name}' holds no rows; give {what}")
    return rows


def kept_rows(path: str, about: dict) -> dict[str, dict]:
    """Rows of an earlier run by name. Raises OptionError where they are not of a run like this one."""
    rows = _all_rows(path, "name", "a file that -json of this version wrote, or leave -resume out")
    for key, value in about.items():
        others = sorted({str(row[key]) for row in rows if row.get(key, value) != value})
        if others:
            raise OptionError(f"-resume: rows of {path} have {key} {', '.join(others)}, not {value}; give another file")
    return {row["name"]: row for row in rows}


def sentence(error: Exception) -> str:
    """What an error says, in a line; where it was raised, if it is none of ours."""
    ours = our_error(error)
    if ours is not None:
        return " ".join(str(ours).split())
    where = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" ({Path(frame.filename).name}:{frame.lineno})" for frame in where)
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}{place}"


def release(error: BaseException | None) -> None:
    """Let go of what the frames of an error hold, buffers of the device among them."""
    for found in causes(error):
        traceback.clear_frames(found.__traceback__)
    gc.collect()
