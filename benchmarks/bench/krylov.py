"""`python benchmarks/bench krylov`: an iteration of a Krylov method with Jacobi, ours on the device beside PETSc's.

Operators are those of the other benches, on copies of a tile: interior penalty, an HDG trace matrix, Lagrange elements.
PETSc's vectors are on the host, or on the device where PETSc has ViennaCL. Every number of iterations is fixed, so that
an iteration's time is a difference of two solves, without what a solve costs once.
"""

from __future__ import annotations

import argparse
import time
from functools import cache, partial

import numpy as np
from petsc4py import PETSc

from petsc_hdg.commands.bench import copy_bandwidth, median_seconds
from petsc_hdg.device import Arrays, Device, VecAccess
from petsc_hdg.discretizations.cg.scheme import ContinuousGalerkin
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.krylov.matrices import sums_products
from petsc_hdg.operators import CGOperator, JacobianContext, TraceMatrix
from petsc_hdg.operators.trace.stores import create_format
from petsc_hdg.options import Options

from .cg import laplace
from .group import Group, measure, shown_by
from .record import Record, add_options
from .sipg import Tile
from .tiled import TiledCG, shaken_box
from .trace import TraceCopies

SCHEMES = ("sipg", "hdg", "cg")
METHODS = {"CG": "cg", "BiCGStab": "bcgs", "GMRES": "gmres"}
COLUMNS = ("operator", "unknowns", "KSP", "Vec", "us", "faster", "product", "vectors", "of copy", "norms")
WIDTHS = (-22, 10, -8, -9, 10, 7, 8, 8, 8, 9)
GPU_UNKNOWNS, CPU_UNKNOWNS = (1e6, 5e7), (1e5,)
# Bytes of an iteration of ours for an unknown, products aside; PETSc's GMRES has no fixed number.
VECTOR_BYTES = {"CG": 72, "BiCGStab": 112 + 2 * 40}
SUM_BYTES = 16  # of CG's p·w, where the product does not sum it
SHORT = 3  # iterations of the shorter solve
LARGE, LARGE_TIMES = 1e7, 2  # unknowns whose way to the device and back is uneven, and how many more iterations then
MOST_PAIRS = 20  # of a short and a long solve, whose difference is taken
MOST_ON_HOST = 2e8  # iterations times unknowns that PETSc's CG does with vectors on the host


def main(arguments: list[str]) -> int:
    """Measure, print a line a solver; with `-json FILE` write the rows too."""
    given = _parser().parse_args(arguments)
    device = Device.select(given.fe_device)
    record = Record.of(given, device=device.name, arguments=f"-iterations {given.iterations}")
    copy = copy_bandwidth(device)
    print(f"{device.view()}\n  copy of a buffer: {copy / 1e9:.1f} GB/s\n  {_line(COLUMNS)}", flush=True)
    several = given.unknowns or (GPU_UNKNOWNS if device.is_gpu else CPU_UNKNOWNS)
    groups = [_group(s, unknowns, device, given, copy) for unknowns in several for s in given.schemes]
    return record.end(measure(groups, record, shown_by(_formatted), device))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench krylov", allow_abbrev=False, description=__doc__)
    parser.add_argument("-schemes", nargs="+", default=list(SCHEMES), choices=SCHEMES)
    parser.add_argument("-methods", nargs="+", default=["CG"], choices=list(METHODS))
    parser.add_argument("-unknowns", type=float, nargs="+", default=None, help="about (default: 1e6 and 5e7 on a GPU)")
    parser.add_argument("-iterations", type=int, default=60, help="of the longer solve")
    parser.add_argument("-vecs", nargs="+", default=None, help="types of PETSc's vectors: viennacl, standard")
    parser.add_argument("-fe_device", default="any", help="gpu, cpu, any, an index, or part of a name")
    add_options(parser)
    return parser


def _group(scheme: str, unknowns: float, device, given, copy: float) -> Group:
    """Rows of one operator: both solvers on each kind of vectors, host vectors staged through the same device."""
    viennacl = PETSc.Sys.hasExternalPackage("viennacl")
    kinds = given.vecs or (["viennacl"] if viennacl else []) + ["standard"]
    cases = [(kind, method, s) for kind in kinds for method in given.methods for s in (METHODS[method], method)]
    names = {f"krylov {scheme}, {unknowns:g} unknowns, {kind} {s}": (kind, m, s) for kind, m, s in cases}

    def prepare(wanted) -> dict:
        here = _device_of_vectors() if "viennacl" in kinds else device
        op, context, title = MADE[scheme](Arrays(here), unknowns)
        count, product = op.dofmap.num_owned, _product_seconds(context, here)
        moved = {**VECTOR_BYTES, "CG": VECTOR_BYTES["CG"] + (0 if sums_products(context) else SUM_BYTES)}
        solvers = {kind: cache(_solves(context, kind, count, here, given.iterations)) for kind in kinds}

        def measured(kind: str, method: str, solver: str) -> dict:
            theirs = solvers[kind](METHODS[method])
            return _row(title, count, solver, kind, *solvers[kind](solver), theirs, product, copy, moved)

        return {name: partial(measured, *names[name]) for name in wanted}

    return Group(tuple(names), prepare)


def _solves(context, kind: str, count: int, device, iterations: int):
    """A function of a solver's name: seconds of an iteration and a norm, on one kind of vectors."""
    mat = context.as_mat((count, count), PETSc.COMM_SELF, kind)
    b = mat.createVecLeft()
    b.setArray(np.random.default_rng(3).uniform(-1, 1, count))
    return lambda solver: _iteration(solver, mat, b, device, _affordable(iterations, solver, kind, count))


def _affordable(iterations: int, solver: str, kind: str, count: int) -> int:
    """Iterations of the longer solve: fewer where each is the host's, more where copies to it vary by one's time."""
    if kind == "viennacl":
        return iterations
    if solver in METHODS:
        return iterations * (LARGE_TIMES if count > LARGE else 1)
    return max(SHORT + 2, min(iterations, int(MOST_ON_HOST / count)))


def _device_of_vectors() -> Device:
    vector = PETSc.Vec().create(PETSc.COMM_SELF)
    vector.setSizes(1)
    vector.setType("viennacl")
    vector.set(0.0)
    return Device.from_vec(vector)


# Operators --------------------------------------------------------------------------------------------------------


def _sipg(arrays: Arrays, unknowns: float):
    device, degree = arrays.device, 4 if unknowns < 1e7 else 7  # fewer cells to set up on the host
    faces = (256, 256) if device.is_gpu and unknowns > 4e6 else (64, 64) if device.is_gpu else (32, 32)
    given = argparse.Namespace(fe_precision="double", cells=None)
    op = Tile("quadrilateral", faces, "box").operator(device, given, degree, "auto", unknowns)
    op.linearize(op.arrays.zeros(op.dofmap.num_owned))
    return op, JacobianContext(op, VecAccess(op.arrays)), f"sipg quadrilateral P{degree}"


def _hdg(arrays: Arrays, unknowns: float):
    faces = (128, 128) if arrays.device.is_gpu else (24, 24)
    degree = 5
    op = TraceCopies("triangle", degree, 1, faces, arrays, lambda tile: round(unknowns / tile.dofmap.num_owned))
    trace = create_format("symmetric", op)
    size, count = op.spaces[0].num_dofs, 4096
    K = np.random.default_rng(2).uniform(-1, 1, (size, count, size))
    K = K + K.transpose(2, 1, 0) + 2.5 * size * np.eye(size)[:, None]  # definite: more than a row's other entries
    K = arrays.to_device(K)
    for first in range(0, op.mesh.num_cells, count):
        trace.add_tile(K, first, min(count, op.mesh.num_cells - first), count)
    return op, TraceMatrix(op, VecAccess(arrays), own=trace), f"hdg triangle P{degree}"


def _cg(arrays: Arrays, unknowns: float):
    limits, faces = DeviceLimits.of(arrays.device), (192, 192) if arrays.device.is_gpu else (32, 32)
    tile = ContinuousGalerkin(shaken_box("quadrilateral", faces), laplace(), Options(degree=2), limits)
    op = CGOperator(TiledCG(tile, max(1, round(unknowns / tile.dofmap.num_owned))), arrays)
    op.linearize(arrays.zeros(op.dofmap.num_owned))
    return op, JacobianContext(op, VecAccess(arrays)), "cg quadrilateral P2"


MADE = {"sipg": _sipg, "hdg": _hdg, "cg": _cg}


# Measurements -----------------------------------------------------------------------------------------------------


def _product_seconds(context, device) -> float:
    """Seconds of a product on buffers, run alone."""
    arrays, count = context.access.arrays, context.operator.dofmap.num_owned
    x, y = arrays.to_device(np.random.default_rng(4).uniform(-1, 1, count)), arrays.empty(count)
    return median_seconds(device, lambda: context.product(x, y), 7)


def _iteration(solver: str, mat, b, device, iterations: int) -> tuple[float, float]:
    """Seconds of an iteration, and the residual's norm after SHORT of them."""
    ksp = PETSc.KSP().create(PETSc.COMM_SELF)
    ksp.setOperators(mat)
    if solver in METHODS:
        ksp.setType("python")
        ksp.setPythonType(f"petsc_hdg.{solver}")
    else:
        ksp.setType(solver)
    ksp.getPC().setType("jacobi")
    x = b.duplicate()

    def solved(its: int) -> float:
        ksp.setTolerances(rtol=1e-300, atol=1e-300, max_it=its)
        device.finish()
        start = time.perf_counter()
        ksp.solve(b, x)
        device.finish()
        if ksp.getIterationNumber() != its:
            raise RuntimeError(f"{solver} stopped after {ksp.getIterationNumber()} of {its} iterations")
        return time.perf_counter() - start

    solved(SHORT)  # compiles
    norm, short, long = ksp.getResidualNorm(), [], []
    while len(long) < 2 or (min(long) <= min(short) and len(long) < MOST_PAIRS):  # a busy host hides short solves
        short.append(solved(SHORT))
        long.append(solved(iterations))
    ksp.destroy()
    return (min(long) - min(short)) / (iterations - SHORT), norm


def _row(title, count, solver, kind, seconds, norm, reference, product, copy, vector_bytes) -> dict:
    """A row. vectors_seconds: what an iteration takes beyond its product; for PETSc with what is copied for it."""
    ours, products = solver in METHODS, 2 * product if solver in ("bcgs", "BiCGStab") else product
    vectors = max(seconds - products, 1e-12)
    moved = vector_bytes.get(solver) if vectors > 0.02 * seconds else None  # else the difference is noise
    return {
        "kernel": f"krylov {solver} with Jacobi",
        "operator": title,
        "dofs": count,
        "ksp": f"petsc_hdg.{solver}" if ours else solver,
        "vec": kind,
        "seconds_iteration": seconds,
        "product_seconds": products,
        "vectors_seconds": vectors,
        "vectors_bytes": moved,
        "vectors_fraction_of_copy": moved * count / vectors / copy if moved else None,
        "times_faster_than_petsc": reference[0] / seconds,
        "norm_difference_to_petsc": abs(norm - reference[1]) / reference[1],
        "copy_GBs_same_run": copy / 1e9,
    }


def _line(values) -> str:
    cells = (f"{v:<{-w}}" if w < 0 else f"{v:>{w}}" for v, w in zip(values, WIDTHS, strict=True))
    return " ".join(cells)


def _formatted(r: dict) -> str:
    iteration, fraction = r["seconds_iteration"], r["vectors_fraction_of_copy"]
    shares = (f"{r['product_seconds'] / iteration:.2f}", f"{r['vectors_seconds'] / iteration:.2f}")
    return _line(
        (
            *(r["operator"], r["dofs"], r["ksp"].split(".")[-1], r["vec"], f"{1e6 * iteration:.1f}"),
            *(f"{r['times_faster_than_petsc']:.2f}", *shares),
            *("" if fraction is None else f"{fraction:.2f}", f"{r['norm_difference_to_petsc']:.0e}"),
        )
    )
