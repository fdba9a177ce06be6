"""Checkpoints as a problem offers them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from petsc4py import PETSc

from ... import value_checks
from ...discretizations.canonical import CanonicalUnknowns
from ...errors import collectively
from ...value_checks import FilePath
from ..input_data import require_vec, time_of
from ..newton.joint_newton import Interiors
from . import checkpoint as checkpoint_file
from . import checkpoint_schedule, newton_checkpoints


class Checkpoints:
    """State of a problem's checkpoints.

    unknowns  in the order that is the same for every partition; collective at first use
    interiors of cells where a condensed problem keeps them, or None; collective at first use
    identity  what checkpoints say of the problem, see checkpoint.identity; None before the first one
    restarted whether the state of -fe_restart has been taken;  kind: what wrote it, where somebody has looked
    monitor   of the SNES of `solve`, where it writes checkpoints
    loads     steps of a load that are done, within `load_steps`
    interrupted  details of the Newton iterate that the next solve goes on from
    """

    def __init__(self, problem: Any):
        self._problem: Callable[[], Any] = weakref.ref(problem)  # which keeps this
        self.identity: Any = None
        self.monitor: Any = None
        self.loads: int | None = None
        self.interrupted: dict | None = None
        self.restarted, self.kind = False, ""

    @cached_property
    def unknowns(self) -> CanonicalUnknowns:
        return CanonicalUnknowns(self._problem().discretization)

    @cached_property
    def interiors(self) -> Interiors | None:
        problem = self._problem()
        return Interiors(problem) if Interiors.are_kept(problem) else None


class Restartable:
    """A problem whose state is written to files and read from them."""

    comm: Any

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """State of its checkpoints."""
        return Checkpoints(self)

    def checkpoint(self, path: FilePath, u: PETSc.Vec, t: float | None = None, step: int = 0, **numbers: float) -> None:
        """Write u, with the constants and numbers of the user's own, to an HDF5 file, whole or not at all. Collective.

        t: that of u by default. Raises CheckpointError or OptionError on all ranks; what was there before is kept then.
        """
        t = time_of(u, t)
        with collectively(self.comm):
            path = value_checks.path("The checkpoint", path)
            value_checks.number("The time t", t)
            value_checks.whole_number("The number of steps", step, 0, 2**63 - 1)
            for name, value in numbers.items():
                value_checks.number(f"The number '{name}'", value)
        require_vec(self, u)
        checkpoint_file.write(self, path, u, "state", t, step, numbers)

    def restart(
        self, path: FilePath = "", ts: PETSc.TS | None = None, u: PETSc.Vec | None = None
    ) -> checkpoint_file.Restart | None:
        """The state of a checkpoint, by default of `-fe_restart`; None without one. Collective.

        u   receives the state, which is also in what is returned
        ts  receives time, step, number of steps and the history of BDF; it is ready to solve, and takes u

        The checkpoint is of this mesh, physics and scheme, written on any number of ranks. Constants become those of
        the checkpoint. Raises CheckpointError on all ranks.
        """
        return checkpoint_schedule.restart(self, path, ts, u)

    def load_steps(self, values: Iterable, u: PETSc.Vec) -> Iterator:
        """The values of a load or a parameter in turn, for a loop whose body leaves each one's solution in u.

            for p in problem.load_steps((2.0, 3.0, 4.0), u):
                problem.set_constants(p=p)
                problem.solve(u).copy(u)

        `-fe_checkpoint` writes u after each interval of values, and within a solve after each of Newton's steps;
        `-fe_restart` leaves out the values that are done and puts the state after them into u. Collective.
        """
        return newton_checkpoints.load_steps(self, values, u)
