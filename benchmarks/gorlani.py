"""Tables 4.15 to 4.17 of Gorlani 2015 (benchmarks/papers/gorlani_2015_times.json) on one device, and the paper's.

    python benchmarks/gorlani.py -fe_device gpu -json benchmarks/results/gorlani_h100.json
    python benchmarks/gorlani.py -fe_device cpu -json benchmarks/results/gorlani_pocl.json \\
        -meshes 32,64,128 -n 64 -degrees 2,4,8

One product with the interior penalty matrix of n × n squares, by parts: the volume terms by one stored matrix for all
cells (`congruent`, the paper's volume_mvm<,1>), by one for each (`stored`, volume_mvm<,0>), or recomputed at the
quadrature points (`volume`); the fluxes of all facets (`flux`); and whole products in one pass, of any physics on any
geometry (`fused`), and with constant coefficients on rectangles (`affine`). A part that is not there, or whose matrices
do not fit the device, is left out. Meshes beyond -tile are copies of one of -tile × -tile squares.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from math import log
from pathlib import Path

from bench.record import Record, add_options
from bench.sipg import Launches, Tile

from petsc_hdg.commands.bench import copy_bandwidth, median_seconds
from petsc_hdg.device import Device
from petsc_hdg.errors import DeviceError, OptionError

PAPER = json.loads((Path(__file__).parent / "papers" / "gorlani_2015_times.json").read_text())
# Of each part: the operator's -sipg_kernel, its launch, the paper's name, reals of vectors that an unknown moves.
PARTS = {
    "congruent": ("congruent", "congruent volume", "volume_mvm1", 2),
    "stored": ("stored", "stored volume", "volume_mvm0", 2),
    "volume": ("split", "split volume", "volume", 2),
    "flux": ("split", "split flux", "flux", 3),
    "fused": ("auto", "fused product", None, 2),
    "affine": ("auto", "affine product", None, 2),
}


def parts_of(tile: Tile, device, given, degree: int, cells: int) -> dict[str, float]:
    """Seconds of each part that can be measured."""
    asked = argparse.Namespace(fe_precision="double", cells=cells)
    found = {}
    for kernel in {kernel: None for kernel, *_ in PARTS.values()}:
        try:
            op = tile.operator(device, asked, degree, kernel, 0)
            launches = Launches(op).of
        except (DeviceError, OptionError) as error:
            print(f"    {kernel}: {error}", flush=True)
            continue
        for name, (of, launch, _, _) in PARTS.items():
            if of == kernel and launch in launches:
                found[name] = median_seconds(device, launches[launch], given.repeat)
        del op, launches
        gc.collect()
    return {name: found[name] for name in PARTS if name in found}


class Tiles:
    """Meshes of n × n squares for operators; those larger than the tile are copies of it."""

    def __init__(self, largest: int):
        self.largest, self._kept = largest, {}

    def of(self, n: int) -> Tile:
        """The mesh to copy. Raises ValueError if copies do not make up n × n."""
        side = min(n, self.largest)
        if n % side:
            raise ValueError(f"{n} × {n} squares are not copies of {side} × {side}; give another -tile")
        if side not in self._kept:
            self._kept = {side: Tile("quadrilateral", (side, side), "box")}
        return self._kept[side]


def measure(tiles: Tiles, device, given, copy: float, n: int, degree: int) -> dict:
    """One row."""
    seconds = parts_of(tiles.of(n), device, given, degree, n * n)
    size = (degree + 1) ** 2
    unknowns = n * n * size
    reals = {name: PARTS[name][3] + (size if name == "stored" else 0) for name in PARTS}
    rate = {name: 8 * reals[name] * unknowns / s for name, s in seconds.items()}
    row = {"n": n, "p": degree, "unknowns": unknowns, "seconds": seconds, "copy_GBs": copy / 1e9}
    row["GBs"] = {name: value / 1e9 for name, value in rate.items()}
    row["fraction_of_copy"] = {name: value / copy for name, value in rate.items()}
    return row | {"device": device.name}


TABLES = {"n": "table4_15_n_p4_ms", "p": "table4_16_p_n512_ms"}
FIXED = {"n": ("p", 4), "p": ("n", 512)}  # what the paper keeps fixed in each table


def paper_of(row: dict, key: str, table: str) -> dict:
    """The paper's row for one of ours, {} where there is none."""
    other, value = FIXED[key]
    return next((r for r in PAPER[table] if r[key] == row[key] and row[other] == value), {})


def line(row: dict, before: dict | None, key: str) -> str:
    """A row as text: ms, the paper's in brackets; exponents of growth from the row before if `key`, n or p, doubles."""
    paper, last, said = paper_of(row, key, TABLES[key]), before or {}, []
    for name, seconds in row["seconds"].items():
        text = f"{name} {1e3 * seconds:.4f} ({paper.get(PARTS[name][2], '-')})"
        if name in last.get("seconds", {}) and row[key] == 2 * last[key]:
            text += f" ζ {log(seconds / last['seconds'][name], 4 if key == 'n' else 2):.2f}"
        said.append(text)
    return f"  {key} {row[key]:<5}" + "  ".join(said)


def bandwidth_line(row: dict) -> str:
    """A row of table 4.17: GB/s and fraction of copy, the paper's GB/s in brackets."""
    paper = paper_of(row, "p", "table4_17_p_n512_GBs")
    beside = {"volume": paper.get("volume", "-"), "flux": f"{paper.get('flux6a', '-')}, {paper.get('flux6b', '-')}"}
    said = [
        f"{name} {rate:.1f} = {row['fraction_of_copy'][name]:.3f} of copy ({beside.get(name, '-')})"
        for name, rate in row["GBs"].items()
    ]
    return f"  p {row['p']:<3}" + "  ".join(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-fe_device", default="any", help="gpu, cpu, any, an index, or part of a name")
    parser.add_argument("-meshes", default="128,256,512,1024,2048", help="n of table 4.15, ascending")
    parser.add_argument("-p", type=int, default=4, help="degree of table 4.15")
    parser.add_argument("-degrees", default="2,4,8,16", help="degrees of table 4.16, ascending")
    parser.add_argument("-n", type=int, default=512, help="squares along a side in table 4.16")
    parser.add_argument("-tile", type=int, default=512, help="largest n that is one mesh")
    parser.add_argument("-repeat", type=int, default=7, help="measurements a part; the median is given")
    add_options(parser)
    given = parser.parse_args()
    device = Device.select(given.fe_device)
    record = Record.of(given, device=device.name, arguments=f"-tile {given.tile}")
    copy = copy_bandwidth(device)
    print(f"{device.view()}\n  copy of a buffer: {copy / 1e9:.1f} GB/s, read and written bytes counted", flush=True)
    tiles, tables = Tiles(given.tile), {}
    plans = {
        "table4_15": ("n", [(int(n), given.p) for n in given.meshes.split(",")]),
        "table4_16": ("p", [(given.n, int(p)) for p in given.degrees.split(",")]),
    }
    for name, (key, cases) in plans.items():
        print(f"{name}, ms (paper, K20x)", flush=True)
        rows = tables[name] = []
        for n, degree in cases:
            title = f"{name}, n {n}, p {degree}"
            if record.due([title]):
                if record.is_over:
                    sys.exit(record.end(1))
                record.keep(title, measure(tiles, device, given, copy, n, degree))
            rows.append(record.rows[title])
            print(line(rows[-1], rows[-2] if len(rows) > 1 else None, key), flush=True)
    print("table4_17, GB/s (paper, K20x)")
    for row in tables["table4_16"]:
        print(bandwidth_line(row))


if __name__ == "__main__":
    main()
