"""Runs of PETSc's solvers: vectors' types, options that PETSc accepts, and reasons for failure in words."""

from __future__ import annotations

from contextlib import contextmanager

from petsc4py import PETSc

from ...errors import LeftSolverError, OptionError, SolveError, causes, collectively, our_error
from ...operators.callbacks import advice
from ...petsc.c_library import reason, vec_type_of
from ...value_checks import plural

PATIENCE = 5.0  # seconds that a rank which fails in a solve gives the others to fail too
ROUNDS = 5  # of a slab whose scheme follows the state


@contextmanager
def agreed(comm, solver: PETSc.Object | None = None):
    """A call of PETSc's solvers in which all ranks fail with the same error, or one ends the program. Collective.

    A rank that fails inside of PETSc leaves the others there, which it can tell only if they come out too. A `solver`
    (SNES or TS) that an error or Ctrl-C leaves within a cycle of multigrid is never destroyed, see `_within_multigrid`.
    """
    with collectively(comm, patience=PATIENCE):
        try:
            yield
        except BaseException as error:  # an interrupt too
            if solver is not None and _within_multigrid(error):
                solver.incRef()
            found = (our_error(error) or _cause(error)) if isinstance(error, PETSc.Error) else error
            if solver is not None and type(found) is SolveError:
                left = LeftSolverError(str(found))
                vars(left).update(vars(found))  # which ranks know of it
                raise left from error
            if found is not None:
                raise found from None
            raise LeftSolverError(
                f"PETSc's solvers failed ({reason(error)}); check the options -ksp_type, -pc_type and theirs"
            ) from error


def _within_multigrid(error: BaseException | None) -> bool:
    """Return True if PETSc was in a cycle of multigrid when an error came.

    PCMG borrows the vectors of its finest level for a cycle and gives them back at its end. After an error it has them
    still, and destroys them with itself although they are others', which ends the program by a signal (PETSc 3.18).
    """
    calls = list(getattr(PETSc.Error, "_traceback_", None) or [])  # of the last error, where PETSc is 3.18
    calls += [str(found) for found in causes(error) if isinstance(found, PETSc.Error)]  # PETSc 3.26 says it there
    return any("PCApply_MG" in call for call in calls)


def _cause(error: BaseException | None) -> BaseException | None:
    """Return the error of a user's callback, which PETSc 3.26 wraps; None if PETSc itself failed."""
    return next((found for found in causes(error) if not isinstance(found, PETSc.Error)), None)


def probe(dm, kind: str = "") -> PETSc.Vec:
    """A vector of one value per rank, of a type or of the type that a DM makes (`-dm_vec_type`). Collective."""
    vector = PETSc.Vec().create(dm.comm)
    vector.setSizes((1, PETSc.DECIDE))
    try:
        vector.setType(kind or vec_type_of(dm))
    except PETSc.Error as error:
        raise OptionError(
            f"this PETSc has no vectors of the type that -dm_vec_type names ({reason(error)}); leave the option out, "
            "or for viennacl use a PETSc configured with OpenCL and ViennaCL (scripts/build_petsc.sh builds one)"
        ) from None
    return vector


def set_from_options(solver) -> None:
    """Apply PETSc's options to a solver. Raises OptionError, on all ranks, for what PETSc does not accept."""
    try:
        solver.setFromOptions()
    except PETSc.Error as error:
        raise OptionError(
            f"PETSc does not accept an option of this solver ({reason(error)}); "
            f"check -{solver.getOptionsPrefix() or ''}snes_type, -ksp_type and -pc_type and their options, "
            "-help lists the known ones"
        ) from None
    _check_tolerances(solver)


def _check_tolerances(solver) -> None:
    """Raise OptionError for a relative tolerance that the first guess meets, or that nothing can."""
    snes = solver.getSNES() if isinstance(solver, PETSc.TS) else solver
    known = [("ksp_rtol", snes.getKSP())] if isinstance(snes, PETSc.SNES) else [("ksp_rtol", snes)]
    known += [("snes_rtol", snes)] if isinstance(snes, PETSc.SNES) else []
    for name, one in known:
        rtol = one.getTolerances()[0]
        if not 0 <= rtol < 1:
            raise OptionError(
                f"-{solver.getOptionsPrefix() or ''}{name} {rtol:g}: nothing would be solved; "
                "give a relative tolerance from 0 to below 1"
            )


@contextmanager
def own_tolerances(snes: PETSc.SNES):
    """A block that gets the tolerances of a SNES (rtol, atol, stol, max_it), which has them again after the block."""
    rtol, atol, stol, most = snes.getTolerances()
    try:
        yield rtol, atol, stol, most
    finally:
        snes.setTolerances(rtol=rtol, atol=atol, stol=stol, max_it=most)


@contextmanager
def one_goal(snes: PETSc.SNES):
    """A block in which a SNES may solve several times on the way to one solution: calls of what the block gets have the
    next ones aim at what the first one aimed at. Needs its history of residuals."""
    goals = []

    def aim() -> None:
        goals.extend(snes.getConvergenceHistory()[0][:1])
        if goals:
            snes.setTolerances(atol=max(atol, rtol * goals[0]))

    with own_tolerances(snes) as (rtol, atol, *_):
        yield aim


def told(tried: list[str]) -> str:
    """List what was tried, as the end of a sentence, where that is more than one thing."""
    return f"; tried: {', then '.join(tried)}" if len(tried) > 1 else ""


def check_converged(snes: PETSc.SNES, failure: str = "", explain=None, end: str = "") -> None:
    """Raise SolveError, on all ranks, if the solver stopped without a solution.

    failure: what the operator says.   explain: function that looks for the cause and says it, or "".   end: of the
    sentence. Collective.
    """
    ksp = snes.getKSP()
    if snes.getConvergedReason() > 0:
        return
    if min(ksp.getConvergedReason(), snes.getConvergedReason()) < 0 and not failure and explain is not None:
        failure = explain()
    if ksp.getConvergedReason() < 0:
        why = _name(PETSc.KSP.ConvergedReason, ksp.getConvergedReason())
        raise SolveError(
            f"the linear solver stopped without a solution: {why} after "
            f"{plural(ksp.getIterationNumber(), 'iteration')}; " + (failure or advice(ksp)) + end
        )
    if snes.getConvergedReason() < 0:
        why = _name(PETSc.SNES.ConvergedReason, snes.getConvergedReason())
        raise SolveError(
            f"{failure}{'; ' if failure else ''}the nonlinear solver stopped without a solution: {why} after "
            + plural(snes.getIterationNumber(), "step")
            + "; -snes_monitor shows its course, a better first guess or -snes_linesearch_type may help" * (not failure)
            + end
        )


def _name(reasons, value: int) -> str:
    return next(
        (name for name in dir(reasons) if getattr(reasons, name) == value and name.startswith("DIVERGED")), str(value)
    )
