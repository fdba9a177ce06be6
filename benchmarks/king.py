"""Tables 1 to 7 of King et al. 2014 (benchmarks/papers/king_2014.json) on one device, the paper's figures beside them.

    python benchmarks/king.py -json benchmarks/results/king_h100.json -fe_device gpu
    POCL_MAX_PTHREAD_COUNT=1 python benchmarks/king.py -json benchmarks/results/king_pocl.json -fe_device cpu
    python benchmarks/king.py -compare benchmarks/results/king_h100.json,benchmarks/results/king_pocl.json

The problem is that of examples/helmholtz_hdg.py. -meshes and -orders choose rows; solver options are PETSc's own, the
same for all rows (without any: conjugate gradients to 1e-10 with block Jacobi of facets). A row has the errors (n = 40:
of a solve to 1e-14), iterations, seconds of each stage and their sum, bytes on the device, and the seconds of the local
matrices of statically condensed CG. Kernels are compiled, and meshes made, before the clock runs. The stages are the
paper's B1 to B6, as in its tables 4 to 6; its table 2 has A2 to B6, with steps of the host that are not made here.
"""

# ruff: noqa: E402  petsc4py takes the command line before anything else is imported
from __future__ import annotations

import json
import sys
from pathlib import Path

import petsc4py

petsc4py.init(sys.argv)

from bench.pipeline import STAGES, Pipeline
from petsc4py import PETSc

import petsc_hdg as fe

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from helmholtz_hdg import PAPER, PHYSICS, SOLVER, create_problem, largest_error

# Each cell has matrices of its own, as in the paper, whose squares are copies of each other.
DEFAULTS = SOLVER | {"ksp_rtol": "1e-10", "ksp_max_it": "100000", "fe_check_kernels": "0"}
DEFAULTS |= {"hdg_share": "0", "hdg_trace_mat": "dbf"}


def measure(n: int, order: int) -> dict:
    """One row."""
    problem = create_problem(n, order)
    pipeline = Pipeline(problem)
    seconds = pipeline.seconds()
    iterations = problem.linear_iterations
    if n == 40:
        problem.snes.getKSP().setTolerances(rtol=1e-14)
    u = problem.solve()
    row = {"n": n, "order": order, "unknowns": problem.num_unknowns, "iterations": iterations, "seconds": seconds}
    row |= {"total_seconds": sum(seconds.values()), "bytes": pipeline.memory}
    row |= {"Linf": largest_error(problem, u), "L2": problem.errors(u)["L2"], "device": problem.device.name}
    return row | {"cg_local_matrices_seconds": condensed_cg(n, order)}


def condensed_cg(n: int, order: int) -> float:
    """Seconds of the local matrices of statically condensed CG, King's table 7."""
    settings = {"backend": "cg_gpu", "cg_condense": True, "degree": order, "pmat": "none"}
    problem = fe.Problem(fe.Mesh.box((n, n)), PHYSICS, quadrature_degree=2 * order + 4, **settings)
    return Pipeline(problem).local_matrices_seconds()


def paper_of(n: int, order: int) -> dict:
    """The paper's figures for a row, {} where it has none: ms of its stages, their sum, CG's local matrices, the whole
    pipeline on GPU and CPU; kB."""
    if n not in (20, 40, 80):
        return {}
    total, memory, local = (PAPER[t][order - 1] for t in ("table2_total_ms", "table3_memory_kB", TABLE_7))
    stages = PAPER["table4_6_stages_ms"][str(n)][order - 1]
    found = {"gpu": total[f"gpu{n}"], "cpu": total[f"cpu{n}"], "kB": memory[f"n{n}"], "cg": local[f"cg{n}"]}
    return found | {s: stages[s] for s in STAGES} | {"stages": sum(stages[s] for s in STAGES)}


TABLE_7 = "table7_local_matrices_hdg_cg_ms"


def line(row: dict) -> str:
    """A row as text: ms, the paper's in brackets."""
    paper = paper_of(row["n"], row["order"])
    values = [(s.replace("_", " "), row["seconds"][s], paper.get(s, "-")) for s in STAGES]
    values += [("stages", row["total_seconds"], paper.get("stages", "-"))]
    values += [("cg local matrices", row["cg_local_matrices_seconds"], paper.get("cg", "-"))]
    said = "  ".join(f"{name} {1e3 * seconds:.2f} ({beside})" for name, seconds, beside in values)
    size = sum(row["bytes"].values()) / 1e3
    return (
        f"{row['n']:3} P {row['order']}  {row['iterations']:4} its  L∞ {row['Linf']:.4e}  L2 {row['L2']:.4e}  {said}  "
        f"kB {size:.0f} ({paper.get('kB', '-')})"
    )


def compare(fast: Path, slow: Path) -> None:
    """Sums of stages of the second file over those of the first, beside the paper's speed-ups of its whole pipeline."""
    beside = {(r["n"], r["order"]): r for r in json.loads(slow.read_text())["rows"]}
    for row in json.loads(fast.read_text())["rows"]:
        other = beside.get((row["n"], row["order"]))
        if other is None:
            continue
        paper = paper_of(row["n"], row["order"])
        theirs = f"{paper['cpu'] / paper['gpu']:.1f}" if paper else "-"
        stages = "  ".join(f"{s.replace('_', ' ')} {other['seconds'][s] / row['seconds'][s]:.1f}" for s in STAGES)
        total = other["total_seconds"] / row["total_seconds"]
        print(f"{row['n']:3} P {row['order']}   speed-up {total:.1f} (paper {theirs})   {stages}")


@fe.main
def main():
    options = PETSc.Options()
    if options.hasName("compare"):
        return compare(*(Path(name) for name in options.getString("compare").split(",")))
    for name, value in DEFAULTS.items():
        if not options.hasName(name):
            options[name] = value
    meshes = [int(n) for n in options.getString("meshes", "20,40,80").split(",")]
    orders = [int(k) for k in options.getString("orders", "1,2,3,4,5,6,7,8,9").split(",")]
    rows = []
    for order in orders:
        for n in meshes:
            rows.append(measure(n, order))
            print(line(rows[-1]), flush=True)
    if file := options.getString("json", ""):
        solver = {name: options.getString(name, "") for name in ("ksp_type", "pc_type", "pc_python_type", "ksp_rtol")}
        petsc = ".".join(map(str, PETSc.Sys.getVersion()))
        Path(file).write_text(json.dumps({"petsc": petsc, "solver": solver, "rows": rows}, indent=1) + "\n")
    return None
