"""What PETSc tells of a multigrid only in the text of its viewers: the cycle, the smoothers, Chebyshev's bounds."""

from __future__ import annotations

import re

from ..petsc import c_library

NUMBER = r"([-+0-9.eE]+)"


def described(thing) -> str:
    """The text of a PETSc object's view, the same on all ranks. Collective."""
    return thing.comm.tompi4py().bcast(c_library.view_text(thing))


def cycles(text: str) -> int:
    """Visits of a level below: 1 in a V-cycle, 2 in a W-cycle."""
    return 2 if re.search(r"cycles=(\w)", text).group(1) == "w" else 1


def distinct_smoothers(text: str) -> bool:
    """True if some level smooths otherwise after the coarse correction than before."""
    ups = re.findall(r"^ *Up solver.*$", text, re.MULTILINE)
    return any("same as down solver" not in line for line in ups)


def chebyshev_bounds(text: str) -> tuple[float, float]:
    """Bounds (lower, upper) that PETSc's Chebyshev iteration uses, to the six digits it prints."""
    found = re.search(rf"eigenvalue (?:targets|estimates) used:\s*min\s*=?\s*{NUMBER},\s*max\s*=?\s*{NUMBER}", text)
    return float(found.group(1)), float(found.group(2).rstrip("."))


def richardson_scale(text: str) -> float | None:
    """Damping factor of PETSc's Richardson iteration; None where it chooses one itself."""
    found = re.search(rf"damping factor\s*=?\s*{NUMBER}", text)
    return float(found.group(1)) if found else None
