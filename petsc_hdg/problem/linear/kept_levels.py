"""Levels and smoothers that are kept from one linearization to the next while linear solvers converge nearly as fast.

New levels cost as much as tens of iterations on a GPU, and a linear solver in Newton's method takes a few.
"""

from __future__ import annotations

import math
import weakref
from contextlib import contextmanager

from petsc4py import PETSc

from ...database import is_given
from ...operators.callbacks import ALL, INEXACT, LEVELS, NOTHING
from ...petsc import c_library
from ...value_checks import plural
from .. import cells_in_time
from . import cell_measures, direct_solvers, methods

FAST = 0.1  # part of the residual that a step of Newton's method leaves where its next matrix is nearly the same
GROWTH, SPARE = 1.3, 1  # iterations over those that new levels would take, and beyond, up to which levels are kept
CHOSEN = ("ksp_max_it", "snes_lag_preconditioner")  # options of users who decide themselves
MARK = "petsc_hdg_kept_levels"
_REASON, _SNES_REASON = PETSc.KSP.ConvergedReason, PETSc.SNES.ConvergedReason
FAILURES = (_SNES_REASON.DIVERGED_LINE_SEARCH, _SNES_REASON.DIVERGED_LINEAR_SOLVE)
COEFFICIENTS = "petsc_hdg_coefficients"  # attribute of a SNES: the data that its matrices read in its last solve


class KeptLevels:
    """Decides at each linearization whether the levels of an earlier one serve. All calls are collective.

    Levels are kept while each Newton step reduces the residual to a part FAST or less, and the last linear solve took
    at most GROWTH times the iterations per digit that new levels take. The residual after a step is about the change of
    the matrix times the step (Deuflhard 2011). A linear solve with kept levels stops when it takes more iterations, and
    its step is used as in an inexact Newton's method. The next linearization then has new levels. After n such stops in
    a row the next n linearizations do.

    The bounds of the smoother on the finest level are estimated again when a run of SNES begins: the state may be far
    from the last one, or the step in time may have another length. Within a run, fast steps keep eigenvalues inside.

    counts: linearizations with new levels, and all linearizations, of the present solve or run in time.
    """

    def __init__(self, problem):
        self._problem = weakref.ref(problem)
        self.counts = [0, 0]
        self._borrowed: tuple | None = None  # iterations of a KSP, given and before, and failures of its SNES before
        self.forget()

    def forget(self) -> None:
        """Have the next linearization make new levels."""
        self._mark = object()  # of the KSP whose levels are known
        self._cost = math.inf  # iterations per digit by new levels
        self._serve, self._is_judged, self._failures, self._wait = False, False, 0, 0
        # Norm of the residual; whether all steps of a run were fast; whether the next run goes on where it ended.
        self._norm, self._is_fast, self._goes_on = math.inf, True, False
        self.are_kept, self._place = False, None  # in the present linearization

    def serve(self, snes: PETSc.SNES | None, place: tuple | None) -> int:
        """Return what serves the system that a SNES solves next: NOTHING, LEVELS or ALL.

        place: what a matrix in time depends on beside the state, None for steady problems.
        """
        problem = self._problem()
        if snes is None or not _may_keep(problem, snes):
            self.forget()
            return NOTHING
        ksp = cells_in_time.trace_solver(problem, snes.getKSP())
        if ksp.getAttr(MARK) is self._mark:
            if not self._is_judged:
                self._judge(ksp)
            self._is_judged = False
        else:
            self.forget()
            ksp.setAttr(MARK, self._mark)
            ksp.setConvergenceHistory(reset=True)
        self._put_back(snes, ksp)
        parts = _parts(problem, ksp.getPC())
        self.are_kept = self._leaves_little(snes) and self._serve and bool(parts)
        if self.are_kept and snes.getType() != "ksponly":  # whose solution is that of the linear solve
            self._limit(snes, ksp)
        goes_on = snes.getIterationNumber() or (place is not None and place == self._place)
        kept, self._place = NOTHING if not self.are_kept else ALL if goes_on else LEVELS, place
        _reuse(snes, parts, kept)
        self.counts = [self.counts[0] + (kept == NOTHING), self.counts[1] + 1]
        return kept

    def end(self, snes: PETSc.SNES) -> bool:
        """Take note that a SNES has ended. Return True if it failed with kept levels; the next linearization then has
        new ones."""
        problem, reason = self._problem(), snes.getConvergedReason()
        ksp = cells_in_time.trace_solver(problem, snes.getKSP())
        _reuse(snes, _parts(problem, ksp.getPC()), NOTHING)
        self._goes_on = reason == _SNES_REASON.DIVERGED_MAX_IT
        self._is_fast &= reason > 0 or self._goes_on
        if not self.are_kept or ksp.getAttr(MARK) is not self._mark:
            return False
        failed, is_stopped = reason in FAILURES, ksp.getConvergedReason() < 0
        if failed or is_stopped:
            self._is_judged = True
            self._reject()
        if is_stopped and not failed:  # nobody is to conclude from this that the matrix is indefinite
            ksp.setConvergedReason(_REASON.CONVERGED_ITS)
        return failed

    def _leaves_little(self, snes: PETSc.SNES) -> bool:
        """Return True if the last step left little of the residual, or, before the first one, all of the last run."""
        before, self._norm = self._norm, snes.getFunctionNorm()
        if snes.getIterationNumber() == 0 and not self._goes_on:
            served, self._is_fast = self._is_fast, True
            return served
        self._is_fast &= self._norm <= FAST * before
        return self._norm <= FAST * before

    def _judge(self, ksp: PETSc.KSP) -> None:
        """Look at the last linear solve."""
        norms, reason, its = ksp.getConvergenceHistory(), ksp.getConvergedReason(), ksp.getIterationNumber()
        if its < 1 or len(norms) < 2 or not reason:
            return
        digits = math.log10(norms[0] / norms[-1]) if 0 < norms[-1] < norms[0] < math.inf else 0.0
        if self.are_kept and reason > 0 and its <= GROWTH * self._cost * digits + SPARE:
            self._serve, self._failures = True, 0
        elif self.are_kept:
            self._reject()
        else:
            self._cost = its / digits if reason > 0 and digits > 0 else math.inf
            self._wait = max(0, self._wait - 1)
            self._serve = self._wait == 0 and self._cost < math.inf

    def _reject(self) -> None:
        """Have new levels in as many linearizations as kept ones have failed in a row."""
        self._failures += 1
        self._serve, self._wait = False, self._failures

    def _limit(self, snes: PETSc.SNES, ksp: PETSc.KSP) -> None:
        """Stop the linear solve where new levels would have been better, and let the SNES take its step."""
        rtol, _, _, most = ksp.getTolerances()
        enough = math.ceil(GROWTH * self._cost * -math.log10(min(rtol, methods.IN_NEWTON))) + SPARE
        if enough < most:
            self._borrowed = (enough, most), snes.getMaxKSPFailures()
            ksp.setTolerances(max_it=enough)
            ksp.setAttr(INEXACT, True)
            snes.setMaxKSPFailures(direct_solvers.EVERY_STEP)

    def _put_back(self, snes: PETSc.SNES, ksp: PETSc.KSP) -> None:
        """Give the SNES its own limits, unless somebody has given it others since."""
        ksp.setAttr(INEXACT, None)
        if self._borrowed is None:
            return
        (enough, most), failures = self._borrowed
        self._borrowed = None
        if ksp.getTolerances()[3] == enough:
            ksp.setTolerances(max_it=most)
        if snes.getMaxKSPFailures() == direct_solvers.EVERY_STEP:
            snes.setMaxKSPFailures(failures)


def view(problem) -> list[str]:
    """A line for -fe_view after a solve that has kept levels."""
    made, count = problem.callbacks.kept_levels.counts if "callbacks" in vars(problem) else (0, 0)
    return [f"  preconditioner: new levels in {made} of {plural(count, 'linearization')}"] if made < count else []


def _reuse(snes: PETSc.SNES, parts: list[tuple[PETSc.PC, int]], kept: int) -> None:
    """Have PETSc set up no PC of which enough is kept; a SNES tells its own PC after each linearization."""
    for pc, least in parts:
        pc.setReusePreconditioner(kept >= least)
        if pc == snes.getKSP().getPC():
            c_library.set_lag(snes, -1 if kept >= least else 1)
            snes.setAttr(MARK, kept >= least)


def _parts(problem, pc: PETSc.PC) -> list[tuple[PETSc.PC, int]]:
    """Return PCs that are not set up anew, and the least that is kept then: levels of ours and the smoother of the
    finest one, or multigrid of the assembled matrix unless the user chooses it; none of another PC."""
    calls, kind = problem.callbacks, pc.getType()
    if kind == "mg" and (calls.conforming is not None or calls.levels is not None):
        return [(pc, ALL), (pc.getMGSmoother(pc.getMGLevels() - 1).getPC(), LEVELS)]
    is_multigrid = kind == "gamg" or (kind == "python" and pc.getPythonType() == "petsc_hdg.AMG")
    return [(pc, LEVELS)] if is_multigrid and not is_given(problem.prefix, "pc_type") else []


def _may_keep(problem, snes: PETSc.SNES) -> bool:
    """Return True unless users decide themselves, or a run is to go on from a file with the same bits."""
    chosen = any(is_given(problem.prefix, name) for name in CHOSEN)
    lags = c_library.lag(snes) != 1 and not snes.getAttr(MARK)
    return not (chosen or lags or problem.options.checkpoint or problem.options.restart)


@contextmanager
def watched(problem):
    """Context manager around changes of data: what tells of matrices is asked anew where these read them, but not the
    symmetry of one that was symmetric as its text is for any data."""
    before = problem.operator.coefficients
    yield
    if problem.operator.coefficients != before:
        problem.samples = None
        problem.symmetric = problem.symmetric and problem.derivative == "symmetric" or None


def reset_preconditioner(ksp: PETSc.KSP, all_of_it: bool = True) -> None:
    """Forget what preconditioners keep of former matrices, such as the coarse spaces of multigrid, as a restart does;
    unless `all_of_it`, AMG, which measures whether its aggregates serve other values, keeps them. Collective."""
    pc = ksp.getPC()
    kind = pc.getType()
    context = pc.getPythonContext() if kind == PETSc.PC.Type.PYTHON else None
    if kind in (PETSc.PC.Type.GAMG, PETSc.PC.Type.ML, PETSc.PC.Type.HYPRE) or all_of_it and _is_amg(context):
        operators = ksp.getOperators()
        if _is_amg(context):
            context.forget(pc)
        pc.reset()
        ksp.setOperators(*operators)
        if kind in (PETSc.PC.Type.GAMG, PETSc.PC.Type.ML):
            pc.setMGLevels(1)  # new smoothers: old ones keep their estimates of eigenvalues
    elif kind == PETSc.PC.Type.MG:
        for level in range(pc.getMGLevels()):
            reset_preconditioner(pc.getMGSmoother(level), all_of_it)
    elif hasattr(context, "ksp"):  # such as CellElimination
        reset_preconditioner(context.ksp, all_of_it)


def _is_amg(context) -> bool:
    from ...krylov import AMG

    return isinstance(context, AMG)


def follow_data(problem, snes: PETSc.SNES) -> None:
    """Begin anew where constants or auxiliary fields that matrices read are others than in the solver's last solve;
    other loads leave the preconditioner as it is. Collective.

    Coarse spaces that suit the data before may not suit these: GAMG kept them and conjugate directions broke down, or
    the preconditioned residual became small and the residual did not.
    """
    before, now = snes.getAttr(COEFFICIENTS), problem.operator.coefficients
    if before is not None and before != now:
        if not problem.has_cell_states and cell_measures.is_large_on_traces(problem):
            problem.settle_pmat()
        reset_preconditioner(snes.getKSP(), all_of_it=False)
        problem.callbacks.kept_levels.forget()
    snes.setAttr(COEFFICIENTS, now)
