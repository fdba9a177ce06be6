"""`python benchmarks/bench solve`: whole solves to a relative residual of 1e-8, one per scheme, by their parts.

-∇·∇u = 1 in the unit box, u = 0 on its boundary, by petsc_hdg.CG and two levels (see docs/krylov.md). What PETSc or the
problem reads from the command line (-ksp_type, -pc_type, -fe_pmat, -dm_vec_type, -hdg_tau, …) holds for all schemes
asked for, and wins over the defaults here.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from functools import partial

import numpy as np
from petsc4py import PETSc

from petsc_hdg import stages
from petsc_hdg.commands.arguments import own_arguments
from petsc_hdg.commands.bench import SPLIT, poisson
from petsc_hdg.database import defaults_in_database
from petsc_hdg.device import Device
from petsc_hdg.discretizations.poly.legendre import num_basis
from petsc_hdg.discretizations.trace.element import TraceElement
from petsc_hdg.krylov.solver import DeviceSolver
from petsc_hdg.mesh import Mesh, agglomerate
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem
from petsc_hdg.reference import ReferenceElement

from .group import Group, measure, row_name, shown_by
from .record import Record, add_options
from .tiled import shaken_box

# Defaults of options, each unless the option after it is given.
SOLVER = [
    ({"ksp_type": "python", "ksp_python_type": "petsc_hdg.CG"}, "ksp_type"),
    ({"ksp_rtol": "1e-8"}, "ksp_rtol"),
    ({"ksp_norm_type": "unpreconditioned"}, "ksp_norm_type"),
    ({"ksp_max_it": "5000"}, "ksp_max_it"),
]
# scheme: cell, degree, share of the unknowns asked for, -fe_pmat (empty: the scheme's own default).
CASES = {
    "cg_gpu": ("quadrilateral", 3, 1.0, "conforming"),
    "hdg_gpu": ("triangle", 5, 1.0, "conforming"),
    "sipg_gpu": ("quadrilateral", 4, 1.0, ""),
    "poly_gpu": ("triangle", 3, 0.05, ""),
}
FACTOR = 4  # triangles of a polytope
GPU_UNKNOWNS, CPU_UNKNOWNS = 1e7, 2e4
EVENTS = ("FeJacobian", "PCSetUp")
COLUMNS = (
    *("scheme", "cell", "degree", "unknowns", "setup s", "first s", "solve s", "MDOF/s", "its"),
    *("operator", "PC", "vectors", "copies"),
)
WIDTHS = (-10, -14, 6, 10, 8, 8, 9, 8, 5, 9, 6, 8, 7)


def main(arguments: list[str]) -> int:
    """Solve, print a line a scheme; `-json FILE` writes the rows too."""
    given, others = own_arguments(_parser(), arguments)
    PETSc.Log.begin()
    device = Device.select(Options.from_petsc().device)
    record = Record.of(given, device=device.name, arguments=" ".join([f"-shaken {given.shaken:g}", *others]))
    print("  " + _line(COLUMNS), flush=True)
    left = measure((_group(scheme, given, device) for scheme in given.schemes), record, shown_by(_formatted), device)
    return record.end(left)


def _group(scheme: str, given, device) -> Group:
    """The one solve of a scheme."""
    cell, degree, share, pmat = CASES[scheme]
    cell, degree = given.cell or cell, given.degree or degree
    unknowns = given.unknowns or share * (GPU_UNKNOWNS if device.is_gpu else CPU_UNKNOWNS)
    name = row_name(f"solve {scheme}, {unknowns:g} unknowns,", cell, degree)
    call = partial(_row, scheme, cell, degree, unknowns, pmat, given.shaken)
    return Group((name,), lambda names: {name: call})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench solve", allow_abbrev=False, description=__doc__)
    parser.add_argument("-schemes", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("-unknowns", type=float, default=None, help="about (default: 1e7 on a GPU, 2e4 on a CPU)")
    parser.add_argument("-cell", default=None, choices=list(SPLIT), help="instead of the scheme's default")
    parser.add_argument("-degree", type=int, default=None, help="instead of the scheme's default")
    parser.add_argument("-shaken", type=float, default=0.0, help="part of an edge by which vertices are moved")
    add_options(parser)
    return parser


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


def _row(scheme: str, cell: str, degree: int, unknowns: float, pmat: str, shaken: float) -> dict:
    """A solve of one scheme."""
    with ExitStack() as stack:
        for defaults, unless in [*SOLVER, *([({"fe_pmat": pmat}, "fe_pmat")] if pmat else [])]:
            stack.enter_context(defaults_in_database("", defaults, unless=unless))
        options = Options.from_petsc(backend=scheme, degree=degree)
        before, start = dict(stages.SECONDS), time.perf_counter()
        mesh = _mesh(scheme, cell, faces_for(scheme, cell, degree, unknowns), shaken)
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
        "shaken": shaken,
        "setup_seconds": {"mesh": meshed, **setup},
        **solve.row(),
    }


class Solve:
    """A timed solve of a linear problem, and what its parts take when they run alone.

    The first solve condenses or assembles and sets the preconditioner up, and compiles what no one has before. The
    second has the same matrix and preconditioner, and nothing to do but iterate.
    """

    def __init__(self, problem, repeats: int = 3):
        self.problem, self.ksp = problem, problem.snes.getKSP()
        before = self._events()
        self.first = self._timed(problem.solve)
        self.parts = {name: value - before[name] for name, value in self._events().items()}
        self.b, self.x = problem.create_vec(), problem.create_vec()
        problem.callbacks.residual(None, self.x, self.b)
        copied = problem.arrays.total()
        self.seconds = [self._timed(lambda: self.ksp.solve(self.b, self.x))]
        self.copied = np.subtract(problem.arrays.total(), copied).tolist()
        self.seconds += [self._timed(lambda: self.ksp.solve(self.b, self.x)) for _ in range(repeats - 1)]

    def _events(self) -> dict[str, float]:
        """Seconds so far in events of PETSc's log, in the stage of solves."""
        stage = stages.petsc_stage("solve")
        return {name: PETSc.Log.Event(name).getPerfInfo(stage)["time"] if stage else 0.0 for name in EVENTS}

    def row(self) -> dict:
        """Seconds and their shares.

        first_seconds: a solve with all that comes before it: linearize (the Jacobian's state, condensation, assembly)
        and pc_setup. seconds_median: the second solve. Of these, operator: iterations times a product timed alone;
        preconditioner: the same of an application; copies: the right-hand side to the device and the solution back,
        where the method works there; vectors: the rest.
        """
        product, application = self._alone()
        solve, iterations, pc = float(np.median(self.seconds)), self.ksp.getIterationNumber(), self.ksp.getPC()
        operator, preconditioner, copies = iterations * product, iterations * application, self._copies()
        return {
            "ksp_type": self.ksp.getPythonType() if self.ksp.getType() == "python" else self.ksp.getType(),
            "pc_type": pc.getPythonType() if pc.getType() == "python" else pc.getType(),
            "pmat": self.problem.pmat,
            "rtol": self.ksp.getTolerances()[0],
            "true_residual": self._residual(),
            "iterations": iterations,
            "first_seconds": self.first,
            "seconds_median": solve,
            "dof_per_s": self.problem.num_unknowns / solve,
            "seconds": {
                "linearize": self.parts["FeJacobian"],
                "pc_setup": self.parts["PCSetUp"],
                "operator": operator,
                "preconditioner": preconditioner,
                "copies": copies,
                "vectors": max(0.0, solve - operator - preconditioner - copies),
            },
            "product_seconds": product,
            "bytes_to_device": self.copied[0],
            "bytes_to_host": self.copied[1],
            "device_memory_most": self.problem.device.memory.most,
        }

    @property
    def _on_device(self) -> bool:
        return self.ksp.getType() == "python" and isinstance(self.ksp.getPythonContext(), DeviceSolver)

    def _copies(self) -> float:
        """Seconds of a vector's way to the device and of another's back."""
        if not self._on_device:
            return 0.0
        vectors, scratch = self.ksp.getPythonContext().vectors, self.x.duplicate()

        def both():
            with vectors.access.read(self.b), vectors.access.write(scratch):
                pass

        return self._median(both, vectors.arrays.device)

    def _alone(self) -> tuple[float, float]:
        """Seconds of a product and of the preconditioner, each run alone: on buffers where the method works on them."""
        if self._on_device:
            context = self.ksp.getPythonContext()
            arrays = context.vectors.arrays  # those of the matrix, which may be an assembled one
            values = np.random.default_rng(3).uniform(-1, 1, max(1, self.b.getLocalSize()))
            x, y = arrays.to_device(values), arrays.zeros(len(values))
            product = self._median(lambda: context.matrix.mult(x, y), arrays.device)
            return product, self._median(lambda: context.preconditioner.apply(x, y), arrays.device)
        A, _ = self.ksp.getOperators()
        x, y = self.b, self.b.duplicate()
        return self._median(lambda: A.mult(x, y)), self._median(lambda: self.ksp.getPC().apply(x, y))

    def _timed(self, call, device=None) -> float:
        """Seconds of a call, the device's queue empty before and after."""
        device = device or self.problem.device
        device.finish()
        start = time.perf_counter()
        call()
        device.finish()
        return time.perf_counter() - start

    def _median(self, call, device=None, repeats: int = 5) -> float:
        call()
        return float(np.median([self._timed(call, device) for _ in range(repeats)]))

    def _residual(self) -> float:
        """|b - A x| / |b| of the second solve."""
        A, _ = self.ksp.getOperators()
        product = self.b.duplicate()
        A.mult(self.x, product)
        product.axpy(-1.0, self.b)
        return product.norm() / self.b.norm()


def _line(values) -> str:
    cells = (f"{v:<{-w}}" if w < 0 else f"{v:>{w}}" for v, w in zip(values, WIDTHS, strict=True))
    return " ".join(cells)


def _formatted(r: dict) -> str:
    shares = (
        f"{r['seconds'][part] / r['seconds_median']:.2f}"
        for part in ("operator", "preconditioner", "vectors", "copies")
    )
    times = (f"{sum(r['setup_seconds'].values()):.2f}", f"{r['first_seconds']:.2f}", f"{r['seconds_median']:.4f}")
    rate = f"{r['dof_per_s'] / 1e6:.2f}"
    return _line((r["scheme"], r["cell"], r["degree"], r["dofs"], *times, rate, r["iterations"], *shares))
