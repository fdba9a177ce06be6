"""Tables 1 to 7 and figures 5 to 7 of King et al. 2014 (king_2014.json).

    python benchmarks/papers/king.py                                      rows on a CPU, a small part of the cases
    python benchmarks/papers/king.py -fe_device gpu -scale gpu -results benchmarks/results/papers_h100

The problem is that of examples/helmholtz_hdg.py. Solver options are PETSc's own, the same for all rows (without any:
conjugate gradients to 1e-10 with block Jacobi of facets). Rows by their table:

pipeline  errors (n = 40: of a solve to 1e-14), iterations, seconds of the stages B1 to B6, bytes on the device, seconds
          of the local matrices of statically condensed CG, flops of both. Kernels are compiled, and meshes made, before
          the clock runs.
trace     a product with the trace matrix in dense blocks and in ELL format; its assembly facet by facet and by atomics.
gemm      products of a batch of matrices of the size of a cell's mass matrix, by numpy, or by cuBLAS on a GPU.
errors    errors of an independent program at the points of Nektar++ (helmholtz_numpy.py).
"""

from __future__ import annotations

import gc
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from paper_tables import NONE, Results, Table, ms, pick, printed, run

PAPER = printed("king_2014")
# Each cell has matrices of its own, as in the paper, whose squares are copies of each other.
DEFAULTS = {"ksp_type": "cg", "pc_type": "python", "pc_python_type": "petsc_hdg.FacetBlockJacobi"}
DEFAULTS |= {"ksp_rtol": "1e-10", "ksp_max_it": "100000", "fe_check_kernels": "0"}
DEFAULTS |= {"hdg_share": "0", "hdg_trace_mat": "dbf"}
STAGES = ("local_matrices", "assembly", "trace_solve", "local_solve")
ORDERS = range(1, 10)
SIZES = {"small": ((20, range(1, 5)), (40, range(1, 4)))}
SIZES |= dict.fromkeys(("full", "gpu"), ((80, ORDERS), (40, ORDERS), (20, ORDERS)))
TRACE_SIZES = {"small": ((20, (1, 3)),), "full": ((40, ORDERS), (80, (1, 3, 5, 9))), "gpu": ((80, (1, 3, 5, 9)),)}
GEMM_ORDERS = {"small": (1, 3, 5), "full": ORDERS, "gpu": ORDERS}
CELLS = 12_800  # of the finest mesh, the batch of products
ERRORS = (1, 2, 3, 4)  # orders at which the paper's errors are not those of its solver


# Measuring -----------------------------------------------------------------------------------------------------------


def groups(device, given, copy):
    """Groups of rows; those of a GPU in the order of their use."""
    from bench.group import Group

    for order in GEMM_ORDERS[given.scale]:
        yield single(Group, f"gemm P{order}", partial(gemm_row, order, device, given.repeat))
    for n, orders in TRACE_SIZES[given.scale]:
        for order in orders:
            yield single(Group, f"trace {n} P{order}", partial(trace_row, n, order, device, given.repeat))
    for n, orders in SIZES[given.scale]:
        for order in orders:
            yield single(Group, f"pipeline {n} P{order}", partial(pipeline_row, n, order))
    if not device.is_gpu:
        for order in ERRORS:
            yield single(Group, f"errors P{order}", partial(errors_row, order))


def single(group, name: str, measure):
    """The group of one row."""
    return group((name,), lambda names: {name: measure})


def example():
    """The module examples/helmholtz_hdg.py, its solver's defaults in PETSc's options."""
    from petsc4py import PETSc

    options = PETSc.Options()
    for name, value in DEFAULTS.items():
        if not options.hasName(name):
            options[name] = value
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    import helmholtz_hdg

    return helmholtz_hdg


def pipeline_row(n: int, order: int) -> dict:
    """The stages of one mesh and order."""
    from bench.pipeline import Pipeline

    helmholtz = example()
    problem = helmholtz.create_problem(n, order)
    pipeline = Pipeline(problem)
    seconds = pipeline.seconds()
    iterations = problem.linear_iterations
    if n == 40:
        problem.snes.getKSP().setTolerances(rtol=1e-14)
    u = problem.solve()
    disc = problem.discretization
    row = {"table": "pipeline", "n": n, "order": order, "unknowns": problem.num_unknowns, "iterations": iterations}
    row |= {"seconds": seconds, "total_seconds": sum(seconds.values()), "bytes": pipeline.memory}
    row |= {"Linf": helmholtz.largest_error(problem, u), "L2": problem.errors(u)["L2"]}
    row |= {"flops": disc.mesh.num_cells * disc.flops_per_cell, "trace_entries": problem.operator.format.flops // 2}
    del problem, pipeline, u
    gc.collect()
    found, flops = condensed_cg(helmholtz, n, order)
    return row | {"cg_local_matrices_seconds": found, "cg_flops": flops}


def condensed_cg(helmholtz, n: int, order: int) -> tuple[float, int]:
    """Seconds and flops of the local matrices of statically condensed CG, the paper's table 7."""
    from bench.pipeline import Pipeline

    import petsc_hdg as fe

    settings = {"backend": "cg_gpu", "cg_condense": True, "degree": order, "pmat": "none"}
    problem = fe.Problem(fe.Mesh.box((n, n)), helmholtz.PHYSICS, quadrature_degree=2 * order + 4, **settings)
    disc = problem.discretization
    return Pipeline(problem).local_matrices_seconds(), disc.mesh.num_cells * disc.flops_per_cell


def trace_row(n: int, order: int, device, repeat: int) -> dict:
    """Seconds of a product in dense blocks and ELL, and of the assembly without atomics and with them."""
    from bench.ell import EllTrace

    problem = example().create_problem(n, order)
    ell = EllTrace(problem, repeat)
    row = {"table": "trace", "n": n, "order": order, "unknowns": problem.num_unknowns}
    row |= {"dbf_bytes": ell.format.nbytes, "ell_bytes": ell.nbytes, "difference": ell.difference()}
    return row | {"seconds": ell.product_seconds() | ell.assembly_seconds()}


def gemm_row(order: int, device, repeat: int) -> dict:
    """Gflop/s of a batch of products of matrices of the size of a cell's mass matrix."""
    size = (order + 1) * (order + 2) // 2
    library, xp, wait = arrays_library(device)
    a = xp.ones((CELLS, size, size))
    xp.matmul(a, a)
    found = []
    for _ in range(repeat):
        wait()
        start = time.perf_counter()
        xp.matmul(a, a)
        wait()
        found.append(time.perf_counter() - start)
    flops = 2 * CELLS * size**3
    return {"table": "gemm", "order": order, "size": size, "library": library, "gflops": flops / np.median(found) / 1e9}


def arrays_library(device):
    """Name, module and barrier of a library with batched products: cuBLAS by cupy or torch on a GPU, else numpy."""
    if device.is_gpu:
        try:
            import cupy

            return "cuBLAS (cupy)", cupy, cupy.cuda.Device().synchronize
        except ImportError:
            pass
        try:
            import torch
        except ImportError:
            raise RuntimeError("neither cupy nor torch is installed, so no batched product of cuBLAS") from None
        torch.set_default_device("cuda")
        torch.set_default_dtype(torch.float64)
        return "cuBLAS (torch)", torch, torch.cuda.synchronize
    return "numpy", np, lambda: None


def errors_row(order: int) -> dict:
    """Errors of the independent program: L2 by an exact rule, and as Nektar++ integrates load and norm."""
    from helmholtz_numpy import errors

    return {"table": "errors", "order": order} | errors(40, order)


# Tables --------------------------------------------------------------------------------------------------------------


def tables(results: Results | None = None) -> list[Table]:
    """The paper's tables and ours."""
    results = results or Results("king", {"pipeline": "king_h100"})
    return [
        errors_table(results),
        *total_tables(results),
        *stage_tables(results),
        local_table(results),
        rates_table(results),
        trace_table(results),
    ]


def of(rows: list[dict], n: int, order: int, table: str = "pipeline") -> dict:
    return pick(rows, table=table, n=n, order=order)


def errors_table(results: Results) -> Table:
    ours = results.h100 + results.pocl
    scope = {
        "P": "",
        "paper L∞": "its GPU program",
        "L∞": "at the nodes",
        "L∞ at Nektar's points": "independent program",
        "paper L2": "its GPU program",
        "L2": "exact norm",
        "L2, independent": "exact norm",
        "L2 by Nektar's rule": "independent program, load and norm",
    }
    rows = []
    for line in PAPER["table1_errors_40x40"]:
        mine, other = of(ours, 40, line["P"]), pick(results.pocl, table="errors", order=line["P"])
        rows.append(
            [
                line["P"],
                six(line["Linf"]),
                six(mine.get("Linf")),
                six(other.get("nektar_Linf")),
                six(line["L2"]),
                six(mine.get("L2")),
                six(other.get("L2")),
                six(other.get("nektar_L2")),
            ]
        )
    note = (
        "Scope: same equation, mesh, degrees and τ. The printed L2 errors are 2.6 to 2.8 % above the true ones, "
        "because Nektar++ integrates load and norm by P + 2 Gauss-Lobatto times P + 1 Gauss-Radau points on the "
        "collapsed square. With that rule, collapsed at the right angle of one triangle of each square and at another "
        "corner of the other, an independent program (`benchmarks/papers/helmholtz_numpy.py`) has the printed digits. "
        "From P = 5 on the paper's errors are those of its iterative solver."
    )
    return Table("Table 1: errors, 40 × 40 squares", scope, rows, note)


def six(value) -> str:
    return NONE if value is None else f"{value:.5e}"


def total_tables(results: Results) -> list[Table]:
    """Tables 2 and 3."""
    scope = {"n": "", "P": "", "paper, GPU": "A2 to B6, M2090", "paper, CPU": "the same steps, Nektar++, one core"}
    scope |= {head: f"B1 to B6, {head}" for head in results.by_device}
    memory = {"n": "", "P": "", "paper": "Z, U, K and the trace matrix"}
    memory |= {head: "U, trace matrix, a tile of K" for head in results.by_device}
    times, sizes = [], []
    for n in (20, 40, 80):
        for k in range(9):
            total, kb = PAPER["table2_total_ms"][k], PAPER["table3_memory_kB"][k]
            ours = [of(rows, n, k + 1) for rows in results.by_device.values()]
            times.append([n, k + 1, total[f"gpu{n}"], total[f"cpu{n}"], *(ms(r.get("total_seconds")) for r in ours)])
            sizes.append([n, k + 1, kb[f"n{n}"], *(sum(r["bytes"].values()) / 1e3 if r else NONE for r in ours)])
    first = (
        "Scope: the paper's step A2, elemental matrices made on the host, does not exist here; B1 and B2 begin with "
        "the text of the physics. The trace is solved to 1e-10 by conjugate gradients with block Jacobi; the paper has "
        "multigrid of Cusp."
    )
    second = "Scope: memory while the trace matrix is assembled. Cells are condensed tile by tile, and Z is not stored."
    return [Table("Table 2: run time, ms", scope, times, first), Table("Table 3: memory, kB", memory, sizes, second)]


def stage_tables(results: Results) -> list[Table]:
    """Tables 4 to 6: a column per stage and device."""
    names = {"local_matrices": "B1, B2", "assembly": "B3", "trace_solve": "B4", "local_solve": "B5, B6"}
    paper = {
        "local_matrices": "with the transfer of data",
        "assembly": "lock-free, into ELL or CSR",
        "trace_solve": "Cusp",
        "local_solve": "without transfer",
    }
    ours = {
        "local_matrices": "from the physics text",
        "assembly": "facet by facet, dense blocks",
        "trace_solve": "CG, block Jacobi",
        "local_solve": "from the stored U",
    }
    scope = {"P": ""}
    for stage in STAGES:
        scope |= {f"{names[stage]}, paper": paper[stage]} | {
            f"{names[stage]}, {d}": ours[stage] for d in results.by_device
        }
    note = "Scope: stage by stage the same work, but for the transfer in B1 and B2 and the solver of B4, as in table 2."
    found = []
    for number, n in ((4, 20), (5, 40), (6, 80)):
        rows = []
        for k in range(9):
            beside, row = PAPER["table4_6_stages_ms"][str(n)][k], [k + 1]
            for stage in STAGES:
                row.append(beside[stage])
                row += [ms(of(r, n, k + 1).get("seconds", {}).get(stage)) for r in results.by_device.values()]
            rows.append(row)
        found.append(Table(f"Table {number}: stages, {n} × {n} squares, ms", scope, rows, note))
    return found


def local_table(results: Results) -> Table:
    scope = {"n": "", "P": "", "HDG, paper": "B1 and B2", "CG, paper": "K of all cells"}
    for head in results.by_device:
        scope |= {f"HDG, {head}": "K and U", f"CG, {head}": "K and U"}
    rows = []
    for n in (20, 40, 80):
        for k in range(9):
            beside, row = PAPER["table7_local_matrices_hdg_cg_ms"][k], [n, k + 1]
            row += [beside[f"hdg{n}"], beside[f"cg{n}"]]
            for found in (of(rows, n, k + 1) for rows in results.by_device.values()):
                row += [ms(found.get("seconds", {}).get("local_matrices")), ms(found.get("cg_local_matrices_seconds"))]
            rows.append(row)
    note = "Scope: the paper's CG matrices are not condensed; ours are, with the recovery of the interior stored."
    return Table("Table 7: local matrices of HDG and of statically condensed CG, ms", scope, rows, note)


def rates_table(results: Results) -> Table:
    scope = {"P": ""}
    for head in results.by_device:
        scope |= {
            f"HDG, {head}": "condensation, finest mesh",
            f"CG, {head}": "condensation, finest mesh",
            f"batched products, {head}": "matrices of a cell's functions",
            f"trace solve, {head}": "flops as in the paper",
        }
    rows = []
    for order in range(1, 10):
        row = [order]
        for found in results.by_device.values():
            one = next((r for n in (80, 40, 20) if (r := of(found, n, order))), {})
            seconds = one.get("seconds", {})
            row += [rate(flops_of(results, one, "flops"), seconds.get("local_matrices"))]
            row += [rate(flops_of(results, one, "cg_flops"), one.get("cg_local_matrices_seconds"))]
            row += [pick(found, table="gemm", order=order).get("gflops", NONE)]
            row += [rate(cg_flops(one, order) if one else None, seconds.get("trace_solve"))]
        rows.append(row)
    note = (
        "Scope: the paper prints curves and one number: 60 GF/s of local matrices on an M2090 (665 GF/s), about 75 % "
        "of batched products by cuBLAS. Our flops are those of the plain algorithm: sums over the points and "
        "elimination. Flops of the trace solve are 2 nnz + 3 rows + iterations (2 nnz + 10 rows), as in the paper."
    )
    return Table("Figures 5 to 7: rates of local matrices and of the trace solve, GF/s", scope, rows, note)


def flops_of(results: Results, row: dict, key: str):
    """Flops of a row, which per cell are those of any mesh."""
    if not row or key in row:
        return row.get(key)
    other = next((r for r in results.h100 + results.pocl if key in r and r["order"] == row["order"]), None)
    return other and other[key] * (row["n"] / other["n"]) ** 2


def rate(flops, seconds):
    return flops / seconds / 1e9 if flops and seconds else NONE


def cg_flops(row: dict, order: int) -> int:
    """Operations of conjugate gradients as section 5 counts them."""
    nonzeros = row["unknowns"] * 5 * (order + 1)
    return 2 * nonzeros + 3 * row["unknowns"] + row["iterations"] * (2 * nonzeros + 10 * row["unknowns"])


def trace_table(results: Results) -> Table:
    heads = {
        "dbf": "product, dense blocks",
        "ell": "product, ELL",
        "lock_free": "assembly, lock-free",
        "atomic": "assembly, atomics",
    }
    texts = {
        "dbf": "a block's columns implied",
        "ell": "an index for each entry",
        "lock_free": "facet by facet",
        "atomic": "entry by entry of K",
    }
    scope = {"n": "", "P": ""}
    scope |= {f"{heads[k]}, {d}": texts[k] for d in results.by_device for k in heads}
    rows = []
    for n in (20, 40, 80):
        for order in range(1, 10):
            row = [n, order]
            for found in results.by_device.values():
                seconds = of(found, n, order, "trace").get("seconds", {})
                row += [ms(seconds.get(k)) for k in heads]
            rows.append(row)
    note = (
        "Scope: section 4.2 of the paper stores ELL and assembles without locks, and prints no times of its own for "
        "either choice. ELL and atomics are kernels of the benchmark (`benchmarks/bench/ell.py`), compared with the "
        "library's in each row."
    )
    return Table("Section 4.2: trace matrix in ELL and assembly by atomics, ms", scope, rows, note, keys=2)


if __name__ == "__main__":
    import petsc4py

    petsc4py.init(sys.argv[:1])
    sys.exit(run("king", __doc__, groups))
