"""Requirements of hdg_gpu on a physics, and the stabilization that an option gives it."""

from __future__ import annotations

import numpy as np

from ...errors import OptionError, PhysicsError, warn_user
from ...physics.upwind import UPWIND, upwinded
from ..base import check_one_degree
from ..symmetry import SAMPLES, foreign_diffusion, random_inputs

MOST_COMPONENTS = 5
MATRIX_SAMPLES, NEGATIVE = 8, 1e-6  # part of the largest eigenvalue that is not rounding


def check_hdg(physics, dim: int) -> None:
    """Raise PhysicsError for a physics that hdg_gpu does not discretize."""
    check_one_degree(physics, "hdg_gpu")
    if physics.num_components > MOST_COMPONENTS:
        raise PhysicsError(
            f"physics '{physics.name}' has {physics.num_components} components in all its fields, and hdg_gpu takes at "
            f"most {MOST_COMPONENTS}; give -fe_backend cg_gpu"
        )
    if not physics.uses_time_derivative:
        return
    signs = _signs(physics, dim)
    for field in physics.fields:
        own = signs[field.offset : field.offset + field.components]
        for column, what in enumerate(("a negative diffusivity", "no flux and a negative term of its own")):
            if (own[:, column] < 0).any():
                raise PhysicsError(
                    f"physics '{physics.name}' has {what} in the equation of '{field.name}', and the stabilization of "
                    "hdg_gpu is positive: they make a scheme that is not stable in time; give f0, f1 and natural "
                    f"conditions of '{field.name}' with the other sign, or -fe_backend cg_gpu"
                )


def warn_of_foreign_diffusion(physics, dim: int) -> None:
    """Warn of a physics in time whose stabilization is of another component than its diffusion."""
    found = foreign_diffusion(physics, dim) if physics.uses_time_derivative else None
    if found:
        warn_user(
            f"physics '{physics.name}' diffuses {found[1]} in the equation of {found[0]}, which has no diffusion of "
            "its own, and the stabilization of hdg_gpu is of an equation's own component: solutions are an order less "
            "accurate; exchange the two equations (f0 and f1)"
        )


def has_point_flux(physics, options) -> bool:
    """Return True if the flux at facets is f1(û, q)·n at their points by `-hdg_flux`; else it is projected."""
    chosen = options.hdg_flux
    return physics.is_conservation_law if chosen == "auto" else chosen == "pointwise"


def check_flux(physics, options) -> None:
    """Raise OptionError for boundary fluxes with a flux that is projected, which has no value at a point."""
    if physics.boundary_fluxes and options.hdg_flux == "projected":
        raise OptionError(
            f"-{options.prefix}hdg_flux projected has no flux at the points of a facet, and physics '{physics.name}' "
            f"has a boundary flux on '{physics.boundary_fluxes[0].label}'; leave the option out, or give pointwise"
        )


def _signs(physics, dim: int) -> np.ndarray:
    """-1 for each component [component, 2] where ∂f1_c/∂∇u_c is negative in all directions, and where the equation
    has no flux and ∂f0_c/∂u_t_c, or ∂f0_c/∂u_c if that is zero, is negative; of samples of positive numbers and the
    physics' own constants. Else 0."""
    found = np.full((physics.num_components, 2), True)
    with np.errstate(all="ignore"):  # of samples outside a function's domain come nan, which are not negative
        for seed in range(SAMPLES // 2):
            state, (*rest, shift, x, _), _ = random_inputs(physics, dim, seed)
            blocks = [
                physics.interpreter(dim).g_blocks(*state, *rest, s, x, physics.constant_values) for s in (0, shift)
            ]
            g0, g1, g2, g3 = blocks[0]
            own, rate = np.diagonal(g0), np.diagonal(blocks[1][0] - g0)
            still = ~np.any([np.any(g, axis=tuple(range(1, g.ndim))) for g in (g1, g2, g3)], axis=0)
            backwards = (np.einsum("ccdd->cd", g3) < 0).all(axis=1)
            found &= np.stack([backwards, still & (np.where(rate == 0, own, rate) < 0)], axis=1)
    return -found.astype(int)


def stabilized(physics, options, dim: int):
    """`physics` with the stabilization that `-hdg_tau` gives, or that it asks for by name; itself where the option is
    auto.

    Raises OptionError, naming the option, for an expression that cannot be used in `dim` dimensions, and PhysicsError
    for what the physics asks for.
    """
    tau = str(options.hdg_tau).strip()
    if tau == "auto":
        made = upwinded(physics, dim) if physics.upwinds else physics
        _check_matrix(made, dim)
        return made
    try:
        made = upwinded(physics, dim) if tau == UPWIND else physics.with_stabilization(tau)
        made.check_stabilization(dim)
        _check_matrix(made, dim)
    except PhysicsError as error:
        message = str(error).removeprefix(f"physics '{physics.name}', stabilization").lstrip(":, ")
        raise OptionError(f"-{options.prefix}hdg_tau {tau}: {message}") from error
    return made


def _check_matrix(physics, dim: int) -> None:
    """Raise PhysicsError for a stabilization by a matrix with an eigenvalue below 0 at all samples of positive numbers
    that it is finite at, with the physics' own constants."""
    if physics.terms.stabilization is None:
        return
    least = []
    with np.errstate(all="ignore"):
        for seed in range(MATRIX_SAMPLES):
            (u, _, _), (a, a_x, t, _, x, _), n = random_inputs(physics, dim, seed, positive=True)
            given = a, a_x, t, x, n / np.linalg.norm(n), physics.constant_values, u
            S = np.asarray(physics.interpreter(dim).pw_stabilization(*given))
            if S.ndim == 2 and np.isfinite(S).all():
                values = np.linalg.eigvals(S)
                least.append(values.real.min() / (np.abs(values).max() or 1.0))
    if least and max(least) < -NEGATIVE:
        raise PhysicsError(
            f"physics '{physics.name}', stabilization: the matrix S has negative eigenvalues, so that f̂ grows with the "
            "jump u - û; give one whose eigenvalues are above 0, such as |A| of a flux with the derivative A"
        )
