"""`petsc-hdg bench [SCHEME]`: rows that set a kernel's time beside what the same device, in the same run, allows.

Without a scheme: a short set of all of them. `-full`: every row of every scheme, as JSON and as a roofline picture.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ...device import Device
from ...errors import OptionError
from . import cg, full, hdg, krylov, poly, roofline, scaling, short, sipg, solve, start, trace
from .copy import copy_bandwidth
from .peak import arithmetic_peak
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
    rows = []
    for row in _rows(given)(device, given, copy):
        rows.append(limited(row, peak))
        print(format_rows(rows[-1:], header=len(rows) == 1), flush=True)
        if given.json:  # after each row, so that a run cut short leaves what it has
            Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")
    if not rows:
        raise OptionError(f"-only '{given.only}' is in the name of no row; leave it out to see the names")
    return roofline.draw([given.json], given.png) if given.full else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="petsc-hdg bench", prefix_chars="-")
    parser.add_argument(
        "scheme",
        nargs="?",
        choices=[*sorted(SCHEMES), "roofline"],
        help=f"whose rows (default: a few of each); commands of their own: {', '.join(OWN)} (bench solve -h)",
    )
    parser.add_argument("files", nargs="*", help="of rows, for roofline")
    parser.add_argument("-full", "--full", action="store_true", help="all rows of all schemes, with JSON and picture")
    parser.add_argument("-fe_device", default="any", help="gpu, cpu, any, an index, or part of a name")
    parser.add_argument("-fe_precision", default="double", choices=("double", "single"))
    parser.add_argument(
        "-cells", type=float, default=None, help="cells of each mesh, about (default: fills the device)"
    )
    parser.add_argument("-only", default="", help="rows whose name contains this text")
    parser.add_argument("-repeat", type=int, default=7, help="measurements a row; the median is given")
    parser.add_argument("-json", default="", help="file that receives the rows (with -full: bench.json)")
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


def _rows(given):
    """The function of device, arguments and copy that yields the rows asked for."""
    if given.full:
        return full.rows
    return SCHEMES[given.scheme].rows if given.scheme else short.rows
