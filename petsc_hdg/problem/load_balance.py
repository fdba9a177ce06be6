"""Balance of a problem's work over the ranks."""

from __future__ import annotations

from ..mesh.partition.rebalance import balance

LOPSIDED = 1.2  # from which on rebalancing pays


def numbers(problem) -> dict:
    """Largest cost over the mean; fewest and most cells and unknowns of a rank; part of cells that touch other ranks.
    Collective."""
    comm, mesh = problem.comm, problem.mesh
    found = comm.allgather((mesh.num_cells, problem.discretization.dofmap.num_owned, mesh.num_inner))
    cells, unknowns, inner = zip(*found, strict=True)
    return {
        "cost": balance(comm, problem.cell_costs),
        "cells": [min(cells), max(cells)],
        "unknowns": [min(unknowns), max(unknowns)],
        "outer_cells": 1 - sum(inner) / max(sum(cells), 1),
    }


def _advice(problem) -> str:
    if problem.mesh.polytopes is not None:
        return " (give `cost` to fe.agglomerate)"
    return " (fe.rebalance(mesh, problem.cell_costs) evens it out)"


def lines(problem) -> list[str]:
    """The numbers in a line for `-fe_view`, where there are several ranks. Collective."""
    if problem.comm.size == 1:
        return []
    found = numbers(problem)
    (few, most), (fewest, largest) = found["cells"], found["unknowns"]
    advice = _advice(problem) if found["cost"] > LOPSIDED else ""
    return [
        f"  partition: {few} to {most} cells and {fewest} to {largest} unknowns per rank, largest cost over mean "
        f"{found['cost']:.3f}{advice}; {100 * found['outer_cells']:.0f} % of the cells touch other ranks"
    ]
