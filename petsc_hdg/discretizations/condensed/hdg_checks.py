"""Requirements of hdg_gpu on a physics, and the stabilization that an option gives it."""

from __future__ import annotations

import numpy as np

from ...errors import OptionError, PhysicsError
from ...physics.upwind import UPWIND, upwinded
from ..base import check_one_degree
from ..symmetry import SAMPLES, random_inputs

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
    backwards = _diffuses_backwards(physics, dim)
    for field in physics.fields:
        if backwards[field.offset : field.offset + field.components].any():
            raise PhysicsError(
                f"physics '{physics.name}' has a negative diffusivity in the equation of '{field.name}', and the "
                "stabilization of hdg_gpu is positive: they make a scheme that is not stable in time; give f0, f1 and "
                f"natural conditions of '{field.name}' with the other sign, or -fe_backend cg_gpu"
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


def _diffuses_backwards(physics, dim: int) -> np.ndarray:
    """True if ∂f1_c/∂∇u_c is negative in all directions [component], at samples of positive numbers and the physics'
    own constants."""
    found = np.full(physics.num_components, True)
    with np.errstate(all="ignore"):  # of samples outside a function's domain come nan, which are not negative
        for seed in range(SAMPLES // 2):
            state, (*rest, _), _ = random_inputs(physics, dim, seed)
            g3 = physics.interpreter(dim).g_blocks(*state, *rest, physics.constant_values)[3]
            found &= (np.einsum("ccdd->cd", g3) < 0).all(axis=1)
    return found


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
