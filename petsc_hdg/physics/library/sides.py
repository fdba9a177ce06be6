"""Boundary fluxes of hybridizable DG for any conservation law: a given state outside, outflow, a wall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.layout import BoundaryFlux
from petsc_hdg.value_checks import shown

State: TypeAlias = str | float | Sequence[str | float]


def state_text(what: str, state: State) -> str:
    """The text that writes w[c]: the text itself, or that of a number or a list of entries. Raises PhysicsError."""
    if isinstance(state, str):
        return state if "w[" in state else f"w[0] = {state};"
    entries = state if isinstance(state, list | tuple) else [state]
    if not all(isinstance(entry, str | int | float) for entry in entries):
        raise PhysicsError(
            f"the state of {what} is {shown(state)}; give text that writes w[c], or a list of its entries"
        )
    return " ".join(f"w[{c}] = {entry};" for c, entry in enumerate(entries))


def vector_text(name: str, what: str, entries: Sequence[str | float]) -> str:
    """The text that writes name[d] from a list of as many entries as there are dimensions. Raises PhysicsError."""
    if isinstance(entries, str) or not hasattr(entries, "__len__") or len(entries) not in (2, 3):
        raise PhysicsError(f"{what} is {shown(entries)}; give a list of one number or expression per dimension")
    return " ".join(f"{name}[{d}] = {entry};" for d, entry in enumerate(entries))


def outer_state(label: str, state: State) -> BoundaryFlux:
    """The numerical flux to a cell outside that has `state`: text that writes w[c] of x, t and constants, a list of
    entries, or the expression of a scalar.

    As between cells the trace is the mean of both states. Where the stabilization is |A|, A the derivative of the
    normal flux, waves that enter have the state and those that leave do not feel it: inflow and outflow in one.
    """
    text = state_text(f"library.outer_state on {label!r}", state)
    mean = "for (PetscInt c = 0; c < Nc; ++c) b[c] = 0.5 * (u_in[c] + w[c]) - u[c];"
    return BoundaryFlux(label, f"PetscReal w[Nc];\n{text}\n{mean}")


def outflow(label: str) -> BoundaryFlux:
    """The state of the cell: for boundaries through which nothing enters."""
    return BoundaryFlux(label, "for (PetscInt c = 0; c < Nc; ++c) b[c] = u_in[c] - u[c];")


def slip_wall(label: str) -> BoundaryFlux:
    """No velocity along n, and no flux of mass, energy and momentum along the wall: a wall without friction, or a plane
    of symmetry, where neither shear nor heat cross it. For a gas and for shallow water, whose components 1 to dim are
    momentum."""
    return BoundaryFlux(
        label,
        """\
PetscReal across = 0.0;
for (PetscInt d = 0; d < dim; ++d) across += (u[1 + d] - f_hat[1 + d]) * n[d];
for (PetscInt c = 0; c < Nc; ++c) b[c] = f_hat[c];
for (PetscInt d = 0; d < dim; ++d) b[1 + d] += across * n[d];""",
    )
