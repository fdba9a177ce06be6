"""Elliptic physics: diffusion, minimal surfaces, bodies, Stokes flow."""

from __future__ import annotations

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.layout import Auxiliary, Field
from petsc_hdg.physics.pointwise import Physics

_POWER_FLUX = """\
PetscReal square = epsilon * epsilon;
for (PetscInt d = 0; d < dim; ++d) square += u_x[d] * u_x[d];
const PetscReal weight = PetscPowReal(square, 0.5 * (p - 2.0));
for (PetscInt d = 0; d < dim; ++d) f1[d] = weight * u_x[d];"""
_STRESS = """\
PetscScalar trace = 0.0;
for (PetscInt c = 0; c < dim; ++c) trace += u_x[c * dim + c];
for (PetscInt c = 0; c < dim; ++c) {
  for (PetscInt d = 0; d < dim; ++d) f1[c * dim + d] = mu * (u_x[c * dim + d] + u_x[d * dim + c]);
  f1[c * dim + c] += lame_lambda * trace;
}"""
_STRESS_BESIDE_PRESSURE = """\
for (PetscInt c = 0; c < dim; ++c) {
  for (PetscInt d = 0; d < dim; ++d) f1[c * dim + d] = mu * (u_x[c * dim + d] + u_x[d * dim + c]);
  f1[c * dim + c] -= u[uOff[1]];
}"""
_COMPRESSION = """\
f0[0] = u[uOff[1]] / lame_lambda;
for (PetscInt d = 0; d < dim; ++d) f0[0] += u_x[d * dim + d];"""
_SURFACE_FLUX = """\
PetscReal square = 1.0;
for (PetscInt d = 0; d < dim; ++d) square += PetscSqr(u_x[d]);
for (PetscInt d = 0; d < dim; ++d) f1[d] = u_x[d] / PetscSqrtReal(square);"""
_HELPERS = """\
/* Cofactors C of a matrix F of n rows, n = 2 or 3; F⁻ᵀ = C / det F. Indices count cyclically. */
static inline void cofactors(PetscInt n, const PetscReal F[], PetscReal C[])
{
  if (n == 2) {
    C[0] = F[3];
    C[1] = -F[2];
    C[2] = -F[1];
    C[3] = F[0];
  } else {
    for (PetscInt i = 0; i < 3; ++i)
      for (PetscInt j = 0; j < 3; ++j) {
        const PetscInt p = (i + 1) % 3, q = (i + 2) % 3, r = (j + 1) % 3, s = (j + 2) % 3;
        C[i * 3 + j] = F[p * 3 + r] * F[q * 3 + s] - F[p * 3 + s] * F[q * 3 + r];
      }
  }
}"""
_NEO_HOOKEAN_STRESS = """\
PetscReal F[dim * dim], C[dim * dim], J = 0.0;
for (PetscInt i = 0; i < dim * dim; ++i) F[i] = u_x[i];
for (PetscInt c = 0; c < dim; ++c) F[c * dim + c] += 1.0;
cofactors(dim, F, C);
for (PetscInt d = 0; d < dim; ++d) J += F[d] * C[d];
const PetscReal pressure = (lame_lambda * PetscLogReal(J) - mu) / J;
for (PetscInt i = 0; i < dim * dim; ++i) f1[i] = mu * F[i] + pressure * C[i];"""
_DIVERGENCE = """\
f0[0] = 0.0;
for (PetscInt d = 0; d < dim; ++d) f0[0] += u_x[d * dim + d];"""


def poisson(f0: object = "f0[0] = -1.0;", *, kappa: float | Auxiliary = 1.0, **others) -> Physics:
    """Diffusion, -∇·(κ∇u) = f: field u with f0 = -f and f1 = κ∇u.

    kappa   a number (then it is the constant "kappa"), or an Auxiliary field of one component, called "kappa"
    others  boundary, exact, helpers, … as of Physics
    """
    others.setdefault("name", "poisson")
    if isinstance(kappa, Auxiliary):
        others["auxiliary"] = {"kappa": kappa, **dict(others.get("auxiliary") or {})}
        return Physics({"u": 1}, f0, "for (PetscInt d = 0; d < dim; ++d) f1[d] = a[0] * u_x[d];", **others)
    others["constants"] = {"kappa": kappa, **dict(others.get("constants") or {})}
    return Physics({"u": 1}, f0, "for (PetscInt d = 0; d < dim; ++d) f1[d] = kappa * u_x[d];", **others)


def p_laplacian(f0: object = "f0[0] = -1.0;", *, p: float = 3.0, epsilon: float = 1e-5, **others) -> Physics:
    """The p-Laplace equation, -∇·((ε² + |∇u|²)^((p-2)/2) ∇u) = f: field u with exponent `p` > 1, regularised by
    `epsilon` (a gradient); both are constants, for continuation."""
    others.setdefault("name", "p_laplacian")
    others["constants"] = {"p": p, "epsilon": epsilon, **dict(others.get("constants") or {})}
    return Physics({"u": 1}, f0, _POWER_FLUX, **others)


def _stiffness(others: dict, lame_lambda: float, mu: float) -> None:
    """Put Lamé's constants among the constants, from Young's modulus and Poisson's ratio where these are given."""
    young, poisson = others.pop("E", None), others.pop("nu", None)
    if (young is None) != (poisson is None) or (poisson is not None and not -1 < poisson < 0.5):
        given = f"E={young}, nu={poisson}"
        raise PhysicsError(f"A body is given {given}: give both, nu in (-1, 0.5), or lame_lambda= and mu=")
    if young is not None:
        mu = young / (2 * (1 + poisson))
        lame_lambda = 2 * mu * poisson / (1 - 2 * poisson)
    others["constants"] = {"lame_lambda": lame_lambda, "mu": mu, **dict(others.get("constants") or {})}


def elasticity(
    dim: int, f0: object = None, *, lame_lambda: float = 1.0, mu: float = 1.0, mixed: bool = False, **others
) -> Physics:
    """Linear elasticity, -∇·σ = b with σ = λ tr(ε) I + 2 μ ε and ε = (∇u + ∇uᵀ)/2: displacement u of `dim` components;
    f0 = -b writes f0[c]. In 2D this is plane strain.

    lame_lambda, mu   Lamé's constants λ and μ, in the unit of stress; constants of the physics
    E, nu             Young's modulus and Poisson's ratio, in the place of these
    mixed             a second field, pressure p = -λ ∇·u of one degree less: cg_gpu and sipg_gpu then do not lock
    """
    others.setdefault("name", "elasticity")
    _stiffness(others, lame_lambda, mu)
    if not mixed:
        return Physics({"u": dim}, f0, _STRESS, dim=dim, **others)
    fields = {"u": Field(dim), "pressure": Field(1, degree_offset=-1)}
    return Physics(fields, {"u": f0, "pressure": _COMPRESSION}, {"u": _STRESS_BESIDE_PRESSURE}, dim=dim, **others)


def minimal_surface(f0: object = None, **others) -> Physics:
    """The minimal surface equation, -∇·(∇u / √(1 + |∇u|²)) = f: height u of a surface over the plane (in any
    dimension); f0 = -f."""
    others.setdefault("name", "minimal_surface")
    return Physics({"u": 1}, f0, _SURFACE_FLUX, **others)


def neo_hookean(dim: int, f0: object = None, *, lame_lambda: float = 1.0, mu: float = 1.0, **others) -> Physics:
    """Compressible neo-Hookean hyperelasticity: -∇·P = b with P = μ (F - F⁻ᵀ) + λ ln(J) F⁻ᵀ, F = I + ∇u, J = det F.

    Displacement u of `dim` components (2: plane strain, 3); f0 = -b writes f0[c]. An inverted point (J ≤ 0) gives NaN.
    Source: J. Bonet, R. D. Wood, Nonlinear Continuum Mechanics for Finite Element Analysis, 2nd ed., section 6.4.3.

    lame_lambda, mu   λ and μ in the unit of stress; constants of the physics
    E, nu             Young's modulus and Poisson's ratio of small strains, in the place of these
    """
    others.setdefault("name", "neo_hookean")
    _stiffness(others, lame_lambda, mu)
    helpers = "\n".join(filter(None, (_HELPERS, others.pop("helpers", ""))))
    return Physics({"u": dim}, f0, _NEO_HOOKEAN_STRESS, helpers=helpers, dim=dim, **others)


def stokes(dim: int, f0: object = None, *, mu: float = 1.0, **others) -> Physics:
    """Stokes flow, -∇·(μ(∇v + ∇vᵀ) - p I) = b, ∇·v = 0, in Taylor-Hood form (the pressure one degree lower).

    Fields velocity (`dim` components) and pressure; f0 = -b of the velocity writes f0[c]. `mu` is the viscosity, a
    constant.
    """
    others.setdefault("name", "stokes")
    others["constants"] = {"mu": mu, **dict(others.get("constants") or {})}
    fields, f1 = {"velocity": Field(dim), "pressure": Field(1, degree_offset=-1)}, {"velocity": _STRESS_BESIDE_PRESSURE}
    return Physics(fields, {"velocity": f0, "pressure": _DIVERGENCE}, f1, dim=dim, **others)
