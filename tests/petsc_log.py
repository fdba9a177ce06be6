"""PETSc's log: calls and flops of an event."""

from __future__ import annotations

from petsc4py import PETSc

from petsc_hdg import stages


def logged(name: str, call) -> tuple[int, float]:
    """Calls and flops that `call()` adds to an event, over all stages of the log, which has begun."""

    def now():
        event, found = PETSc.Log.Event(name), (0, 0.0)
        for stage in (None, *(stages.petsc_stage(s) for s in stages.SECONDS)):
            info = event.getPerfInfo(stage)
            found = found[0] + info["count"], found[1] + info["flops"]
        return found

    before = now()
    call()
    return tuple(b - a for a, b in zip(before, now(), strict=True))
