"""The Euler equations of a perfect gas, u_t + ∇·F(u) = s with u = (ρ, ρ v, E), F = (ρ v, ρ v⊗v + p I, (E + p) v)."""

from __future__ import annotations

from petsc_hdg.physics.library import artificial_viscosity as artificial
from petsc_hdg.physics.library import gas
from petsc_hdg.physics.pointwise import Physics

FLUX = """\
const PetscReal p = gas_pressure(dim, gamma, u);
for (PetscInt d = 0; d < dim; ++d) {
  const PetscReal v = u[1 + d] / u[0];
  f1[d] = -u[1 + d];
  for (PetscInt c = 0; c < dim; ++c) f1[(1 + c) * dim + d] = -u[1 + c] * v - (c == d ? p : 0.0);
  f1[(dim + 1) * dim + d] = -(u[dim + 1] + p) * v;
}"""


def euler(
    dim: int,
    f0: object = None,
    *,
    gamma: float = 1.4,
    flux: str = "lax_friedrichs",
    artificial_viscosity: bool = False,
    **others,
) -> Physics:
    """Field u of dim + 2 components; f0 = -s, or u_t - s in time (`gas.RATE` without s). Boundary fluxes are in `gas`.

    gamma                 ratio of specific heats, above 1; a constant of the physics
    flux                  numerical flux of `hdg_gpu`: lax_friedrichs, roe (rounded at 0), hll
    artificial_viscosity  True: f1 gains ε ∇u, ε the auxiliary field "artificial_viscosity" that fe.ShockSensor sets
    """
    gas.require_numbers("euler", dim, gamma=gamma)
    others.setdefault("name", "euler")
    stabilization = gas.stabilization(others["name"], flux)
    f1, stabilization = artificial.added(artificial_viscosity, "dim + 2", FLUX, stabilization, others)
    others.setdefault("stabilization", stabilization)
    others["constants"] = {"gamma": gamma, **dict(others.get("constants") or {})}
    helpers = "\n".join(filter(None, (gas.STATES, others.pop("helpers", ""))))
    return Physics({"u": dim + 2}, f0, f1, helpers=helpers, **others)
