"""PVD files: the VTU files of a series with their times, as ParaView opens them together."""

from __future__ import annotations

import math
import re
from html import escape
from pathlib import Path

from ..errors import OptionError, collectively
from ..value_checks import path as given_path
from .atomic import atomic_file, check_target

_HEAD = '<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">\n<Collection>\n'
_TAIL = "</Collection>\n</VTKFile>\n"
CLOSE = 1e-12  # relative distance of times that are the same


class Collection:
    """A series of files NAME_00000.vtu, NAME_00001.vtu, … beside NAME.pvd, which names each with its time.

    entries: (time, name of the file) in the order of time, the same on all ranks.
    goes_on: whether a file that is there is gone on with, else it is replaced with the first state.

    Making one is collective. Raises OptionError on all ranks for a path that cannot be written, and for a file to go on
    with that is no collection.
    """

    def __init__(self, path, comm, goes_on: bool = False):
        self.path, self.comm, found = given_path("The PVD file", path), comm, []
        with collectively(comm):
            if comm.rank == 0:
                check_target(self.path, ".pvd")
                found = _read(self.path) if goes_on and self.path.exists() else []
        self.entries: list[tuple[float, str]] = comm.bcast(found)

    def add(self, time: float, write) -> None:
        """Take the state at a time in place of those from this time on; `write(path)` writes its file. Collective.

        The collection names whole files at any moment: it loses entries before their files are written anew, and gets
        one after its file is written. Raises OptionError on all ranks.
        """
        kept = [entry for entry in self.entries if entry[0] < time and not math.isclose(entry[0], time, rel_tol=CLOSE)]
        if len(kept) < len(self.entries):
            self._save(kept)
        name = f"{self.path.stem}_{self._number(kept):05d}.vtu"
        write(self.path.with_name(name))
        self._save([*kept, (time, name)])

    def _number(self, entries) -> int:
        """A number that the names of no entries have."""
        found = [re.fullmatch(rf"{re.escape(self.path.stem)}_(\d+)\.vtu", name) for _, name in entries]
        return max((int(match[1]) + 1 for match in found if match), default=0)

    def _save(self, entries) -> None:
        with collectively(self.comm):
            if self.comm.rank == 0:
                with atomic_file(self.path) as file:
                    file.write(_text(entries).encode())
        self.entries = entries


def _text(entries) -> str:
    lines = [f'<DataSet timestep="{time!r}" part="0" file="{escape(name)}"/>\n' for time, name in entries]
    return "".join([_HEAD, *lines, _TAIL])


def _read(path: Path) -> list[tuple[float, str]]:
    """The entries of a collection. Raises OptionError."""
    import xml.etree.ElementTree as ET

    try:
        root = ET.parse(path).getroot()
        if root.get("type") != "Collection":
            raise ValueError("it is not of that type")
        return sorted((float(entry.attrib["timestep"]), entry.attrib["file"]) for entry in root.iter("DataSet"))
    except (OSError, ET.ParseError, KeyError, ValueError) as error:
        raise OptionError(
            f"Cannot continue {path}: it is no collection of VTU files ({error}); remove it, or give another name."
        ) from None
