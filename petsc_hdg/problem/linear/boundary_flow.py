"""Natural conditions where convection crosses a boundary: some leave the solution to the errors of the discretization.

With b = ∂f0/∂∇u - ∂f1/∂u, a perturbation grows as exp(b·n s / κ) towards an outflow, and is carried unchanged from an
inflow. There it changes the balance of the natural condition, f1·n + f0_bd, by g = ∂f0_bd/∂u + ∂f0/∂∇u·n (outflow) or
∂f0_bd/∂u + ∂f1/∂u·n (inflow) times its size. Where g is small beside |b·n| an error of the condition is magnified by
|b·n| / g, at most by exp(|b·n| L / κ), L the extent of the mesh along n. In time what an outflow does not let out stays
there, in a layer of thickness κ / |b·n|: after T the error is magnified by |b·n|² T / (κ m) at most, m = ∂f0/∂u_t.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ...discretizations.symmetry import random_inputs
from ...errors import warn_user
from ...mesh.order import samples
from . import cell_measures

MOST = 64  # facets of each rank that are looked at
SEEDS = 4  # states at which fluxes through them are
LARGE = 1e3  # magnification of errors from which on a condition is told


def warn(problem, duration: float = 0.0) -> None:
    """Warn on rank 0, once, of a natural condition of a physics that magnifies errors, in time within a duration.
    Collective.

    Of nonlinear physics the state is zero; facets with a boundary flux are left out.
    """
    physics = problem.physics
    is_other = physics.uses_time_derivative != (duration > 0)
    if is_other or "boundary flow" in problem.told or problem.missing_auxiliary:
        return
    problem.told.add("boundary flow")
    _warn_of_closed(problem)
    with np.errstate(all="ignore"):
        found = max(_magnifications(problem, duration), default=(0.0, "", False))
    factor, label, leaves = max(problem.comm.allgather(found))
    if factor < LARGE or problem.comm.rank:
        return
    what, remedy = (
        ("the whole flux where the flow leaves", "add b·n u to f0 of a Robin condition, so that it gives κ ∂u/∂n alone")
        if leaves
        else ("no value where the flow enters", "give a Dirichlet condition, or a Robin condition with |b·n| (u - g)")
    )
    warn_user(
        f"the natural condition on '{label}' of physics '{physics.name}' gives {what}: it magnifies errors up to "
        f"{min(factor, 1e16):.0e} times, so that the solution may be wrong; {remedy}, or leave out the part of b that "
        "crosses it"
    )


def _warn_of_closed(problem) -> None:
    """Warn on rank 0 of a system of conservation laws whose flux meets facets without a condition, through which
    nothing goes, not even pressure. Collective."""
    mesh, physics = problem.mesh, problem.physics
    if not physics.is_conservation_law or physics.num_components == 1:
        return
    free, crossed = mesh.exterior.copy(), False
    for condition in (*physics.dirichlet, *physics.natural):
        free &= ~mesh.facet_mask(condition.label)
    with np.errstate(all="ignore"):
        for _, cell, x, normal in _facets(mesh, free):
            a, a_x, t, *_, constants = cell_measures.sampled_inputs(problem, cell, x)
            for seed in range(SEEDS):
                u, zero, flat = random_inputs(physics, mesh.dim, seed, positive=True)[0]
                flux = physics.interpreter(mesh.dim).pw_residual(u, zero, 0 * flat, a, a_x, t, x, constants)[1] @ normal
                crossed = crossed or bool((np.abs(flux) > 0).any())
    if any(mesh.comm.allgather(crossed)) and mesh.comm.rank == 0:
        warn_user(
            f"physics '{physics.name}' has no condition on a part of the boundary, where its whole flux is zero: "
            "nothing crosses it, nor is there a pressure; give a BoundaryFlux or a Dirichlet condition (one on "
            "'boundary' at the end of the list is for the rest)"
        )


def _facets(mesh, wanted: np.ndarray):
    """Yield some facets of a mask [facet] on cells of this rank: number, cell, centre, and normal out of the cell."""
    topology, dim = mesh.topology, mesh.dim
    cells = topology.facet_cells[:, 0]
    facets = np.flatnonzero(wanted & (cells >= 0) & (cells < mesh.num_cells))
    for facet in facets[samples(len(facets), MOST)]:
        cell = cells[facet]
        part = mesh.parts[mesh.part_of(cell)]
        nodes = part.geometry.nodes[part.geometry.cell_nodes[cell - part.first]]
        local = np.flatnonzero(part.topology.entity[dim - 1][cell - part.first] == facet)[0]
        corners = nodes[part.shape.entities[dim - 1][local]]
        x = corners.mean(axis=0)
        normal = np.linalg.svd(corners - x)[2][-1]
        normal *= np.sign(normal @ (x - nodes.mean(axis=0)))
        yield facet, cell, x, normal


def _magnifications(problem, duration: float):
    """Yield the magnification of some of this rank's exterior facets, a label there, and whether the flow leaves."""
    mesh, physics, dim = problem.mesh, problem.physics, problem.mesh.dim
    essential = [(condition, mesh.facet_mask(condition.label)) for condition in physics.dirichlet]
    natural = [(number, c, mesh.facet_mask(c.label)) for number, c in enumerate(physics.natural) if c.side is None]
    extent = mesh.corners[1] - mesh.corners[0]
    flat, zero = np.zeros((physics.num_components, dim)), np.zeros(physics.num_components)
    for facet, cell, x, normal in _facets(mesh, mesh.exterior):
        a, a_x, t, _, _, constants = cell_measures.sampled_inputs(problem, cell, x)
        blocks = partial(physics.interpreter(dim).g_blocks, zero, zero, flat, a, a_x, t)
        g0, g1, g2, g3 = blocks(0.0, x, constants)
        length = np.abs(normal) @ extent
        here = [(number, condition) for number, condition, mask in natural if mask[facet]]
        if any(condition.kind == "BoundaryFlux" for _, condition in here):
            continue
        for c in range(physics.num_components):
            if any(mask[facet] and c - e.field.offset in e.components for e, mask in essential):
                continue
            flow, kappa = (g1[c, c] - g2[c, c]) @ normal, normal @ g3[c, c] @ normal
            given, unit = 0.0, np.eye(physics.num_components)[c]
            for number, _ in here:
                rates = unit, zero, flat
                f0, _ = physics.interpreter(dim).pw_boundary_jacobian(
                    number, zero, zero, flat, *rates, a, a_x, t, 0.0, x, normal, constants
                )
                given += f0[c]
            held = given + (g1 if flow > 0 else g2)[c, c] @ normal
            if kappa >= 0 and np.isfinite([flow, held, kappa]).all() and flow != 0:
                share = max(held / abs(flow), np.exp(-abs(flow) * length / kappa) if kappa else 0.0, 1e-300)
                if duration > 0:
                    mass = (blocks(1.0, x, constants)[0] - g0)[c, c]
                    share = max(share, kappa * mass / (flow**2 * duration)) if flow > 0 else 1.0
                yield float(1 / share), here[0][1].label if here else "the rest of the boundary", bool(flow > 0)
