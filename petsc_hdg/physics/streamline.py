"""Streamline-upwind Petrov-Galerkin (Brooks, Hughes 1982) as a physics: f1 + τ b R in the place of f1.

Of a component u of all fields, b = ∂f0/∂∇u - ∂f1/∂u is the wind, K = ∂f1/∂∇u the diffusion, and R = f0 - ∇·f1 the
residual at a point without its second derivatives K:∇∇u, which a pointwise function does not have. They are zero for
degree 1 where K is constant in affine cells. With the half length of the cell along b, s = h / (2 |b|) in time, and
1/Pe = (b·K b) p / (|b|⁴ s), is τ = s/p max(0, 1 - 1/Pe): the least diffusion that suits Pe > 1, and none below, so that
what is left out of R is gone in cells that are small enough. τ is negative where K is, as in -f0 and -f1.
"""

from __future__ import annotations

from dataclasses import replace

from petsc_hdg.physics.called import Called
from petsc_hdg.physics.layout import Auxiliary
from petsc_hdg.physics.lowering.lower import lower
from petsc_hdg.physics.lowering.signatures import F1
from petsc_hdg.physics.terms import Term
from petsc_hdg.physics.text.source import Source
from petsc_hdg.physics.tree.ir import Program

METRIC = "cell metric"  # auxiliary field [dim, dim]: b·G b = (2 |b| / h)²; no user's field has a blank in its name

# F0, D_F0, SLOPE_F1, BY_U, ALONG_B are calls; o is the first component of the field, n how many it has.
_TEXT = """
const PetscInt n = {n}, o = {o}, C = {C}, A = {A};
PetscReal r[n] = {{0}};
{F0}
for (PetscInt d = 0; d < dim; ++d) {{
  PetscReal du[C] = {{0}}, da[A] = {{0}}, dx[dim] = {{0}}, rate[n * dim] = {{0}};
  for (PetscInt c = 0; c < C; ++c) du[c] = u_x[c * dim + d];
  for (PetscInt k = 0; k < A; ++k) da[k] = a_x[k * dim + d];
  dx[d] = 1.0;
  {SLOPE_F1}
  for (PetscInt c = 0; c < n; ++c) r[c] -= rate[c * dim + d];
}}
{F1}
for (PetscInt c = 0; c < n; ++c) {{
  PetscReal e[C] = {{0}}, e_x[C * dim] = {{0}}, by_u[n * dim] = {{0}}, by_b[n * dim] = {{0}}, b[dim];
  e[o + c] = 1.0;
  {BY_U}
  for (PetscInt d = 0; d < dim; ++d) {{
    PetscReal at[C * dim] = {{0}}, rate[n] = {{0}};
    at[(o + c) * dim + d] = 1.0;
    {D_F0}
    b[d] = rate[c] - by_u[c * dim + d];
  }}
  for (PetscInt d = 0; d < dim; ++d) e_x[(o + c) * dim + d] = b[d];
  {ALONG_B}
  PetscReal bb = 0.0, bGb = 0.0, bKb = 0.0;
  for (PetscInt d = 0; d < dim; ++d) {{
    bb += b[d] * b[d];
    bKb += b[d] * by_b[c * dim + d];
    for (PetscInt k = 0; k < dim; ++k) bGb += b[d] * a[{G} + d * dim + k] * b[k];
  }}
  if (bGb > 0.0) {{
    const PetscReal s = 1.0 / sqrt(bGb), inverse = fabs(bKb) * {p} / (bb * bb * s);
    const PetscReal tau = copysign(s / {p} * fmax(0.0, 1.0 - inverse), bKb);
    for (PetscInt d = 0; d < dim; ++d) f1[c * dim + d] += tau * b[d] * r[c];
  }}
}}
"""


def streamlined(physics, dim: int, degree: int):
    """The physics with the terms of SUPG for elements of `degree`, differentiated from the text, and with METRIC as its
    last auxiliary field. Raises PhysicsError for text that has no second derivative where it is asked for."""
    auxiliary = (*physics.auxiliary, Auxiliary(dim * dim, "cell", METRIC, physics.num_auxiliary))
    given = {(term.field.name, term.kind): term for term in physics.terms.residual}
    first = [term for term in physics.terms.residual if term.kind == "f0"]
    degrees = {field: max(1, degree + field.degree_offset) for field in physics.fields}
    terms = [Term(_flux(physics, field, given, dim, p), "f1", field) for field, p in degrees.items()]
    texts = (*physics._texts, ("streamline", dim, degree))
    whole = replace(physics.terms, residual=(*first, *terms), jacobian=None)
    return physics._changed(auxiliary=auxiliary, jacobian=None, terms=whole, _texts=texts)


def _flux(physics, field, given: dict, dim: int, degree: int) -> Program:
    """The program of f1 + τ b R of a field."""
    called = Called(physics, dim)

    def call(kind: str, tag: str = "", active: frozenset = frozenset(), **places: str) -> str:
        term = given.get((field.name, kind))
        return called.call(term, tag, active, **places) if term else ""

    text = _TEXT.format(
        n=field.components,
        o=field.offset,
        C=physics.num_components,
        A=physics.num_auxiliary + dim * dim,
        G=physics.num_auxiliary,
        p=degree,
        F0=call("f0", f0="r"),
        F1=call("f1"),
        SLOPE_F1=call("f1", "s", frozenset({"u", "x", "a"}), df1="rate"),
        BY_U=call("f1", "u", frozenset({"u"}), du="e", df1="by_u"),
        D_F0=call("f0", "g", frozenset({"u_x"}), du_x="at", df0="rate"),
        ALONG_B=call("f1", "g", frozenset({"u_x"}), du_x="e_x", df1="by_b"),
    )
    source = Source(physics.name, f"-cg_stabilization supg, {field.name}", text, written=False)
    return lower(source, F1, called, {}, {}, f"streamline_{field.name}")
