"""Stages of a condensed solve, each timed on its own (King et al. 2014, tables 3 to 6)."""

from __future__ import annotations

import time

import numpy as np

from petsc_hdg.discretizations.base import padded

LONG = 2.0  # seconds that a run must take for one to be enough
STAGES = ("local_matrices", "assembly", "trace_solve", "local_solve")


class Pipeline:
    """The stages of a linear Problem on the device, and the memory they take.

    problem: of a condensed scheme with linear physics and a stored trace format, on one rank.
    """

    def __init__(self, problem):
        self.problem, self.op = problem, problem.operator
        self.device, self.arrays = problem.device, problem.arrays
        self.zero = self.arrays.zeros(max(1, self.op.dofmap.num_owned))
        problem.snes  # noqa: B018  made, and kernels checked, before anything is timed
        self.op.linearize(self.zero)
        self._trace = self.op.trace(self.zero, 0.0, self.op.essential)

    def seconds(self, repeats: int = 3) -> dict[str, float]:
        """Median seconds of each stage, the device's queue empty before and after; of one run if that takes seconds.

        local_matrices  K and U of all cells on the device (steps B1 and B2 of the paper)
        assembly        of K into the trace format, facet by facet (B3)
        trace_solve     PETSc's solve from zero, with the set-up of the preconditioner (B4)
        local_solve     the interior from the trace (B5 and B6)
        """
        rows = [self._once()]
        if sum(rows[0].values()) < LONG:
            rows = [self._once() for _ in range(repeats)]
        self.op.local.release()
        return {name: float(np.median([row[name] for row in rows])) for name in STAGES}

    def local_matrices_seconds(self, repeats: int = 3) -> float:
        """Median seconds of the first stage alone."""
        first, _ = self._condense()
        found = [first] if first > LONG else [self._condense()[0] for _ in range(repeats)]
        self.op.local.release()
        return float(np.median(found))

    def _once(self) -> dict[str, float]:
        matrices, assembly = self._condense()
        solution = []
        solve = self._timed(lambda: solution.append(self.problem.solve()))
        with self.problem.access.read(solution[0]) as x:
            local = self._timed(lambda: self.op.local_state(x))
        return dict(zip(STAGES, (matrices, assembly, solve, local), strict=True))

    def _condense(self) -> tuple[float, float]:
        """Seconds of the local matrices and of their assembly."""
        op, assembly = self.op, []

        def assemble(*tile):
            assembly.append(self._timed(lambda: op.format and op.format.add_tile(*tile)))

        self.arrays.fill(op.interior, 0)
        both = self._timed(lambda: op.local.condense(self._trace, op.interior, 0.0, assemble, op.kept.matrices))
        return both - sum(assembly), sum(assembly)

    def _timed(self, call) -> float:
        self.device.finish()
        start = time.perf_counter()
        call()
        self.device.finish()
        return time.perf_counter() - start

    @property
    def memory(self) -> dict[str, int]:
        """Bytes on the device: the trace matrix, U of all cells, K and scratch memory of a tile."""
        op, local, disc = self.op, self.op.local, self.op.discretization
        tile = padded(min(local.tile_cells, disc.mesh.num_cells))
        scratch = disc.shape_of("condense").scratch_entries
        return {
            "trace_matrix": op.format.nbytes if op.format else 0,
            "recovery": self.arrays.real.itemsize * local.recovery_reals * op.discretization.stride
            if op.kept.is_kept
            else 0,
            "tile": self.arrays.real.itemsize * tile * (local.schur_reals + scratch),
        }
