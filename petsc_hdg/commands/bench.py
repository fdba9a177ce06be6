"""`petsc-hdg bench`: products with the Jacobian of each scheme, beside a copy of a buffer on the same device.

-∇·∇u = 1 in the unit box, on this rank. The kernels one by one, whole solves and many ranks are timed by
`python benchmarks/bench` in the repository.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from mpi4py import MPI

from ..device import Arrays, Device
from ..errors import OptionError
from ..krylov.matrices import Matrix
from ..krylov.vectors import Vectors
from ..mesh import Mesh, agglomerate
from ..options import Options
from ..output.atomic import atomic_file
from ..physics import Dirichlet, Physics
from ..problem import Problem

# scheme, cell, degree, -fe_pmat
CASES = (
    ("cg_gpu", "triangle", 1, "none"),
    ("cg_gpu", "tetrahedron", 1, "none"),
    ("cg_gpu", "quadrilateral", 3, "none"),
    ("hdg_gpu", "triangle", 3, "none"),
    ("sipg_gpu", "quadrilateral", 3, "none"),
    ("sipg_gpu", "hexahedron", 4, "none"),
    ("sipg_gpu", "triangle", 3, "none"),
    ("poly_gpu", "triangle", 3, "none"),
)
SPLIT = {"triangle": 2, "quadrilateral": 1, "tetrahedron": 6, "hexahedron": 1}  # cells of a box
GPU_SIZE, CPU_SIZE = 4e6, 4e4  # cells of degree 1
LINE = "  {:<10}{:<15}{:>6}{:>10}{:>10}{:>9}{:>9}{:>10}"
COLUMNS = ("scheme", "cell", "degree", "unknowns", "set-up s", "ms", "MDOF/s", "of copy")


def main(arguments: list[str]) -> int:
    """Print a line per case; `-json FILE` writes them too."""
    given = _parser().parse_args(arguments)
    cases = {f"{scheme} {cell} P{degree}": (scheme, cell, degree, pmat) for scheme, cell, degree, pmat in CASES}
    chosen = [case for name, case in cases.items() if given.only in name]
    if not chosen:
        raise OptionError(f"-only '{given.only}' is in the name of no case; these are {', '.join(cases)}")
    device = Device.select(given.fe_device)
    copy = copy_bandwidth(device)
    print(f"{device.view()}\n  copy of a buffer: {copy / 1e9:.1f} GB/s, read and written bytes counted", flush=True)
    print(LINE.format(*COLUMNS), flush=True)
    rows = []
    for case in chosen:
        rows.append(_row(*case, given, device, copy))
        print(_line(rows[-1]), flush=True)
    if given.json:
        with atomic_file(given.json) as file:
            file.write(json.dumps(rows, indent=1).encode())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="petsc-hdg bench", description=__doc__)
    parser.add_argument("-fe_device", default="any", help="gpu, cpu, any, an index, or part of a name")
    parser.add_argument("-fe_precision", default="double", choices=("double", "single"))
    parser.add_argument("-cells", type=float, default=None, help="cells of each mesh, about (default: by device)")
    parser.add_argument("-only", default="", help="cases whose name contains this text")
    parser.add_argument("-repeat", type=int, default=7, help="measurements per case; the median is given")
    parser.add_argument("-json", default="", help="file that receives the rows")
    return parser


def _row(scheme: str, cell: str, degree: int, pmat: str, given, device, copy: float) -> dict:
    """Time the product of a case.

    of_copy: time of a copy of the vector at the bandwidth `copy`, over the time of the product.
    """
    start = time.perf_counter()
    dim = 2 if cell in ("triangle", "quadrilateral") else 3
    cells = given.cells or (GPU_SIZE if device.is_gpu else CPU_SIZE) / degree**dim
    faces = (max(2, round((cells / SPLIT[cell]) ** (1 / dim))),) * dim
    mesh = Mesh.box(faces, simplex=cell in ("triangle", "tetrahedron"), comm=MPI.COMM_SELF)
    if scheme == "poly_gpu":
        mesh = agglomerate(mesh, max(1, mesh.num_cells // 4))
    settings = {"backend": scheme, "degree": degree, "pmat": pmat}
    problem = Problem(mesh, poisson(), Options(device=given.fe_device, precision=given.fe_precision, **settings))
    calls, u = problem.callbacks, problem.create_vec()
    calls.linearize(None, u, calls.jacobian, calls.preconditioning)
    vectors = Vectors(problem.arrays, u.getLocalSize(), mesh.comm)
    matrix, values = Matrix(calls.jacobian, vectors), np.random.default_rng(3).uniform(-1, 1, vectors.count)
    x, y = vectors.arrays.to_device(values), vectors.arrays.zeros(vectors.count)
    matrix.mult(x, y)
    setup = time.perf_counter() - start
    seconds = median_seconds(problem.device, lambda: matrix.mult(x, y), given.repeat)
    return {
        "scheme": scheme,
        "cell": cell,
        "degree": degree,
        "precision": given.fe_precision,
        "device": device.name,
        "cells": mesh.num_cells,
        "unknowns": problem.num_unknowns,
        "setup_seconds": setup,
        "product_seconds": seconds,
        "unknowns_per_s": problem.num_unknowns / seconds,
        "copy_GBs": copy / 1e9,
        "of_copy": 2 * vectors.arrays.real.itemsize * problem.num_unknowns / copy / seconds,
    }


def _line(row: dict) -> str:
    figures = (row["setup_seconds"], 1e3 * row["product_seconds"], row["unknowns_per_s"] / 1e6, row["of_copy"])
    return LINE.format(*(row[name] for name in COLUMNS[:4]), *(f"{figure:.3g}" for figure in figures))


def poisson() -> Physics:
    """-∇·∇u = 1, u = 0 on the boundary."""
    f1 = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    return Physics({"u": 1}, "f0[0] = -1;", f1, boundary=[Dirichlet("boundary", "g[0] = 0;")], name="poisson")


def copy_bandwidth(device, repeats: int = 9) -> float:
    """Bytes a second, read plus written, of a copy from buffer to buffer (median of `repeats`)."""
    arrays = Arrays(device)
    count = (1 << 27) if device.is_gpu else (1 << 24)
    source, target = arrays.zeros(count), arrays.zeros(count)
    return 2 * 8 * count / median_seconds(device, lambda: arrays.copy(source, target, count), repeats, launches=5)


def median_seconds(device, launch, repeats: int, launches: int | None = None) -> float:
    """Median seconds of one `launch()`, from `repeats` measurements of several launches in a row.

    The number of launches is chosen so that a measurement takes some 20 ms, which hides the launch itself.
    """
    launch()
    device.finish()
    if launches is None:
        start = time.perf_counter()
        launch()
        device.finish()
        launches = int(np.clip(0.02 / max(time.perf_counter() - start, 1e-6), 1, 100))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(launches):
            launch()
        device.finish()
        seconds.append((time.perf_counter() - start) / launches)
    return float(np.median(seconds))
