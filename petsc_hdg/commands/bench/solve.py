"""`petsc-hdg bench solve`: whole solves to a relative residual of 1e-8, one a scheme, and where their time goes.

-∇·∇u = 1 in the unit box, u = 0 on its boundary. What PETSc or the problem reads from the command line
(-ksp_type, -pc_type, -dm_vec_type, -hdg_tau, …) holds for all schemes asked for, and wins over the defaults here.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
from petsc4py import PETSc

from ... import stages
from ...device import Device
from ...discretizations.legendre import num_basis
from ...discretizations.trace_element import TraceElement
from ...errors import SolveError
from ...mesh import Mesh, agglomerate
from ...options import Options, defaults_in_database
from ...physics import Dirichlet, Physics
from ...problem import Problem
from ...reference import ReferenceElement
from .tiled import shaken_box

TOLERANCE = {"ksp_rtol": "1e-8", "ksp_norm_type": "unpreconditioned"}
# scheme: cell, degree, share of the unknowns asked for, options (without them the scheme's own defaults).
CASES = {
    "cg_gpu": ("quadrilateral", 3, 1.0, {"fe_pmat": "none", "ksp_type": "cg", "pc_type": "jacobi"}),
    "hdg_gpu": ("triangle", 5, 1.0, {"fe_pmat": "none"}),
    "sipg_gpu": ("quadrilateral", 4, 1.0, {}),
    "poly_gpu": ("triangle", 3, 0.05, {}),
}
FACTOR = 4  # triangles of a polytope
GPU_UNKNOWNS, CPU_UNKNOWNS = 1e7, 2e4
SPLIT = {"triangle": 2, "quadrilateral": 1, "tetrahedron": 6, "hexahedron": 1}  # cells of a box
EVENTS = ("FeJacobian", "PCSetUp", "KSPSolve")
COLUMNS = ("scheme", "cell", "degree", "unknowns", "setup s", "solve s", "MDOF/s", "its", "operator", "PC", "vectors")
WIDTHS = (-10, -14, 6, 10, 8, 8, 8, 6, 9, 6, 8)


def main(arguments: list[str]) -> int:
    """Solve, print a line a scheme; with `-json FILE` write the rows too."""
    given = _parser().parse_known_args(arguments)[0]
    PETSc.Log.begin()
    rows = []
    print("  " + _line(COLUMNS), flush=True)
    for scheme in given.schemes:
        rows.append(_row(scheme, given))
        print("  " + _formatted(rows[-1]), flush=True)
        if given.json:
            Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")
        gc.collect()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="petsc-hdg bench solve", allow_abbrev=False, description=__doc__)
    parser.add_argument("-schemes", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("-unknowns", type=float, default=None, help="about (default: 1e7 on a GPU, 2e4 on a CPU)")
    parser.add_argument("-cell", default=None, choices=list(SPLIT), help="instead of the scheme's default")
    parser.add_argument("-degree", type=int, default=None, help="instead of the scheme's default")
    parser.add_argument("-shaken", type=float, default=0.0, help="part of an edge by which vertices are moved")
    parser.add_argument("-json", default="", help="file that receives the rows")
    return parser


def poisson() -> Physics:
    """-∇·∇u = 1, u = 0 on the boundary."""
    f1 = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    return Physics({"u": 1}, "f0[0] = -1;", f1, boundary=[Dirichlet("boundary", "g[0] = 0;")], name="poisson")


def unknowns_of_cell(scheme: str, cell: str, degree: int) -> float:
    """Unknowns over cells of a large box."""
    dim = 2 if cell in ("triangle", "quadrilateral") else 3
    if scheme == "cg_gpu":
        return degree**dim / SPLIT[cell]
    if scheme == "hdg_gpu":
        facets = {"triangle": 3, "quadrilateral": 4, "tetrahedron": 4, "hexahedron": 6}[cell]
        return facets / 2 * TraceElement(cell, degree).num_facet_basis
    if scheme == "poly_gpu":
        return num_basis(dim, degree, "total") / FACTOR
    return ReferenceElement(cell, degree).num_basis


def faces_for(scheme: str, cell: str, degree: int, unknowns: float) -> tuple[int, ...]:
    """Boxes along each axis for about so many unknowns."""
    dim = 2 if cell in ("triangle", "quadrilateral") else 3
    boxes = unknowns / unknowns_of_cell(scheme, cell, degree) / SPLIT[cell]
    return (max(2, round(boxes ** (1 / dim))),) * dim


def _mesh(scheme: str, cell: str, faces, shaken: float):
    if shaken:
        mesh = shaken_box(cell, faces, shaken)
    else:
        mesh = Mesh.box(faces, simplex=cell in ("triangle", "tetrahedron"))
    return agglomerate(mesh, max(1, mesh.num_cells // FACTOR)) if scheme == "poly_gpu" else mesh


def _row(scheme: str, given) -> dict:
    """Solve once with few iterations, so that everything is compiled and in place, and then to the end."""
    cell, degree, share, defaults = CASES[scheme]
    cell, degree = given.cell or cell, given.degree or degree
    with ExitStack() as stack:
        for name, value in {**TOLERANCE, **defaults}.items():
            stack.enter_context(defaults_in_database("", {name: value}, unless=name))
        options = Options.from_petsc(backend=scheme, degree=degree)
        unknowns = given.unknowns or share * (GPU_UNKNOWNS if Device.select(options.device).is_gpu else CPU_UNKNOWNS)
        before, start = dict(stages.SECONDS), time.perf_counter()
        mesh = _mesh(scheme, cell, faces_for(scheme, cell, degree, unknowns), given.shaken)
        meshed = time.perf_counter() - start
        problem = Problem(mesh, poisson(), options)
        solve = Solve(problem)
    setup = {n: s - before.get(n, 0.0) for n, s in stages.SECONDS.items() if n in ("discretize", "compile")}
    return {
        "kernel": "solve",
        "scheme": scheme,
        "cell": cell,
        "degree": degree,
        "components": 1,
        "precision": options.precision,
        "device": problem.device.name,
        "vec_mode": problem.vec_mode,
        "cells": mesh.num_cells,
        "dofs": problem.num_unknowns,
        "dof_kind": {"cg_gpu": "unique", "hdg_gpu": "trace"}.get(scheme, "element"),
        "shaken": given.shaken,
        "setup_seconds": {"mesh": meshed, **setup},
        **solve.row(),
    }


class Solve:
    """A timed solve of a linear problem, and what its parts take when they run alone."""

    def __init__(self, problem):
        self.problem, self.snes = problem, problem.snes
        self.ksp = self.snes.getKSP()
        most = self.ksp.getTolerances()[3]
        self.ksp.setTolerances(max_it=2)
        with suppress(SolveError):
            problem.solve()
        self.ksp.setTolerances(max_it=most)
        problem.device.finish()
        before, copied, start = self._events(), problem.arrays.total(), time.perf_counter()
        self.u = problem.solve()
        problem.device.finish()
        self.seconds = time.perf_counter() - start
        self.copied = np.subtract(problem.arrays.total(), copied).tolist()
        self.parts = {name: value - before[name] for name, value in self._events().items()}
        self.iterations = problem.linear_iterations

    def _events(self) -> dict[str, float]:
        """Seconds so far in events of PETSc's log, in the stage of solves."""
        stage = stages.petsc_stage("solve")
        return {name: PETSc.Log.Event(name).getPerfInfo(stage)["time"] if stage else 0.0 for name in EVENTS}

    def row(self) -> dict:
        """Seconds and their shares.

        linearize: the Jacobian's state, condensation, assembly. pc_setup and krylov: PETSc's own times. Of Krylov's
        time, operator: iterations times a product timed alone; preconditioner: the same of an application;
        vectors: the rest.
        """
        product, application = self._alone()
        krylov = self.parts["KSPSolve"] or self.seconds
        operator, preconditioner = self.iterations * product, self.iterations * application
        pc, unknowns = self.ksp.getPC(), self.problem.num_unknowns
        return {
            "ksp_type": self.ksp.getType(),
            "pc_type": pc.getPythonType() if pc.getType() == "python" else pc.getType(),
            "rtol": self.ksp.getTolerances()[0],
            "true_residual": self._residual(),
            "iterations": self.iterations,
            "seconds_median": self.seconds,
            "dof_per_s": unknowns / self.seconds,
            "seconds": {
                "linearize": self.parts["FeJacobian"],
                "pc_setup": self.parts["PCSetUp"],
                "krylov": krylov,
                "operator": operator,
                "preconditioner": preconditioner,
                "vectors": max(0.0, krylov - operator - preconditioner),
            },
            "product_seconds": product,
            "bytes_to_device": self.copied[0],
            "bytes_to_host": self.copied[1],
        }

    def _alone(self) -> tuple[float, float]:
        """Seconds of a product and of the preconditioner, each run alone."""
        A, _ = self.ksp.getOperators()
        x, y = self.problem.create_vec(), self.problem.create_vec()
        x.setArray(np.random.default_rng(3).uniform(-1, 1, x.getLocalSize()))
        return self._median(lambda: A.mult(x, y)), self._median(lambda: self.ksp.getPC().apply(x, y))

    def _median(self, call, repeats: int = 5) -> float:
        call()
        found = []
        for _ in range(repeats):
            self.problem.device.finish()
            start = time.perf_counter()
            call()
            self.problem.device.finish()
            found.append(time.perf_counter() - start)
        return float(np.median(found))

    def _residual(self) -> float:
        """Norm of F at the solution over that at zero."""
        zero, out = self.problem.create_vec(), self.problem.create_vec()
        norms = []
        for u in (self.u, zero):
            self.problem.callbacks.residual(None, u, out)
            norms.append(out.norm())
        return norms[0] / norms[1]


def _line(values) -> str:
    cells = (f"{v:<{-w}}" if w < 0 else f"{v:>{w}}" for v, w in zip(values, WIDTHS, strict=True))
    return " ".join(cells)


def _formatted(r: dict) -> str:
    krylov = max(r["seconds"]["krylov"], 1e-12)
    shares = (f"{r['seconds'][part] / krylov:.2f}" for part in ("operator", "preconditioner", "vectors"))
    times = (f"{sum(r['setup_seconds'].values()):.2f}", f"{r['seconds_median']:.3f}", f"{r['dof_per_s'] / 1e6:.2f}")
    return _line((r["scheme"], r["cell"], r["degree"], r["dofs"], *times, r["iterations"], *shares))
