"""Time to read a mesh out of PETSc in bulk, against the number of cells: `python benchmarks/topology.py [most cells]`.

For each shape: topology (vertices, edges, faces of cells, cells of facets), geometry, and the checks of the mesh.
Making the DMPlex itself is PETSc's work and is shown beside it. Times are of the process (CPU), which other work on the
machine disturbs less; the wall time of the whole is shown too. Writes benchmarks/results/topology.json.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI
from petsc4py import PETSc

from petsc_hdg.mesh import Mesh, create, quality
from petsc_hdg.mesh.plex_points import PointExchange
from petsc_hdg.mesh.shapes import CELLS, shape
from petsc_hdg.mesh.topology import Topology, global_vertices

RESULTS = Path(__file__).with_name("results") / "topology.json"
PER_BOX = {"triangle": 2, "quadrilateral": 1, "tetrahedron": 6, "hexahedron": 1}
COUNTS = (10_000, 30_000, 100_000, 300_000, 1_000_000)


def seconds(work) -> tuple[float, object]:
    """CPU time of a call, and what it returns."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def measure(cell: str, count: int) -> dict:
    """One row: a box of about `count` cells."""
    s = shape(cell)
    side = max(1, round((count / PER_BOX[cell]) ** (1 / s.dim)))
    made, dm = seconds(lambda: create.box([side] * s.dim, s.is_simplex, 0.0, 1.0, MPI.COMM_SELF).plex(MPI.COMM_SELF))
    owned, numbers = PointExchange(dm, MPI.COMM_SELF).owned(), global_vertices(dm)
    read, topology = seconds(lambda: Topology(dm, s, owned, numbers))
    facets, _ = seconds(lambda: topology.facet_cells)
    start = time.perf_counter()
    whole, mesh = seconds(lambda: Mesh(dm))
    wall = time.perf_counter() - start
    checks, _ = seconds(lambda: quality.check(mesh))
    row = {"cell": cell, "cells": mesh.num_cells, "petsc_s": made, "topology_s": read, "facet_cells_s": facets}
    row |= {"checks_s": checks, "mesh_s": whole, "mesh_wall_s": wall, "us_per_cell": 1e6 * whole / mesh.num_cells}
    dm.destroy()
    return row


def slope(rows: list[dict]) -> float | None:
    """Exponent of the growth of the whole time with the number of cells, from 30 000 cells on (1 is linear)."""
    big = [r for r in rows if r["cells"] > 20_000]
    if len(big) < 2:
        return None
    return float(np.polyfit(np.log([r["cells"] for r in big]), np.log([r["mesh_s"] for r in big]), 1)[0])


def main(most: int) -> None:
    rows, slopes = [], {}
    heads = ("cells", "PETSc s", "topology s", "checks s", "whole s", "wall s", "us/cell")
    print(f"{'cell':14}{''.join(f'{head:>12}' for head in heads)}")
    for cell in CELLS:
        for count in (c for c in COUNTS if c <= most):
            row = measure(cell, count)
            rows.append(row)
            times = [row[key] for key in ("petsc_s", "topology_s", "checks_s", "mesh_s", "mesh_wall_s", "us_per_cell")]
            print(f"{cell:14}{row['cells']:12}{''.join(f'{value:12.3f}' for value in times)}", flush=True)
        slopes[cell] = slope([r for r in rows if r["cell"] == cell])
        if slopes[cell] is not None:
            print(f"{cell}: time grows as cells^{slopes[cell]:.2f}")
    RESULTS.parent.mkdir(exist_ok=True)
    machine = {"processor": platform.processor() or platform.machine(), "numpy": np.__version__}
    petsc = ".".join(map(str, PETSc.Sys.getVersion()))
    RESULTS.write_text(json.dumps({"petsc": petsc, **machine, "exponents": slopes, "rows": rows}, indent=1) + "\n")
    print(f"written: {RESULTS}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else COUNTS[-1])
