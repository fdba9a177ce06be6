"""Tables 1 to 3 of Roca, Nguyen and Peraire 2011 (roca_2011.json).

    python benchmarks/papers/roca.py
    python benchmarks/papers/roca.py -fe_device gpu -scale gpu -results benchmarks/results/papers_h100

Triangles with 11 783 facets (the paper: 11 780), four components, p = 1 … 5, random blocks; on a GPU then the same on a
mesh whose matrix takes 8 GB. Rows (table product) have unknowns, nonzeros and bytes (with the vectors x and y) in CSR
and in dense block format, and for one product its time, Gflop/s, GB/s and fraction of a copy's bandwidth in the same
run; with cupy on an NVIDIA GPU also the time of cuSPARSE's CSR product. The spread of x is part of the product and
takes no memory; the paper's dense format stores it, and its table 2 times it apart.
"""

from __future__ import annotations

import sys
from functools import partial
from types import SimpleNamespace

from paper_tables import NONE, Results, Table, ms, pick, printed, run

PAPER = printed("roca_2011")
MB = 2**20
DEGREES = range(1, 6)
REPEATS = {"small": 3, "full": 7, "gpu": 7}


def storage(disc) -> dict:
    """Nonzeros and bytes with two vectors: CSR of 8 + 4 bytes an entry and 4 a row, dense blocks with neighbours."""
    layout = disc.filled("dbf")[0].layout
    blocks, square = int((layout.neighbours >= 0).sum()), layout.block**2
    rows, padded = layout.num_facets * layout.block, layout.num_slots * layout.num_facets
    csr, dense = blocks * square, padded * square
    found = {"unknowns": rows, "csr_nnz": csr, "dbf_nnz": dense}
    return found | {"csr_bytes": 12 * csr + 4 * (rows + 1) + 16 * rows, "dbf_bytes": 8 * dense + 4 * padded + 16 * rows}


def groups(device, given, copy):
    """Groups of rows: the paper's mesh, then on a GPU the large one."""
    from bench.group import Group

    for large in (False, True) if given.scale == "gpu" else (False,):
        for p in DEGREES:
            name = f"product p {p}" + (", 8 GB" if large else "")
            measured = partial(measure, device, REPEATS[given.scale], copy, p, large)
            yield Group((name,), lambda names, name=name, measured=measured: {name: measured})


def measure(device, repeat: int, copy: float, degree: int, large: bool, cells: float | None = None) -> dict:
    """One row."""
    from bench import trace

    given = SimpleNamespace(fe_precision="double", cells=cells)
    disc = trace._made(device, given, "triangle", degree, trace.ROCA_COMPONENTS, roca=not large)
    found = trace.MEASUREMENTS["dbf"]("dbf", disc, device, repeat, copy)
    assembly = trace.MEASUREMENTS["dbf assembly"]("assembly", disc, device, repeat, copy)
    row = {"table": "product", "p": degree, "large": large, **storage(disc), "seconds": found["seconds_median"]}
    row |= {"peer": found["peer"], "gflops": found["gflops"]}
    row |= {"GBs": found["bytes_compulsory"] / found["seconds_median"] / 1e9}
    row |= {"fraction_of_copy": found["fraction_of_copy"], "copy_GBs": copy / 1e9}
    return row | {"assembly_seconds": assembly["seconds_median"]}


def tables(results: Results | None = None) -> list[Table]:
    """The paper's tables and ours."""
    results = results or Results("roca", {"product": "roca_h100"})
    return [size_table(results), spread_table(), product_table(results)]


def size_table(results: Results) -> Table:
    scope = {"p": "", "n, paper": "11 780 facets", "n": "11 783 facets"}
    for kind in ("CSR", "DBF"):
        scope |= {
            f"nonzeros {kind}, paper": "",
            f"nonzeros {kind}": "",
            f"MB {kind}, paper": "2²⁰ bytes, matrix and vectors",
            f"MB {kind}": "the same",
        }
    rows = []
    for line in PAPER["table1"]:
        ours = pick(results.pocl or results.h100, p=line["p"], large=False)
        row = [line["p"], line["n"], ours.get("unknowns", NONE)]
        for kind in ("csr", "dbf"):
            size = ours[f"{kind}_bytes"] / MB if ours else NONE
            row += [line[f"{kind}_nnz"], ours.get(f"{kind}_nnz", NONE), line[f"{kind}_MB"], size]
        rows.append(row)
    note = (
        "Scope: the same facets, components and degrees, three facets more. Our dense format does not store the spread "
        "vector, and reads an index for each block instead."
    )
    return Table("Table 1: sizes", scope, rows, note)


def spread_table() -> Table:
    scope = {"p": "", "spread x, paper": "GTX 285, ms", "sum of blocks, paper": "GTX 285, ms"}
    rows = [[line["p"], line["convert"], line["contract"]] for line in PAPER["table2_ms"]]
    note = (
        "Scope: our product gathers x while it sums, in one kernel, so the two steps have no times of their own. "
        "Table 3 has their sum."
    )
    return Table("Table 2: the two steps of a product", scope, rows, note)


def product_table(results: Results) -> Table:
    scope = {"p": "", "mesh": "", "Matlab, paper": "host", "cuSPARSE, paper": "2011, GTX 285", "DBF, paper": "GTX 285"}
    for head in results.by_device:
        scope |= {f"cuSPARSE, {head}": "CSR, same run", f"DBF, {head}": "", f"GF/s, {head}": "", f"of copy, {head}": ""}
    rows = []
    for large in (False, True):
        for line in PAPER["table3_ms"]:
            row = [line["p"], "8 GB" if large else "the paper's"]
            row += [NONE] * 3 if large else [line["matlab"], line["cusparse"], line["dbf"]]
            for found in results.by_device.values():
                ours = pick(found, p=line["p"], large=large)
                peer = ours.get("peer", {}).get("cusparse csr")
                row += [ms(peer), ms(ours.get("seconds")), ours.get("gflops", NONE), ours.get("fraction_of_copy", NONE)]
            rows.append(row)
    note = (
        "Scope: the paper's matrices are those of compressible flow; times of a product do not depend on the values, "
        "so ours are random. The paper has 20 to 25 GF/s and 60 of 160 GB/s. The GTX 285 is gone; of copy compares "
        "devices."
    )
    return Table("Table 3: one product, ms", scope, rows, note, keys=2)


if __name__ == "__main__":
    import petsc4py

    petsc4py.init(sys.argv[:1])
    sys.exit(run("roca", __doc__, groups))
