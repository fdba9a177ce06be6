"""A perfect gas in conserved variables u = (ρ, ρ v, E): states, characteristics, boundary fluxes of hybridizable DG.

p = (γ - 1) (E - ρ |v|²/2), c² = γ p/ρ. A state without positive density and pressure gives NaN, which shortens the
step that led there. Sources: R. J. LeVeque, Finite Volume Methods for Hyperbolic Problems, sections 14 and 18.8;
boundary fluxes as in J. Peraire, N. C. Nguyen, B. Cockburn, AIAA 2010-363.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.layout import BoundaryFlux
from petsc_hdg.physics.library import sides
from petsc_hdg.value_checks import shown, whole_number

STATES = """\
static inline PetscReal gas_positive(PetscReal value) { return value > 0.0 ? value : PetscSqrtReal(-1.0); }

static inline PetscReal gas_pressure(PetscInt dim, PetscReal gamma, const PetscReal u[])
{
  PetscReal square = 0.0;
  for (PetscInt d = 0; d < dim; ++d) square += u[1 + d] * u[1 + d];
  return gas_positive((gamma - 1.0) * (u[dim + 1] - 0.5 * square / gas_positive(u[0])));
}

static inline PetscReal gas_sound(PetscInt dim, PetscReal gamma, const PetscReal u[])
{
  return PetscSqrtReal(gamma * gas_pressure(dim, gamma, u) / u[0]);
}

static inline PetscReal gas_normal_velocity(PetscInt dim, const PetscReal u[], const PetscReal n[])
{
  PetscReal along = 0.0;
  for (PetscInt d = 0; d < dim; ++d) along += u[1 + d] * n[d];
  return along / u[0];
}

/* out += f(A) delta, A the derivative of the normal flux at u: f(s) = |s| for part 0, s > 0 for 1, -s > 0 for -1, where
   |s| is rounded near 0: the root of s^2 + (0.05 c)^2. */
static inline PetscReal gas_speed(PetscInt part, PetscReal s, PetscReal c)
{
  const PetscReal size = PetscSqrtReal(s * s + 0.0025 * c * c);
  return part == 0 ? size : 0.5 * (size + part * s);
}

static inline void gas_waves(PetscInt dim, PetscReal gamma, PetscInt part, const PetscReal u[], const PetscReal n[],
                             const PetscReal delta[], PetscReal out[])
{
  const PetscReal rho = u[0], p = gas_pressure(dim, gamma, u), c = PetscSqrtReal(gamma * p / rho);
  const PetscReal along = gas_normal_velocity(dim, u, n), enthalpy = (u[dim + 1] + p) / rho;
  PetscReal square = 0.0, work = 0.0, normal = 0.0;
  for (PetscInt d = 0; d < dim; ++d) {
    square += u[1 + d] * u[1 + d] / (rho * rho);
    work += u[1 + d] * delta[1 + d] / rho;
    normal += n[d] * delta[1 + d];
  }
  const PetscReal dp = (gamma - 1.0) * (0.5 * square * delta[0] - work + delta[dim + 1]);
  const PetscReal dv = normal - along * delta[0];
  const PetscReal slow = gas_speed(part, along - c, c) * (dp - c * dv) / (2.0 * c * c);
  const PetscReal fast = gas_speed(part, along + c, c) * (dp + c * dv) / (2.0 * c * c);
  const PetscReal speed = gas_speed(part, along, c), entropy = speed * (delta[0] - dp / (c * c));
  out[0] += slow + fast + entropy;
  out[dim + 1] += (slow + fast) * enthalpy + (fast - slow) * c * along + 0.5 * entropy * square;
  for (PetscInt d = 0; d < dim; ++d) {
    const PetscReal v = u[1 + d] / rho, shear = speed * (delta[1 + d] - v * delta[0] - dv * n[d]);
    out[1 + d] += (slow + fast + entropy) * v + (fast - slow) * c * n[d] + shear;
    out[dim + 1] += v * shear;
  }
}
"""

POSITIVE = {
    "density": lambda u, constants: u[0],
    "pressure": lambda u, constants: (constants["gamma"] - 1) * (u[-1] - 0.5 * (u[1:-1] ** 2).sum(axis=0) / u[0]),
}
ABOVE = {"gamma": 1.0, "mach": 0.0, "reynolds": 0.0, "prandtl": 0.0}  # of constants

_FLUXES = {
    "lax_friedrichs": """\
const PetscReal largest = fabs(gas_normal_velocity(dim, u, n)) + gas_sound(dim, gamma, u);
for (PetscInt c = 0; c < dim + 2; ++c) tau[c] = largest;""",
    "hll": """\
const PetscReal sound = gas_sound(dim, gamma, u);
const PetscReal out = fmax(gas_normal_velocity(dim, u, n) + sound, 0.05 * sound);
for (PetscInt c = 0; c < dim + 2; ++c) tau[c] = out;""",
    "roe": """\
for (PetscInt k = 0; k < dim + 2; ++k) {
  PetscReal delta[dim + 2], column[dim + 2];
  for (PetscInt c = 0; c < dim + 2; ++c) {
    delta[c] = c == k ? 1.0 : 0.0;
    column[c] = 0.0;
  }
  gas_waves(dim, gamma, 0, u, n, delta, column);
  for (PetscInt c = 0; c < dim + 2; ++c) S[c * (dim + 2) + k] = column[c];
}""",
}


def require_dimension(name: str, dim: int) -> None:
    """Raise PhysicsError unless the dimension is 2 or 3."""
    whole_number(f"The dimension of physics '{name}'", dim, 2, 3, PhysicsError)


def stabilization(name: str, flux: str, extra: str = "") -> str:
    """The text of a stabilization by its name. Raises PhysicsError for an unknown one."""
    if flux not in _FLUXES:
        raise PhysicsError(f"physics '{name}': flux is {flux!r}; give {', '.join(_FLUXES)}")
    return _FLUXES[flux] + extra


_SPEED, _SOUND = "gas_normal_velocity(dim, u, n)", "gas_sound(dim, gamma, u)"
RATE = "for (PetscInt c = 0; c < dim + 2; ++c) f0[c] = u_t[c];"  # f0 in time, without sources


def _positive(what: str, value: str | float) -> str | float:
    """A number above 0, or an expression. Raises PhysicsError."""
    if not isinstance(value, str) and not (isinstance(value, Real) and 0 < value < float("inf")):
        raise PhysicsError(f"{what} is {shown(value)}; give a number above 0, or an expression of x, t and constants")
    return value


slip_wall = sides.slip_wall


def far_field(label: str, state: sides.State) -> BoundaryFlux:
    """Waves that enter have `state`, text that writes w[c] of x, t and constants or a list of its entries; those that
    leave, the cell's. Speeds are those of the mean of both states, so that b is linear in the trace."""
    state = sides.state_text(f"gas.far_field on {label!r}", state)
    return BoundaryFlux(
        label,
        f"""\
PetscReal w[dim + 2], inner[dim + 2], outer[dim + 2], mean[dim + 2];
{state}
for (PetscInt c = 0; c < dim + 2; ++c) {{
  inner[c] = u_in[c] - u[c];
  outer[c] = w[c] - u[c];
  mean[c] = 0.5 * (u_in[c] + w[c]);
  b[c] = 0.0;
}}
gas_waves(dim, gamma, 1, mean, n, inner, b);
gas_waves(dim, gamma, -1, mean, n, outer, b);""",
    )


def no_slip_wall(label: str, energy: str | float | None = None) -> BoundaryFlux:
    """No velocity, and no heat flux (None) or a specific internal energy e = p / ((γ - 1) ρ): an expression of x, t and
    constants."""
    if energy is not None:
        energy = _positive(f"the energy of gas.no_slip_wall on {label!r}", energy)
    heat = "f_hat[dim + 1]" if energy is None else f"u[0] * ({energy}) - u[dim + 1]"
    return BoundaryFlux(
        label,
        f"""\
b[0] = u_in[0] - u[0];
for (PetscInt d = 0; d < dim; ++d) b[1 + d] = -u[1 + d];
b[dim + 1] = {heat};""",
        diffusive="a gas without viscosity slips along walls; give gas.slip_wall or compressible_navier_stokes",
    )


def inflow(label: str, density: str | float, velocity: Sequence[str | float]) -> BoundaryFlux:
    """A given density and velocity [dim], expressions of x, t and constants, with the pressure of the cell: subsonic
    inflow."""
    density = _positive(f"the density of gas.inflow on {label!r}", density)
    entries = sides.vector_text("velocity", f"the velocity of gas.inflow on {label!r}", velocity)
    return BoundaryFlux(
        label,
        f"""\
PetscReal w[dim + 2], velocity[dim], square = 0.0;
{entries}
w[0] = {density};
for (PetscInt d = 0; d < dim; ++d) {{
  w[1 + d] = w[0] * velocity[d];
  square += w[1 + d] * w[1 + d];
}}
w[dim + 1] = gas_pressure(dim, gamma, u_in) / (gamma - 1.0) + 0.5 * square / w[0];
for (PetscInt c = 0; c < dim + 2; ++c) b[c] = w[c] - u[c];""",
        (f"-{_SPEED} < {_SOUND}", "all waves enter where it is faster than sound: give a Dirichlet condition"),
    )


def pressure_outflow(label: str, pressure: str | float) -> BoundaryFlux:
    """A given pressure, an expression of x, t and constants, behind which density and velocity are the cell's: subsonic
    outflow."""
    pressure = _positive(f"the pressure of gas.pressure_outflow on {label!r}", pressure)
    return BoundaryFlux(
        label,
        f"""\
PetscReal square = 0.0;
for (PetscInt d = 0; d < dim; ++d) square += u_in[1 + d] * u_in[1 + d];
for (PetscInt c = 0; c <= dim; ++c) b[c] = u_in[c] - u[c];
b[dim + 1] = ({pressure}) / (gamma - 1.0) + 0.5 * square / gas_positive(u_in[0]) - u[dim + 1];""",
        (f"{_SPEED} < {_SOUND}", "nothing can be given where the flow leaves faster than sound: give gas.outflow"),
    )


def outflow(label: str) -> BoundaryFlux:
    """The state of the cell: supersonic outflow."""
    advice = "waves enter where it is slower: give gas.pressure_outflow or gas.far_field"
    return replace(sides.outflow(label), suits=(f"{_SPEED} > {_SOUND}", advice))
