"""Files that problems write by themselves, as options ask for: each has one writer."""

from __future__ import annotations

import weakref

from ...errors import PetscHdgError, collectively
from ...petsc import lifetimes

_WRITERS: dict[str, weakref.ref] = {}  # the problem that writes a file by itself


def claim(problem, path, what: str, option: str, kind: type[PetscHdgError]) -> None:
    """Raise an error of a kind if two problems would write the file of an option by turns. Collective.

    what: the file, in words;  option: its name without prefix.
    """
    writer = _WRITERS.get(str(path))
    if writer is not None and writer() is not problem:
        lifetimes.destroy(problem.comm)  # ends a problem that was given up, which Python may hold in cycles
    with collectively(problem.comm):
        if writer is not None and writer() not in (None, problem):
            raise kind(
                f"Two problems of this run would write the {what} {path} by turns; give them prefixes, and options "
                f"-PREFIX_{option} of their own."
            )
    _WRITERS[str(path)] = weakref.ref(problem)
