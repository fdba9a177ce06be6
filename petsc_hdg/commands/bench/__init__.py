"""`petsc-hdg bench SCHEME`: rows that set a kernel's time beside a copy on the same device, measured in one run."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ...device import Device
from . import cg, hdg, poly, sipg, trace
from .copy import copy_bandwidth
from .row import format_rows

SCHEMES = {"cg": cg, "hdg": hdg, "poly": poly, "sipg": sipg, "trace": trace}


def main(arguments: list[str]) -> int:
    """Measure and print the rows of a scheme; with `-json FILE` write them too."""
    parser = argparse.ArgumentParser(prog="petsc-hdg bench", prefix_chars="-")
    parser.add_argument("scheme", choices=sorted(SCHEMES))
    parser.add_argument("-fe_device", default="any", help="gpu, cpu, any, an index, or part of a name")
    parser.add_argument("-fe_precision", default="double", choices=("double", "single"))
    parser.add_argument(
        "-cells", type=float, default=None, help="cells of each mesh, about (default: fills the device)"
    )
    parser.add_argument("-only", default="", help="rows whose name contains this text")
    parser.add_argument("-repeat", type=int, default=7, help="measurements a row; the median is given")
    parser.add_argument("-json", default="", help="file that receives the rows")
    given = parser.parse_args(arguments)
    device = Device.select(given.fe_device)
    copy = copy_bandwidth(device)
    print(f"{device.view()}\n  copy of a buffer: {copy / 1e9:.1f} GB/s, read and written bytes counted", flush=True)
    rows = []
    for row in SCHEMES[given.scheme].rows(device, given, copy):
        rows.append(row)
        print(format_rows([row], header=len(rows) == 1), flush=True)
        if given.json:  # after each row, so that a run cut short leaves what it has
            Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 0
