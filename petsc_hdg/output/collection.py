"""Series of files with times, which a PVD or an XDMF file lists: ParaView opens them together."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from html import escape

from ..errors import OptionError, collectively
from ..value_checks import path as given_path
from .atomic import atomic_file, check_target

CLOSE = 1e-12  # relative distance of times that are the same


@dataclass(frozen=True)
class Entry:
    """A state of a series: its time, the name of its file, and the element that lists it."""

    time: float
    file: str
    text: str


class PVD:
    """A list of VTU files."""

    files, what = ".vtu", "VTU files"
    head = '<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">\n<Collection>\n'
    tail = "</Collection>\n</VTKFile>\n"

    @staticmethod
    def entry(time: float, file: str, _) -> Entry:
        """The entry of a file."""
        return Entry(time, file, f'<DataSet timestep="{time!r}" part="0" file="{escape(file)}"/>\n')

    @staticmethod
    def entries(root: ET.Element) -> list[Entry]:
        """All entries. Raises KeyError or ValueError for what is no such list."""
        if root.get("type") != "Collection":
            raise ValueError("it is not of that type")
        return [PVD.entry(float(one.attrib["timestep"]), one.attrib["file"], None) for one in root.iter("DataSet")]


class XDMF:
    """A list of grids, whose arrays are in HDF5 files."""

    files, what = ".h5", "HDF5 files"
    head = '<?xml version="1.0"?>\n<Xdmf Version="3.0">\n<Domain>\n'
    head += '<Grid Name="series" GridType="Collection" CollectionType="Temporal">\n'
    tail = "</Grid>\n</Domain>\n</Xdmf>\n"

    @staticmethod
    def entry(time: float, file: str, grid: str) -> Entry:
        """The entry of a file with a grid, see xdmf.write_arrays."""
        text = f'<Grid Name="{escape(file)}" GridType="Uniform">\n<Time Value="{time!r}"/>\n{grid}</Grid>\n'
        return Entry(time, file, text)

    @staticmethod
    def entries(root: ET.Element) -> list[Entry]:
        """All entries. Raises KeyError or ValueError for what is no such list."""
        if root.tag != "Xdmf":
            raise ValueError("it is not of that type")
        found, times = root.findall("Domain/Grid/Grid"), root.findall("Domain/Grid/Grid/Time")
        values = [float(time.attrib["Value"]) for time in times]
        texts = [ET.tostring(grid, encoding="unicode") for grid in found]
        return [Entry(*of) for of in zip(values, (grid.attrib["Name"] for grid in found), texts, strict=True)]


FORMATS = {".pvd": PVD, ".xdmf": XDMF}  # by the suffix of the list


class Collection:
    """A series of files NAME_00000, NAME_00001, … beside NAME.pvd or NAME.xdmf, which lists each with its time.

    entries: in the order of time, the same on all ranks.
    goes_on: whether a file that is there is gone on with, else it is replaced with the first state.

    Making one is collective. Raises OptionError on all ranks for a path that cannot be written, and for a file to go on
    with that is no collection.
    """

    def __init__(self, path, comm, goes_on: bool = False):
        self.path, self.comm, found = given_path("The file of a series", path), comm, []
        self.format = FORMATS[self.path.suffix.lower()]
        with collectively(comm):
            if self.format is XDMF and ":" in self.path.name:
                raise OptionError(f"Cannot write {self.path}: XDMF has no names with a colon; give another name.")
            if comm.rank == 0:
                check_target(self.path)
                found = self._read() if goes_on and self.path.exists() else []
        self.entries: list[Entry] = comm.bcast(found)

    def add(self, time: float, write) -> None:
        """Take the state at a time in place of those from this time on; `write(path, before)` writes its file, and
        returns the grid of XDMF on rank 0. before: the element of the entry before it, or "". Collective.

        The collection names whole files at any moment: it loses entries before their files are written anew, and gets
        one after its file is written. Raises OptionError on all ranks.
        """
        kept = [of for of in self.entries if of.time < time and not math.isclose(of.time, time, rel_tol=CLOSE)]
        if len(kept) < len(self.entries):
            self._save(kept)
        name = f"{self.path.stem}_{self._number(kept):05d}{self.format.files}"
        grid = self.comm.bcast(write(self.path.with_name(name), kept[-1].text if kept else ""))
        self._save([*kept, self.format.entry(time, name, grid)])

    def _number(self, entries) -> int:
        """A number that the names of no entries have."""
        pattern = rf"{re.escape(self.path.stem)}_(\d+){re.escape(self.format.files)}"
        found = [re.fullmatch(pattern, entry.file) for entry in entries]
        return max((int(match[1]) + 1 for match in found if match), default=0)

    def _save(self, entries) -> None:
        with collectively(self.comm):
            if self.comm.rank == 0:
                with atomic_file(self.path) as file:
                    texts = [entry.text for entry in entries]
                    file.write("".join([self.format.head, *texts, self.format.tail]).encode())
        self.entries = entries

    def _read(self) -> list[Entry]:
        """The entries of the file that is there. Raises OptionError."""
        try:
            return sorted(self.format.entries(ET.parse(self.path).getroot()), key=lambda entry: entry.time)
        except (OSError, ET.ParseError, KeyError, ValueError) as error:
            raise OptionError(
                f"Cannot continue {self.path}: it is no collection of {self.format.what} ({error}); remove it, or give "
                "another name."
            ) from None
