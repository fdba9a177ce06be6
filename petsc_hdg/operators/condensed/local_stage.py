"""The local stage of a condensed scheme: batches of cells condensed or solved on the device, tile by tile."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from petsc4py import PETSc

from ... import stages
from ...device import Kernel, kernels_of
from ...discretizations.base import PAD, padded
from ...discretizations.condensed.launch_shapes import WITH_MATRICES
from ...value_checks import plural
from ..vectors import Sums
from .local_classes import LocalClasses, most_classes

SHARE = 0.5  # of the free memory that one tile may take
SINGULAR = {"double": 1e-13, "single": 1e-6}  # least over largest pivot below which a local problem is singular
CPU_BYTES = 1 << 28  # memory of a tile on a CPU, whose caches larger ones leave anyway


class LocalStage:
    """Kernels `condense` and `condense_solve` of an operator, and the tiles they work on.

    status [cell]: what the last kernel said of each cell, on the device.
    """

    def __init__(self, operator):
        self.op = operator
        self.disc = operator.discretization
        self.arrays = operator.arrays
        self.stabilization = self.arrays.to_device(self.disc.stabilization, "stabilization")  # all ranks must ask
        count = max(1, self.disc.stride)
        self.residual = self.arrays.zeros(self.disc.num_trace_dofs * count)
        self.solution = self.arrays.zeros(max(1, self.disc.num_eliminated * count))
        self.status = self.arrays.zeros(count)
        self._schur = self._classes = None
        self._scratch: dict[bool, object] = {}  # buffers of kernels without and with matrices
        self.holds_inverse = False  # whether scratch memory has A^-1 of all cells at the last linearization
        self._failed = 0.0  # local problems of the last `solve`

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`condense`, and `condense_residual` for states in time, or `condense_solve` of nonlinear local problems."""
        names = ["condense"] + ([] if self.op.is_linear else ["condense_solve"])
        if self.disc.in_time:
            names = ["condense", "condense_residual"]
        return kernels_of({name: self.disc.condense_spec(name) for name in names}, self.op.device)

    @property
    def classes(self) -> LocalClasses | None:
        """The solvers of cells that share them, where it pays; else None. Linear physics only."""
        shapes = self.op.shapes if self.op.is_linear else None
        if shapes is None or not 0 < shapes.count <= most_classes(self.disc):
            return None
        if self._classes is None or self._classes.shapes is not shapes:
            before, self._classes = self._classes, LocalClasses(self, shapes)
            if before is not None:
                self._classes.kernels = before.kernels
        return self._classes

    # Memory ----------------------------------------------------------------------------------------------

    @property
    def schur_reals(self) -> int:
        """Reals of K of one cell."""
        return self.disc.num_trace_dofs**2

    @property
    def recovery_reals(self) -> int:
        """Reals of U of one cell."""
        return self.disc.num_trace_dofs * self.disc.num_eliminated

    @cached_property
    def tile_cells(self) -> int:
        """Cells condensed at once: what the user gives, else all, if free memory holds their matrices; fewer on a CPU
        that does not keep them."""
        cells = max(1, self.disc.mesh.num_cells)
        if self.disc.options.hdg_tile_cells:
            return min(cells, self.disc.options.hdg_tile_cells)
        scratch = max(self.disc.shape_of(k.spec.name).scratch_entries for k in self.kernels.values())
        device, parts = self.op.device, [self.arrays.real.itemsize * reals for reals in (self.schur_reals, scratch)]
        most = SHARE * device.memory.free
        if not device.is_gpu and not (self.disc.keeps_inverse and cells * sum(parts) <= most):
            most = min(most, CPU_BYTES)
        most = min(most / sum(parts), device.largest_buffer / max(parts))
        return min(cells, max(PAD, int(most) // PAD * PAD))  # buffers have whole groups of PAD cells

    def tiles(self):
        """(first, count) of each tile."""
        cells = self.disc.mesh.num_cells
        return [(first, min(self.tile_cells, cells - first)) for first in range(0, cells, self.tile_cells)]

    def _tiles_as_ghosts_come(self, trace, whole: bool = False):
        """The tiles; cells that have unknowns of other ranks come once these have arrived. Collective if they have not.

        whole: no tile is cut in two.
        """
        mesh = self.disc.mesh
        inner = mesh.num_facet_inner if self.disc.has_jumps else mesh.num_inner
        for first, count in self.tiles():
            if trace.under_way and not whole and first < inner < first + count:
                yield first, inner - first
                first, count = inner, first + count - inner
            if first + count > inner:
                trace.end()
            yield first, count
        trace.end()

    def release(self) -> None:
        """Give back the memory of a tile's matrices."""
        self._schur = None

    # Launches --------------------------------------------------------------------------------------------

    def launch(self, kernel: Kernel, cells: tuple[int, int], trace, interior, t: float, tau=None, **others) -> None:
        """Launch a kernel over cells, the first and how many.

        tau: buffer of a stabilization that followed another state.   others: arguments beside those that all have.
        """
        op, (first, count) = self.op, cells
        tau = tau or (op.stabilization and op.stabilization.buffer)
        kernel.launch(count, {
            "num_cells": count, "first": first, "stride": self.disc.stride, "n_owned": op.dofmap.num_owned,
            "t": float(t), "stabilization": self.stabilization, "facet_tau": tau,
            "constants_": op._constants, "dofs": op._dofs, "nodes": op._nodes, "cell_nodes": op._cell_nodes,
            "conditions": op._conditions, "aux": op._aux, "tables": self.arrays.tables_of(kernel.spec),
            "trace_owned": trace.owned, "trace_tail": trace.tail, "interior": interior, **others,
        })  # fmt: skip

    def _stabilize(self, trace, interior, t: float) -> None:
        """Find a stabilization that follows the state, if it is not known. Collective."""
        if self.op.stabilization is not None:
            self.op.stabilization.ensure(trace, interior, t)

    def scratch_for(self, name: str):
        """Scratch memory of a kernel for a tile, or None; what was there is lost if the kernel has matrices."""
        has_matrices = name in WITH_MATRICES
        entries = self.disc.shape_of(name).scratch_entries * padded(self.tile_cells)
        self.holds_inverse &= not has_matrices
        buffer = self._scratch.get(has_matrices)
        if entries and (buffer is None or buffer.size < entries * self.arrays.real.itemsize):
            buffer = self._scratch[has_matrices] = self.arrays.empty(entries)
        return buffer if entries else None

    def keep_inverse(self) -> None:
        """Note that the last condensation was that of a linearization, until another one."""
        one_tile = self.tile_cells >= self.disc.mesh.num_cells
        self.holds_inverse = self.disc.keeps_inverse and one_tile and not self.classes

    def condense(self, trace, interior, t: float, take=None, recovery=None) -> None:
        """Condense all cells at (trace, interior): `residual`, `solution`, and take(K, first, count, batch) by tiles.

        recovery: buffer for U of all cells in one tile, or None. `condensation_failure` tells how it went.
        """
        self._stabilize(trace, interior, t)
        with stages.event("Condense", self.flops(t)):
            self._condense(trace, interior, t, take, recovery)

    def flops(self, t: float) -> int:
        """Flops of a condensation at time t without the physics: of all cells, or of each shape whose solver is not
        there and a product a cell."""
        disc, classes = self.disc, self.classes
        if not classes:
            return disc.mesh.num_cells * disc.flops_per_cell
        product = 2 * disc.num_eliminated * (disc.num_eliminated + disc.num_trace_dofs)
        found = 0 if classes.are_found(t) else classes.shapes.count
        return found * disc.flops_per_cell + disc.mesh.num_cells * product

    def _condense(self, trace, interior, t: float, take, recovery) -> None:
        classes = self.classes
        if classes:
            trace.end()
            classes.condense(trace, interior, t, self.residual, self.solution)
            if take is None or self.op.stores.take_shapes(classes):
                return
        for first, count in self._tiles_as_ghosts_come(trace, whole=recovery is not None):
            batch = padded(min(self.tile_cells, self.disc.mesh.num_cells))
            if take is not None and self._schur is None:
                self._schur = self.arrays.empty(self.schur_reals * batch)
            schur = None if take is None else self._schur
            if classes:
                classes.spread(first, count, batch, schur)
                take(schur, first, count, batch)
                continue
            self.launch(
                self.kernels["condense"], (first, count), trace, interior, t, batch=batch,
                scratch=self.scratch_for("condense"), schur=schur, recovery=recovery, residual=self.residual,
                solution=self.solution, status=self.status,
            )  # fmt: skip
            if take is not None:
                take(schur, first, count, batch)

    def solve(self, trace, interior, t: float) -> None:
        """Solve the local problems at `trace` from `interior` on, in place; `residual` is that of the trace."""
        self._stabilize(trace, interior, t)
        with stages.event("LocalNewton"):
            self._solve(trace, interior, t)
            steps, self._failed = self._verdict(-0.5)
            PETSc.Log.logFlops(self.newton_flops * steps)

    @property
    def newton_flops(self) -> int:
        """Flops of a step of Newton's method in one cell, without the physics: sum over points, eliminate."""
        disc = self.disc
        rows = disc.num_eliminated, disc.num_functions * disc.components  # in Newton's method, in a condensation
        solved, condensed = (sum(2 * n * (n + 1 - k) for k in range(disc.num_eliminated)) for n in rows)
        return disc.flops_per_cell - condensed + solved

    def _solve(self, trace, interior, t: float) -> None:
        options, name = self.disc.options, "condense_solve"
        for cells in self._tiles_as_ghosts_come(trace):
            self.launch(
                self.kernels[name], cells, trace, interior, t, most_steps=options.hdg_local_max_it,
                tolerance=options.hdg_local_rtol, scratch=self.scratch_for(name), residual=self.residual,
                status=self.status,
            )  # fmt: skip

    def sum(self, trace, interior, t: float, kernel: Kernel | None = None) -> None:
        """Element vectors at (trace, interior), nothing eliminated: `residual` of the trace, `inner` [dof, stride].

        kernel: in the place of `condense_residual`, with its arguments."""
        name, outputs = "condense_residual", {"residual": self.residual, "inner": self.inner, "status": self.status}
        self._stabilize(trace, interior, t)
        with stages.event("CellResidual"):
            for cells in self.tiles():
                scratch = self.scratch_for(name)
                self.launch(kernel or self.kernels[name], cells, trace, interior, t, scratch=scratch, **outputs)

    @cached_property
    def inner(self):
        """Residuals [dof, stride] that the interior's functions test."""
        return self.arrays.zeros(max(1, self.disc.num_eliminated * max(1, self.disc.stride)))

    # Verdicts --------------------------------------------------------------------------------------------

    @cached_property
    def sums(self) -> Sums:
        """`condense_status` and `condense_apart`."""
        return Sums(self.arrays, "condense_status.cl")

    def _verdict(self, limit: float) -> tuple[float, float]:
        """The sum of positive statuses, and how many are not above a limit."""
        cells = self.disc.mesh.num_cells
        total, bad = self.sums.of("condense_status", cells, limit, self.status)[0, :2] if cells else (0.0, 0.0)
        return float(total), float(bad)

    def _statuses(self) -> np.ndarray:
        return self.arrays.to_host(self.status, self.disc.mesh.num_cells, name="status")

    def condensation_failure(self, trace, interior) -> str:
        """Failure of the worst cell after `condense` at (trace, interior) in words, or ""."""
        limit, classes = SINGULAR[self.arrays.precision], self.classes
        if not classes and not self._verdict(limit)[1]:
            return ""
        status = classes.status[classes.shapes.shape] if classes else self._statuses()
        bad = ~(status > limit)
        if not bad.any():
            return ""
        cell = int(np.argmin(np.where(np.isnan(status), -np.inf, status)))
        if status[cell] < 0:
            return self.outside(bad, trace, interior) or self._stabilization_failure(cell)
        if np.isnan(status[cell]):
            return self.outside(bad, trace, interior) or (
                f"the local problem of cell {self._where(cell)} is not finite (nor are {bad.sum() - 1} more): f0, f1 "
                "or the stabilization has no number there; another guess, a smaller step or other constants may help"
            )
        return (
            f"the local problem of cell {self._where(cell)} is singular (and {bad.sum() - 1} more are): "
            "the physics and the trace do not determine the solution inside it; add diffusion or reaction"
        )

    def solve_failure(self, trace, interior) -> str:
        """Failure of the worst cell after `solve` in words, or ""."""
        if not self._failed:
            return ""
        status = self._statuses()
        bad = status < 0
        cell = int(np.argmax(status == -1)) if (status == -1).any() else int(np.argmax(bad))
        if status[cell] == -1:
            return self.outside(bad, trace, interior) or self._stabilization_failure(cell)
        return self.outside(bad, trace, interior) or (
            f"Newton's method for the local problem of cell {self._where(cell)} failed within "
            f"{plural(self.disc.options.hdg_local_max_it, 'step')} (as in {plural(bad.sum() - 1, 'other cell')} of "
            "this rank); a better first guess, smaller load steps or a larger -hdg_tau may help, unless f0, f1 or the "
            "stabilization has no number there"
        )

    def _stabilization_failure(self, cell: int) -> str:
        return (
            f"the stabilization tau is not positive and finite on a facet of cell {self._where(cell)}; "
            "give -hdg_tau a number or an expression that is positive everywhere"
        )

    def outside(self, bad: np.ndarray, trace, interior) -> str:
        """The least quantity of `Physics.positive` in the cells `bad` [cell], if it is not above 0, in words."""
        disc, dofmap, to_host, found = self.disc, self.disc.dofmap, self.arrays.to_host, []
        if not bad.any():
            return ""
        parts = (trace.owned, dofmap.num_owned), (trace.tail, dofmap.num_tail)
        values = np.concatenate([to_host(buffer, count, name="failure") for buffer, count in parts])
        inner = to_host(interior, (disc.num_eliminated, disc.stride), name="failure")[:, : len(bad)].T
        u = np.hstack([inner, values[dofmap.cell_numbers]])[bad].reshape(-1, disc.num_functions, disc.components)
        constants = dict(zip(disc.physics.constant_names, self.op.constants, strict=False))
        for name, quantity in disc.physics.positive.items():
            with np.errstate(all="ignore"):
                numbers = np.nan_to_num(quantity(np.moveaxis(u, 2, 0), constants), nan=np.inf)
            found.append((numbers.min(), name, *divmod(int(numbers.argmin()), disc.num_functions)))
        value, name, cell, function = min(found, default=(1.0, "", 0, 0))
        if value > 0:
            return ""
        cell, place, function = int(np.flatnonzero(bad)[cell]), "in", function - disc.num_interior
        if function >= 0 and disc.has_jumps:
            facet, (cells, facets, natural) = function * disc.num_facets_of_cell // disc.num_trace, disc.natural_facets
            labels = [disc.physics.natural[k].label for k in natural[(cells == cell) & (facets == facet)]]
            essential = dofmap.cell_numbers[cell, function * disc.components] + dofmap.num_constrained - len(values)
            labels += [disc.physics.dirichlet[disc.essential_points()[0][essential]].label] if essential >= 0 else []
            place = f"on boundary '{labels[-1]}' of" if labels else "on a facet of"
        return (
            f"the {name} is {value:.3g} {place} cell {self._where(cell)}, where f0 and f1 have no values: change the "
            "data or the guess there, or begin with a smaller load"
        )

    def _where(self, cell: int) -> str:
        """A cell in words: its number, rank and centre."""
        geometry, comm = self.disc.mesh.geometry, self.disc.mesh.comm
        centre = geometry.nodes[geometry.cell_nodes[cell]].mean(axis=0)
        return f"{cell} of rank {comm.rank} near ({', '.join(f'{v:.4g}' for v in centre)})"
