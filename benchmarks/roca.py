"""Tables 1 and 3 of Roca, Nguyen and Peraire 2011 (benchmarks/papers/roca_2011.json) on one device, theirs beside.

    python benchmarks/roca.py -fe_device gpu -json benchmarks/results/roca_h100.json

Triangles with 11 783 facets (the paper: 11 780), four components, p = 1 … 5, random blocks; then the same on a mesh
whose matrix takes 8 GB. Given are unknowns, nonzeros and MB (2²⁰ bytes, with the vectors x and y) in CSR and in dense
block format, and for one product its time, Gflop/s, GB/s and fraction of a copy's bandwidth in the same run; with cupy
on an NVIDIA GPU also the time of cuSPARSE's CSR product. The spread of x is part of the product here and takes no
memory; the paper's dense format stores it, and its table 2 times it apart.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from bench import trace

from petsc_hdg.commands.bench import copy_bandwidth
from petsc_hdg.device import Device

PAPER = json.loads((Path(__file__).parent / "papers" / "roca_2011.json").read_text())


def storage(disc) -> dict:
    """Nonzeros and bytes with two vectors: CSR of 8 + 4 bytes an entry and 4 a row, dense blocks with neighbours."""
    layout = disc.filled("dbf")[0].layout
    blocks, square = int((layout.neighbours >= 0).sum()), layout.block**2
    rows, padded = layout.num_facets * layout.block, layout.num_slots * layout.num_facets
    csr, dense = blocks * square, padded * square
    found = {"unknowns": rows, "csr_nnz": csr, "dbf_nnz": dense}
    return found | {"csr_bytes": 12 * csr + 4 * (rows + 1) + 16 * rows, "dbf_bytes": 8 * dense + 4 * padded + 16 * rows}


def measure(device, given, copy: float, degree: int, large: bool) -> dict:
    """One row."""
    disc = trace._made(device, given, "triangle", degree, trace.ROCA_COMPONENTS, roca=not large)
    found = trace.MEASUREMENTS["dbf"]("dbf", disc, device, given.repeat, copy)
    assembly = trace.MEASUREMENTS["dbf assembly"]("assembly", disc, device, given.repeat, copy)
    row = {"p": degree, "large": large, **storage(disc), "seconds": found["seconds_median"], "peer": found["peer"]}
    row |= {"gflops": found["gflops"], "GBs": found["bytes_compulsory"] / found["seconds_median"] / 1e9}
    row |= {"fraction_of_copy": found["fraction_of_copy"], "copy_GBs": copy / 1e9}
    return row | {"assembly_seconds": assembly["seconds_median"], "device": device.name}


def line(row: dict) -> str:
    """A row as text, the paper's in brackets."""
    size, times = ({}, {}) if row["large"] else (PAPER[t][row["p"] - 1] for t in ("table1", "table3_ms"))
    csr, peer = row["peer"].get("cusparse csr", np.nan), times.get("cusparse", "-")
    parts = [
        f"p {row['p']}  n {row['unknowns']} ({size.get('n', '-')})",
        f"nnz csr {row['csr_nnz']} ({size.get('csr_nnz', '-')}), dbf {row['dbf_nnz']} ({size.get('dbf_nnz', '-')})",
        f"MB csr {row['csr_bytes'] / 2**20:.2f} ({size.get('csr_MB', '-')}),",
        f"dbf {row['dbf_bytes'] / 2**20:.2f} ({size.get('dbf_MB', '-')})",
        f"ms dbf {1e3 * row['seconds']:.4f} ({times.get('dbf', '-')}), cusparse {1e3 * csr:.4f} ({peer})",
        f"GF/s {row['gflops']:.0f}  GB/s {row['GBs']:.0f} = {row['fraction_of_copy']:.3f} of copy",
        f"assembly ms {1e3 * row['assembly_seconds']:.3f}",
    ]
    return "  ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-fe_device", default="any", help="gpu, cpu, any, an index, or part of a name")
    parser.add_argument("-degrees", default="1,2,3,4,5")
    parser.add_argument("-cells", type=float, default=None, help="cells of the large mesh, about (default: 8 GB)")
    parser.add_argument("-repeat", type=int, default=7, help="measurements a row; the median is given")
    parser.add_argument("-json", default="", help="file that receives the rows")
    given = parser.parse_args()
    device = Device.select(given.fe_device)
    copy = copy_bandwidth(device)
    print(f"{device.view()}\n  copy of a buffer: {copy / 1e9:.1f} GB/s, read and written bytes counted", flush=True)
    asked = SimpleNamespace(fe_precision="double", cells=given.cells, repeat=given.repeat, only="")
    rows = []
    for large in (False, True):
        for degree in map(int, given.degrees.split(",")):
            rows.append(measure(device, asked, copy, degree, large))
            print(line(rows[-1]), flush=True)
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
