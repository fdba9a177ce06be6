"""`mpiexec -n N python -m petsc_hdg.commands.check_run SETTINGS script.py [its options]`: a run that `check` compares.

SETTINGS is JSON: path (file that receives the norms of all solutions), random (seed of the partition, or null).
"""

from __future__ import annotations

import json
import runpy
import sys
from contextlib import contextmanager
from math import isfinite
from pathlib import Path

import petsc4py

from petsc_hdg.output.atomic import atomic_file
from petsc_hdg.run import guarded

ROUNDS = 6  # of improvement, at most
ENOUGH = 1e-15  # change of a solution, relative, below which it is that of rounding
# Of a TS, whose steps are solved inside of PETSc: reduction by the linear solver; by Newton, and its last step.
LINEAR, NEWTON, STEP = 1e-13, 1e-12, 1e-10


class Solutions:
    """Norms of what is solved, in the order of the script; solves within solves are not told."""

    def __init__(self):
        self.found: list[dict] = []
        self._inside = 0

    @contextmanager
    def solving(self, what: str):
        """A solve: yields a function that takes the improved solution; it is None within another solve."""
        kept = []
        self._inside += 1
        try:
            yield None if self._inside > 1 else kept.append
        finally:
            self._inside -= 1
        for u in kept:
            self.add(what, u)

    def add(self, what: str, u) -> None:
        """Keep the norms of a vector. Collective on the vector's ranks."""
        from petsc4py import PETSc

        kinds = PETSc.NormType
        norms = {"2-norm": kinds.NORM_2, "1-norm": kinds.NORM_1, "max-norm": kinds.INFINITY}
        found = {name: u.norm(kind) for name, kind in norms.items()}
        self.found.append({"what": what, "size": u.getSize(), "norms": found})

    def write(self, path: str) -> None:
        """Write them all, as rank 0 of the world knows them."""
        with atomic_file(path) as file:
            file.write(json.dumps(self.found).encode())


def refine(u, residual, ksp) -> None:
    """Take residuals away from u by a linear solver until rounding is left: u -= A⁻¹ residual(u). Collective."""
    f, d = u.duplicate(), u.duplicate()
    last = float("inf")
    for _ in range(ROUNDS):
        residual(u, f)
        ksp.solve(f, d)
        step = d.norm()
        if ksp.getConvergedReason() < 0 or not isfinite(step) or step > 0.5 * last:
            break
        u.axpy(-1.0, d)
        last = step
        if step <= ENOUGH * u.norm():
            break
    f.destroy()
    d.destroy()


def refine_snes(snes, u) -> None:
    """Newton's method goes on from a solution u to rounding, with one more Jacobian. Collective."""
    jacobian, preconditioner = snes.getJacobian()[:2]
    if snes.getConvergedReason() < 0 or not jacobian.handle or snes.getKSP().getType() is None:
        return
    snes.computeFunction(u, u.duplicate())
    snes.computeJacobian(u, jacobian, preconditioner)
    refine(u, snes.computeFunction, snes.getKSP())


def refine_ksp(ksp, b, x) -> None:
    """Iterative refinement of A x = b. Collective."""
    A = ksp.getOperators()[0]
    if ksp.getConvergedReason() < 0:
        return

    def residual(x, f):
        A.mult(x, f)
        f.axpy(-1.0, b)

    refine(x, residual, ksp)


def watch(solutions: Solutions) -> None:
    """Let Problem, SNES, TS and KSP tell of their solutions."""
    from petsc_hdg.problem import Problem
    from petsc_hdg.problem.linear import preconditioners

    plain = Problem.solve

    def solve(self, guess=None):
        with solutions.solving(f"Problem.solve ({self.options.backend})") as keep:
            u = plain(self, guess)
            if keep:
                with preconditioners.smoothing(self, self.snes):
                    refine_snes(self.snes, u)
                keep(u)
        return u

    Problem.solve = solve
    _watch_petsc(solutions)


def _watch_petsc(solutions: Solutions) -> None:
    """Put classes that tell of solves in the place of PETSc's own, by which scripts make solvers."""
    from petsc4py import PETSc

    class SNES(PETSc.SNES):
        def solve(self, b=None, x=None):
            with solutions.solving("SNES.solve") as keep:
                super().solve(b, x)
                if keep:
                    u = x if x is not None else self.getSolution()
                    if b is None:
                        refine_snes(self, u)
                    keep(u)

    class KSP(PETSc.KSP):
        def solve(self, b, x):
            with solutions.solving("KSP.solve") as keep:
                super().solve(b, x)
                if keep:
                    refine_ksp(self, b, x)
                    keep(x)

    class TS(PETSc.TS):
        def solve(self, u=None):
            with solutions.solving("TS.solve") as keep:
                if keep:
                    snes = self.getSNES()
                    snes.setTolerances(rtol=NEWTON, stol=STEP)
                    snes.getKSP().setTolerances(rtol=LINEAR)
                super().solve(u)
                if keep:
                    keep(u if u is not None else self.getSolution())

    PETSc.SNES, PETSc.KSP, PETSc.TS = SNES, KSP, TS


def deal_at_random(seed: int) -> None:
    """Let meshes deal their cells out at random where the script says nothing."""
    from petsc_hdg.mesh import Mesh

    plain = Mesh._finish.__func__

    def finish(cls, dm, comm, prefix, overlap, partition_seed):
        return plain(cls, dm, comm, prefix, overlap, seed if partition_seed is None else partition_seed)

    Mesh._finish = classmethod(finish)


def main(arguments: list[str]) -> int:
    """Run the script as itself, then write what it solved. Collective."""
    settings, script, options = json.loads(arguments[0]), arguments[1], arguments[2:]
    sys.argv = [script, *options]
    petsc4py.init(sys.argv)
    from petsc4py import PETSc

    solutions = Solutions()
    watch(solutions)
    if settings["random"] is not None:
        deal_at_random(settings["random"])
    sys.path[0] = str(Path(script).resolve().parent)
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise
    if PETSc.COMM_WORLD.rank == 0:
        solutions.write(settings["path"])
    return 0


if __name__ == "__main__":
    sys.exit(guarded(lambda: main(sys.argv[1:])))
