"""Conservation laws: linear convection, Burgers' equation, shallow water, Euler's and the Navier-Stokes equations."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.layout import Auxiliary
from petsc_hdg.physics.library import gas
from petsc_hdg.physics.library.sides import vector_text
from petsc_hdg.physics.pointwise import Physics
from petsc_hdg.value_checks import shown

ARTIFICIAL = "artificial_viscosity"
_BURGERS_FLUX = "for (PetscInt d = 0; d < dim; ++d) f1[d] = viscosity * u_x[d] - 0.5 * u[0] * u[0];"
# |u w·n| rounded at 0, and ν over a length of 1
_BURGERS_STABILIZATION = """\
PetscReal along = 0.0;
for (PetscInt d = 0; d < dim; ++d) along += n[d];
tau[0] = viscosity + PetscSqrtReal(u[0] * u[0] * along * along + 0.01);"""
_CONVECTION_FLUX = """
for (PetscInt d = 0; d < dim; ++d) f1[d] = viscosity * u_x[d] - wind[d] * u[0];"""
# |v·n| rounded at 0, where it would leave the trace undetermined
_CONVECTION_STABILIZATION = """
PetscReal along = 0.0, square = 0.0;
for (PetscInt d = 0; d < dim; ++d) {
  along += wind[d] * n[d];
  square += wind[d] * wind[d];
}
tau[0] = viscosity + PetscSqrtReal(along * along + 0.0025 * square);"""
_GAS_FLUX = """\
const PetscReal p = gas_pressure(dim, gamma, u);
for (PetscInt d = 0; d < dim; ++d) {
  const PetscReal v = u[1 + d] / u[0];
  f1[d] = -u[1 + d];
  for (PetscInt c = 0; c < dim; ++c) f1[(1 + c) * dim + d] = -u[1 + c] * v - (c == d ? p : 0.0);
  f1[(dim + 1) * dim + d] = -(u[dim + 1] + p) * v;
}"""
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
_NO_CONVECTION = """\
const PetscReal p = gas_pressure(dim, gamma, u);
for (PetscInt k = 0; k < (dim + 2) * dim; ++k) f1[k] = 0.0;"""
# S gains what ties the diffused components to their trace: the largest normal diffusivity, over a length of 1.
_DIFFUSION = """
for (PetscInt c = {first}; c < dim + 2; ++c) {place} += gamma / (fmin(prandtl, 0.75) * reynolds * u[0]);"""
_HELPERS = """\
static inline PetscReal water_depth(PetscReal depth) { return depth > 0.0 ? depth : PetscSqrtReal(-1.0); }"""
_WATER_FLUX = """\
const PetscReal h = water_depth(u[0]);
for (PetscInt d = 0; d < dim; ++d) {
  f1[d] = -u[1 + d];
  for (PetscInt c = 0; c < dim; ++c)
    f1[(1 + c) * dim + d] = -u[1 + c] * u[1 + d] / h - (c == d ? 0.5 * gravity * h * h : 0.0);
}"""
_WATER_STABILIZATION = """\
PetscReal along = 0.0;
for (PetscInt d = 0; d < dim; ++d) along += u[1 + d] * n[d];
for (PetscInt c = 0; c <= dim; ++c) tau[c] = fabs(along / u[0]) + PetscSqrtReal(gravity * water_depth(u[0]));"""


def _with_viscosity(wanted: bool, components: str, f1: str, stabilization: str, others: dict) -> tuple[str, str]:
    """The texts of f1 and of the stabilization with ε ∇u, and ε over a length of 1, if `wanted`; `others`, arguments of
    Physics, get the field.

    components: their number, as text.
    """
    if not wanted:
        return f1, stabilization
    others["auxiliary"] = {ARTIFICIAL: Auxiliary(1, "cell"), **dict(others.get("auxiliary") or {})}
    place = f"S[c * ({components} + 1)]" if "S[" in stabilization else "tau[c]"
    return (
        f"{f1}\nfor (PetscInt k = 0; k < ({components}) * dim; ++k) f1[k] += {ARTIFICIAL} * u_x[k];",
        f"{stabilization}\nfor (PetscInt c = 0; c < {components}; ++c) {place} += {ARTIFICIAL};",
    )


def _not_negative(name: str, viscosity: float) -> None:
    """Raise PhysicsError unless a viscosity is 0 or a number above."""
    if not isinstance(viscosity, Real) or not viscosity >= 0:
        raise PhysicsError(f"physics '{name}': viscosity is {shown(viscosity)}; give 0 or a number above 0")


def convection(velocity: Sequence[str | float], f0: object = None, *, viscosity: float = 0.0, **others) -> Physics:
    """Linear convection, u_t + ∇·(v u) = ∇·(ν ∇u).

    Field u; f0 = -s, or u_t - s in time. velocity: v [dim], numbers or expressions of x, t and constants; viscosity:
    ν ≥ 0, a constant of the physics. Where ∇·v is not 0, this is the conservative form.
    """
    _not_negative("convection", viscosity)
    wind = f"PetscReal wind[dim];\n{vector_text('wind', 'the velocity of physics convection', velocity)}"
    others.setdefault("name", "convection")
    others.setdefault("stabilization", wind + _CONVECTION_STABILIZATION)
    others["constants"] = {"viscosity": viscosity, **dict(others.get("constants") or {})}
    return Physics({"u": 1}, f0, wind + _CONVECTION_FLUX, dim=len(velocity), **others)


def burgers(f0: object = None, *, viscosity: float = 0.0, artificial_viscosity: bool = False, **others) -> Physics:
    """Burgers' equation, u_t + ∇·(½ u² w) = ∇·(ν ∇u), with a constant direction w = (1, …, 1).

    Field u; f0 = -s, or u_t - s in time. viscosity: ν ≥ 0, a constant of the physics; artificial_viscosity as in
    `euler`.
    """
    _not_negative("burgers", viscosity)
    others.setdefault("name", "burgers")
    f1, stabilization = _with_viscosity(artificial_viscosity, "1", _BURGERS_FLUX, _BURGERS_STABILIZATION, others)
    others.setdefault("stabilization", stabilization)
    others["constants"] = {"viscosity": viscosity, **dict(others.get("constants") or {})}
    return Physics({"u": 1}, f0, f1, **others)


def euler(
    dim: int,
    f0: object = None,
    *,
    gamma: float = 1.4,
    flux: str = "lax_friedrichs",
    artificial_viscosity: bool = False,
    **others,
) -> Physics:
    """The Euler equations of a perfect gas, u_t + ∇·F(u) = s with u = (ρ, ρ v, E), F = (ρ v, ρ v⊗v + p I, (E + p) v).

    Field u of dim + 2 components; f0 = -s, or u_t - s in time (`gas.RATE` without s). Boundary fluxes are in `gas`.

    gamma                 ratio of specific heats, above 1; a constant of the physics
    flux                  numerical flux of `hdg_gpu`: lax_friedrichs, roe (rounded at 0), hll
    artificial_viscosity  True: f1 gains ε ∇u, ε the auxiliary field "artificial_viscosity" that fe.ShockSensor sets
    """
    gas.require_dimension("euler", dim)
    others.setdefault("name", "euler")
    stabilization = gas.stabilization(others["name"], flux)
    f1, stabilization = _with_viscosity(artificial_viscosity, "dim + 2", _GAS_FLUX, stabilization, others)
    others.setdefault("stabilization", stabilization)
    others["constants"] = {"gamma": gamma, **dict(others.get("constants") or {})}
    others.setdefault("positive", gas.POSITIVE)
    helpers = "\n".join(filter(None, (gas.STATES, others.pop("helpers", ""))))
    return Physics({"u": dim + 2}, f0, f1, helpers=helpers, above=gas.ABOVE, dim=dim, **others)


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
    convection: bool = True,
    artificial_viscosity: bool = False,
    **others,
) -> Physics:
    """The Navier-Stokes equations of a perfect gas without dimensions: Euler's with viscous stress and heat flux.

    Density, speed and temperature of the free stream are 1, the pressure 1 / (γ M²). With T = γ M² p/ρ and
    e = p/((γ - 1) ρ):
        σ = μ/Re (∇v + ∇vᵀ - 2/3 ∇·v I),  heat flux = -γ μ/(Re Pr) ∇e,  μ = 1 or T^{3/2} (1 + S)/(T + S) (Sutherland).

    Field u = (ρ, ρ v, E) of dim + 2 components; f0 as in `euler`.

    gamma, mach, reynolds, prandtl  constants of the physics, above 0, γ above 1
    viscosity                       constant, sutherland (its constant is `sutherland`)
    flux                            as in `euler`
    convection                      False: viscous stress and heat flux alone, beside which `euler` is an explicit part
    artificial_viscosity            as in `euler`
    """
    numbers = {"gamma": gamma, "mach": mach, "reynolds": reynolds, "prandtl": prandtl}
    gas.require_dimension("compressible_navier_stokes", dim)
    if viscosity not in _VISCOSITIES:
        raise PhysicsError(
            f"physics 'compressible_navier_stokes': viscosity is {viscosity!r}; give {', '.join(_VISCOSITIES)}"
        )
    others.setdefault("name", "compressible_navier_stokes")
    place = "S[c * (dim + 3)]" if flux == "roe" and convection else "tau[c]"
    extra = _DIFFUSION.replace("{place}", place).replace("{first}", "1" if convection else "0")
    stabilization = gas.stabilization(others["name"], flux, extra) if convection else extra.replace("+=", "=")
    f1 = (_GAS_FLUX if convection else _NO_CONVECTION) + _VISCOUS
    f1, stabilization = _with_viscosity(artificial_viscosity, "dim + 2", f1, stabilization, others)
    others.setdefault("stabilization", stabilization)
    others["constants"] = {**numbers, "sutherland": SUTHERLAND, **dict(others.get("constants") or {})}
    others.setdefault("positive", gas.POSITIVE)
    head = "static inline PetscReal gas_viscosity(PetscReal temperature, PetscReal sutherland)"
    law = f"{head} {{ {_VISCOSITIES[viscosity]} }}"
    helpers = "\n".join(filter(None, (gas.STATES, law, others.pop("helpers", ""))))
    return Physics({"u": dim + 2}, f0, f1, helpers=helpers, above=gas.ABOVE, dim=dim, **others)


def shallow_water(
    dim: int = 2, f0: object = None, *, gravity: float = 9.81, artificial_viscosity: bool = False, **others
) -> Physics:
    """Shallow water over flat ground, u_t + ∇·F = s with u = (h, h v) and F = (h v, h v⊗v + ½ g h² I).

    Field u = (h, h v) of dim + 1 components; f0 = -s, or u_t - s in time: s = (0, -g h ∇b) over ground of height b.
    gravity: g > 0, a constant; artificial_viscosity as in `euler`.
    """
    gas.require_dimension("shallow_water", dim)
    others.setdefault("name", "shallow_water")
    f1, stabilization = _with_viscosity(artificial_viscosity, "dim + 1", _WATER_FLUX, _WATER_STABILIZATION, others)
    others.setdefault("stabilization", stabilization)
    others.setdefault("positive", {"depth": lambda u, constants: u[0]})
    others["constants"] = {"gravity": gravity, **dict(others.get("constants") or {})}
    helpers = "\n".join(filter(None, (_HELPERS, others.pop("helpers", ""))))
    return Physics({"u": dim + 1}, f0, f1, helpers=helpers, above={"gravity": 0.0}, dim=dim, **others)
