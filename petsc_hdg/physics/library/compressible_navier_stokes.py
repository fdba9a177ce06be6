"""The Navier-Stokes equations of a perfect gas without dimensions: those of Euler with viscous stress and heat flux.

Density, speed and temperature of the free stream are 1, the pressure 1 / (γ M²). With T = γ M² p/ρ, e = p/((γ - 1) ρ):
    σ = μ/Re (∇v + ∇vᵀ - 2/3 ∇·v I),    heat flux = -γ μ/(Re Pr) ∇e,    μ = 1 or T^{3/2} (1 + S)/(T + S) (Sutherland).
"""

from __future__ import annotations

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.library import gas
from petsc_hdg.physics.library.euler import FLUX
from petsc_hdg.physics.pointwise import Physics

SUTHERLAND = 110.4 / 288.15  # S of air, over the temperature of the free stream at sea level
_VISCOSITIES = {
    "constant": "return 1.0;",
    "sutherland": "return temperature * PetscSqrtReal(temperature) * (1.0 + sutherland) / (temperature + sutherland);",
}
_VISCOUS = """
const PetscReal rho = u[0], mu = gas_viscosity(gamma * mach * mach * p / rho, sutherland) / reynolds;
PetscReal v_x[dim * dim], e_x[dim], spread = 0.0;
for (PetscInt d = 0; d < dim; ++d) e_x[d] = (u_x[(dim + 1) * dim + d] - u[dim + 1] / rho * u_x[d]) / rho;
for (PetscInt c = 0; c < dim; ++c)
  for (PetscInt d = 0; d < dim; ++d) {
    v_x[c * dim + d] = (u_x[(1 + c) * dim + d] - u[1 + c] / rho * u_x[d]) / rho;
    e_x[d] -= u[1 + c] / rho * v_x[c * dim + d];
    if (c == d) spread += v_x[c * dim + d];
  }
for (PetscInt d = 0; d < dim; ++d) {
  f1[(dim + 1) * dim + d] += gamma * mu / prandtl * e_x[d];
  for (PetscInt c = 0; c < dim; ++c) {
    const PetscReal sigma = mu * (v_x[c * dim + d] + v_x[d * dim + c] - (c == d ? 2.0 / 3.0 * spread : 0.0));
    f1[(1 + c) * dim + d] += sigma;
    f1[(dim + 1) * dim + d] += sigma * u[1 + c] / rho;
  }
}"""
# S gains what ties the diffused components to their trace: the largest normal diffusivity, over a length of 1.
_DIFFUSION = """
for (PetscInt c = 1; c < dim + 2; ++c) {place} += gamma / (fmin(prandtl, 0.75) * reynolds * u[0]);"""


def compressible_navier_stokes(
    dim: int,
    f0: object = None,
    *,
    gamma: float = 1.4,
    mach: float = 0.2,
    reynolds: float = 100.0,
    prandtl: float = 0.72,
    viscosity: str = "constant",
    flux: str = "lax_friedrichs",
    **others,
) -> Physics:
    """Field u = (ρ, ρ v, E) of dim + 2 components; f0 as in `euler`.

    gamma, mach, reynolds, prandtl  constants of the physics, above 0, γ above 1
    viscosity                       constant, sutherland (its constant is `sutherland`)
    flux                            as in `euler`
    """
    numbers = {"gamma": gamma, "mach": mach, "reynolds": reynolds, "prandtl": prandtl}
    gas.require_numbers("compressible_navier_stokes", dim, **numbers)
    if viscosity not in _VISCOSITIES:
        raise PhysicsError(
            f"physics 'compressible_navier_stokes': viscosity is {viscosity!r}; give {', '.join(_VISCOSITIES)}"
        )
    others.setdefault("name", "compressible_navier_stokes")
    place = "S[c * (dim + 3)]" if flux == "roe" else "tau[c]"
    extra = _DIFFUSION.replace("{place}", place)
    others.setdefault("stabilization", gas.stabilization(others["name"], flux, extra))
    others["constants"] = {**numbers, "sutherland": SUTHERLAND, **dict(others.get("constants") or {})}
    head = "static inline PetscReal gas_viscosity(PetscReal temperature, PetscReal sutherland)"
    law = f"{head} {{ {_VISCOSITIES[viscosity]} }}"
    helpers = "\n".join(filter(None, (gas.STATES, law, others.pop("helpers", ""))))
    return Physics({"u": dim + 2}, f0, FLUX + _VISCOUS, helpers=helpers, **others)
