"""Algebraic multigrid on the matrices of twelve problems: iterations, and seconds of set-up, another set-up and solve.

    python benchmarks/multigrid.py [-rows 20000] [-json FILE] [-only TEXT] [-solvers amg,gamg,hypre,pyamg,saviennacl]

Conjugate gradients to 1e-8 (GMRES where convection is) for a random right-hand side, by petsc_hdg.AMG and, of PETSc's,
by GAMG (the same threshold, no aggressive coarsening), hypre and ViennaCL's, and by pyamg; what is not installed fails.
The second set-up has other values in the same pattern. On a GPU methods keep vectors there.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import petsc4py

import petsc_hdg as fe
from petsc_hdg.physics import library

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

OPTIONS = PETSc.Options()
DIFFUSION = "for (d = 0; d < dim; ++d) f1[d] = {}*u_x[d];"
WALL = [fe.Dirichlet("boundary", 0.0)]
JUMP = "(x[0] < 0.5 ? 1.0 : 1e4)"
SLANTED = "(sin(40*x[0] + 23*x[1]) < 0.3 ? 1.0 : 1e4)"
GAMG = {"pc_gamg_threshold": 0.02, "pc_gamg_aggressive_coarsening": 0, "pc_gamg_reuse_interpolation": 0}
MOST = 300  # iterations


def scalar(factor: str = "1.0", f0: str = "f0[0] = -1;") -> fe.Physics:
    return fe.Physics({"u": 1}, f0, DIFFUSION.format(factor), boundary=WALL)


def wind(speed: float) -> fe.Physics:
    return scalar(f0=f"f0[0] = {speed}*(x[1]*u_x[0] - x[0]*u_x[1]) - 1;")


def body(rows: float) -> tuple:
    fixed = fe.Dirichlet("left", [0.0, 0.0, 0.0])
    physics = library.elasticity(3, lame_lambda=0.577, mu=0.385, boundary=[fixed])
    return fe.Mesh.box((faces(rows / 3, 3),) * 3, simplex=False), physics, {}


def faces(nodes: float, dim: int) -> int:
    return max(2, round(nodes ** (1 / dim)))


def box(rows: float, dim: int, simplex: bool, extent=None) -> fe.Mesh:
    count = (faces(rows, dim),) * dim
    return fe.Mesh.box(count, simplex=simplex, **({} if extent is None else {"upper": extent}))


# name -> (mesh, physics, options) of about so many rows
CASES = {
    "triangles": lambda n: (box(n, 2, True), scalar(), {}),
    "quadrilaterals": lambda n: (box(n, 2, False), scalar(), {}),
    "tetrahedra": lambda n: (box(n, 3, True), scalar(), {}),
    "hexahedra": lambda n: (box(n, 3, False), scalar(), {}),
    "jumps of 1e4, aligned": lambda n: (box(n, 2, False), scalar(JUMP), {}),
    "jumps of 1e4, across cells": lambda n: (box(n, 2, False), scalar(SLANTED), {}),
    "cells stretched 1:100": lambda n: (box(n, 2, False, (100.0, 1.0)), scalar(), {}),
    "elasticity, hexahedra": body,
    "convection, cell Péclet 0.1": lambda n: (box(n, 2, False), wind(0.2 * n**0.5), {}),
    "convection, cell Péclet 1": lambda n: (box(n, 2, False), wind(2 * n**0.5), {}),
    "trace of hdg_gpu, degree 1": lambda n: (box(n / 6, 2, True), scalar(), {"backend": "hdg_gpu"}),
    "polytopes, degree 1": lambda n: (polytopes(n), scalar(), {"backend": "poly_gpu"}),
}


def polytopes(rows: float) -> fe.Mesh:
    mesh = box(rows * 2 / 3, 2, True)
    return fe.agglomerate(mesh, mesh.num_cells // 4)


def matrix(name: str, rows: float) -> PETSc.Mat:
    """The assembled Jacobian at zero."""
    mesh, physics, options = CASES[name](rows)
    problem = fe.Problem(mesh, physics, degree=1, pmat="aij", **options)
    calls, zero = problem.callbacks, problem.create_vec()
    calls.linearize(None, zero, calls.jacobian, calls.assembled.mat)
    mat = calls.assembled.mat.copy()
    if calls.assembled.mat.getNearNullSpace().handle:
        mat.setNearNullSpace(calls.assembled.mat.getNearNullSpace())
    mat.setAttr("petsc_hdg_arrays", problem.arrays)
    return mat


def timed(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def by_petsc(mat: PETSc.Mat, solver: str, symmetric: bool) -> dict:
    ksp = PETSc.KSP().create()
    if solver == "saviennacl":
        mat = mat.convert("aijviennacl")
    ksp.setOperators(mat)
    method = "cg" if symmetric else "gmres"
    if solver != "saviennacl" and mat.getAttr("petsc_hdg_arrays").device.is_gpu:
        ksp.setType("python")
        ksp.setPythonType(f"petsc_hdg.{'CG' if symmetric else 'FGMRES'}")
    else:
        ksp.setType(method if symmetric else "fgmres")
    ksp.setTolerances(rtol=1e-8, max_it=MOST)
    pc = ksp.getPC()
    if solver == "amg":
        pc.setType("python")
        pc.setPythonType("petsc_hdg.AMG")
    else:
        pc.setType(solver)
    for key, value in GAMG.items() if solver == "gamg" else ():
        OPTIONS[key] = value
    ksp.setFromOptions()
    x, b = mat.createVecs()
    b.setArray(np.random.default_rng(1).standard_normal(b.getSize()))
    found = {"setup": timed(ksp.setUp)}
    ksp.solve(b, x)
    mat.scale(2.0)
    ksp.setOperators(mat)
    found["again"] = timed(ksp.setUp)
    found["solve"] = timed(lambda: ksp.solve(b, x))
    mat.scale(0.5)
    residual = b.duplicate()
    mat.mult(x, residual)
    residual.scale(2.0)
    residual.axpy(-1.0, b)
    found |= {"iterations": ksp.getIterationNumber(), "residual": residual.norm() / b.norm()}
    found["solved"] = ksp.getConvergedReason() > 0
    return found


def by_pyamg(mat: PETSc.Mat, symmetric: bool) -> dict:
    import pyamg
    import scipy.sparse as sp

    starts, columns, values = mat.getValuesCSR()
    rows, size = len(starts) - 1, mat.getBlockSize()
    a = sp.csr_matrix((values, columns, starts), (rows, rows))
    modes = mat.getNearNullSpace().getVecs() if mat.getNearNullSpace().handle else []
    given = {"B": np.column_stack([v.getArray() for v in modes])} if modes else {}
    a = a.tobsr((size, size)) if size > 1 else a
    kind = {} if symmetric else {"symmetry": "nonsymmetric"}
    start = time.perf_counter()
    levels = pyamg.smoothed_aggregation_solver(a, strength=("symmetric", {"theta": 0.02}), **given, **kind)
    found, history = {"setup": time.perf_counter() - start}, []
    b = np.random.default_rng(1).standard_normal(rows)
    method = "cg" if symmetric else "fgmres"
    start = time.perf_counter()
    x = levels.solve(b, tol=1e-8, accel=method, residuals=history, maxiter=MOST)
    found["solve"] = time.perf_counter() - start
    residual = float(np.linalg.norm(a @ x - b) / np.linalg.norm(b))
    return found | {"iterations": len(history) - 1, "residual": residual, "solved": residual < 1e-6}


def main() -> None:
    rows, only, table = OPTIONS.getReal("rows", 20_000), OPTIONS.getString("only", ""), []
    solvers = OPTIONS.getString("solvers", "amg,gamg,hypre,pyamg").split(",")
    for name in (name for name in CASES if only in name):
        symmetric = "convection" not in name
        for solver in solvers:
            mat = matrix(name, rows)
            try:
                found = by_pyamg(mat, symmetric) if solver == "pyamg" else by_petsc(mat, solver, symmetric)
            except (PETSc.Error, ImportError) as error:
                found = {"failed": str(error).splitlines()[-1]}
            table.append({"matrix": name, "rows": mat.getSize()[0], "solver": solver} | found)
            numbers = {k: float(f"{v:.3g}") if isinstance(v, float) else v for k, v in found.items()}
            print(f"{name:28s} {mat.getSize()[0]:8d} {solver:10s}", numbers, flush=True)
    if OPTIONS.getString("json", ""):
        with open(OPTIONS.getString("json"), "w") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
