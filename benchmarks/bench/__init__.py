"""`python benchmarks/bench [SCHEME]`: times of kernels beside what the same device, in the same run, allows.

Without a scheme: a short set of all of them. `-full`: every row of every scheme, as JSON and as a roofline picture.
Rows are on disk as they come (record.py); one that fails does not stop the others (group.py).
"""

from __future__ import annotations

import argparse
from itertools import count

from petsc_hdg.commands.bench import copy_bandwidth
from petsc_hdg.device import Device
from petsc_hdg.errors import OptionError

from . import cg, full, hdg, krylov, poly, roofline, scaling, short, sipg, solve, start, trace
from .group import Group, measure
from .peak import arithmetic_peak
from .record import Record, add_options
from .row import format_rows, limited

SCHEMES = {"cg": cg, "hdg": hdg, "poly": poly, "sipg": sipg, "trace": trace}
# Commands with arguments of their own.
OWN = {"krylov": krylov.main, "scaling": scaling.main, "solve": solve.main, "start": start.main}


def main(arguments: list[str]) -> int:
    """Measure and print rows; with `-json FILE` write them too."""
    if arguments and arguments[0] in OWN:
        return OWN[arguments[0]](arguments[1:])
    given = _parser().parse_args(arguments)
    if given.scheme == "roofline":
        return roofline.draw(given.files, given.png)
    device = Device.select(given.fe_device)
    copy, peak = copy_bandwidth(device), arithmetic_peak(device, given.fe_precision)
    print(
        f"{device.view()}\n  copy of a buffer: {copy / 1e9:.1f} GB/s, read and written bytes counted; fused "
        f"multiply-adds in registers: {peak / 1e9:.0f} GF/s ({given.fe_precision} precision)",
        flush=True,
    )
    arguments = f"-cells {'default' if given.cells is None else format(given.cells, 'g')}"
    record = Record.of(given, device=device.name, precision=given.fe_precision, arguments=arguments)
    groups = chosen(_groups(given)(device, given, copy), given.only)
    left = measure(groups, record, _shown(peak), device)
    code = record.end(left)
    if given.full and record.measured:
        roofline.draw([given.json], given.png)
    return code


def chosen(groups, only: str) -> list[Group]:
    """What `-only` picks. Raises OptionError where that is nothing."""
    named = [(group, tuple(name for name in group.names if only in name)) for group in groups]
    found = [Group(names, group.prepare) for group, names in named if names]
    if not found:
        raise OptionError(f"-only '{only}' is in the name of no row; leave it out to see the names")
    return found


def _shown(peak: float):
    """A function that prints a row beside its limit, the first one below a header, and returns both."""
    lines = count()

    def show(row: dict) -> dict:
        made = limited(row, peak)
        print(format_rows([made], header=next(lines) == 0), flush=True)
        return made

    return show


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", prefix_chars="-")
    parser.add_argument(
        "scheme",
        nargs="?",
        choices=[*sorted(SCHEMES), "roofline"],
        help=f"whose rows (default: a few of each); commands of their own: {', '.join(OWN)} (bench solve -h)",
    )
    parser.add_argument("files", nargs="*", help="of rows, for roofline")
    parser.add_argument("-full", "--full", action="store_true", help="every row, as bench.json and a picture")
    parser.add_argument("-fe_device", default="any", help="gpu, cpu, any, an index, or part of a name")
    parser.add_argument("-fe_precision", default="double", choices=("double", "single"))
    parser.add_argument(
        "-cells", type=float, default=None, help="cells of each mesh, about (default: fills the device)"
    )
    parser.add_argument("-only", default="", help="rows whose name contains this text")
    parser.add_argument("-repeat", type=int, default=7, help="measurements a row; the median is given")
    add_options(parser)
    parser.add_argument("-png", default="roofline.png", help="file of the roofline picture")
    return _Checked(parser)


class _Checked:
    """A parser that also says which arguments do not go together."""

    def __init__(self, parser: argparse.ArgumentParser):
        self.parser = parser

    def parse_args(self, arguments: list[str]) -> argparse.Namespace:
        """The arguments as values."""
        given = self.parser.parse_args(arguments)
        if given.scheme == "roofline" and not given.files:
            self.parser.error("roofline takes files of rows, as -json writes them")
        if given.files and given.scheme != "roofline":
            self.parser.error(f"'{given.files[0]}': files are for roofline")
        if given.full and given.scheme:
            self.parser.error(f"-full measures all schemes: leave out '{given.scheme}', or -full")
        if given.full and not given.json:
            given.json = "bench.json"
        return given


def _groups(given):
    """The function of device, arguments and copy that yields the groups of rows asked for."""
    if given.full:
        return full.groups
    return SCHEMES[given.scheme].groups if given.scheme else short.groups
