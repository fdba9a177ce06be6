"""Seconds that set-up of polytopes and their coarse levels takes on the host, without kernels:
`python benchmarks/polytope_levels.py [unknowns] [degree]`.

Polytopes of four triangles of a square, by default 1e6 unknowns of degree 4. Times are of the interpreter's thread,
then of all threads (CPU).
"""

from __future__ import annotations

import sys
import time

from bench.solve import FACTOR, faces_for
from petsc4py import PETSc

from petsc_hdg.commands.bench import poisson
from petsc_hdg.discretizations import PolytopicDG
from petsc_hdg.mesh import Mesh, agglomerate
from petsc_hdg.operators.poly.levels import _coarser, injection
from petsc_hdg.options import Options


def timed(name: str, work):
    """What a call returns; prints its seconds."""
    before = time.thread_time(), time.process_time()
    found = work()
    thread, process = time.thread_time() - before[0], time.process_time() - before[1]
    print(f"{name:<24} {thread:6.2f} {process:6.2f}", flush=True)
    return found


def levels(unknowns: float, degree: int) -> None:
    faces = faces_for("poly_gpu", "triangle", degree, unknowns)
    mesh = timed("mesh", lambda: Mesh.box(faces))
    mesh = timed("agglomerates", lambda: agglomerate(mesh, mesh.num_cells // FACTOR))
    options = Options(degree=degree, backend="poly_gpu")
    finest = timed("finest level", lambda: PolytopicDG(mesh, poisson(), options))
    chain = [finest, *timed("coarser levels", lambda: _coarser(finest))]
    timed("numbering of base cells", lambda: [level.fine.dofmap for level in chain])
    timed("penalties", lambda: [level.penalty_numbers for level in chain])
    timed("columns of rows", lambda: [level.matrix_rows() for level in chain])
    pairs = zip(chain[:-1], chain[1:], strict=True)
    timed("injections", lambda: [injection(fine, coarse, PETSc.COMM_SELF) for fine, coarse in pairs])


if __name__ == "__main__":
    timed("sum", lambda: levels(float((sys.argv[1:] or ["1e6"])[0]), int((sys.argv[2:] or ["4"])[0])))
