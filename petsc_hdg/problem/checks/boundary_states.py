"""Check that solutions of conservation laws suit the conditions on their boundaries."""

from __future__ import annotations

from petsc4py import PETSc

from ...errors import warn_user

MOST = 0.5  # part of a boundary that need not suit its condition, such as that of a boundary layer


def check(problem, u: PETSc.Vec, t: float = 0.0) -> None:
    """Warn, on rank 0, of a boundary flux that a solution does not suit, see BoundaryFlux. Collective."""
    for condition in problem.physics.boundary_fluxes:
        if condition.suits is None:
            continue
        expected, advice = condition.suits
        text = f"obj[0] = 1; obj[1] = {expected} ? 0 : 1;"
        area, unsuited = problem.integral(text, u, t, over=condition.label)
        if unsuited > MOST * area and problem.comm.rank == 0:
            warn_user(
                f"the solution does not suit the condition on '{condition.label}' of physics '{problem.physics.name}', "
                f"which expects {expected}, on {100 * unsuited / area:.0f} % of it, so that it may be wrong; {advice}"
            )
