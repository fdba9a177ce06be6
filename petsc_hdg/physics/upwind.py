"""Upwinding of a physics, as another physics whose text calls its functions and their derivatives.

Of a first-order system as a stabilization: S = |A|, A = Σ n_d ∂f1_d/∂u, rounded near 0.

S = √(A² + (a/20)²) has the speeds √(s² + (a/20)²) where A has s, so that no component of the trace is left open where a
wave stands. a bounds the speeds along n and along the axes: the eighth root of a norm of the eighth power. Y becomes
S / a, and Z its inverse, by Y ← Y (3 - Z Y)/2, Z ← (3 - Z Y)/2 Z. That needs no eigenvectors. It reaches rounding
in 13 steps from speeds of a/20.

Of convection by streamlines (Petrov-Galerkin; Brooks, Hughes 1982): f1 + τ b R in the place of f1. Of a component u of
all fields, b = ∂f0/∂∇u - ∂f1/∂u is the wind, K = ∂f1/∂∇u the diffusion, and R = f0 - ∇·f1 the residual at a point
without its second derivatives K:∇∇u, which a pointwise function does not have. They are zero for degree 1 where K is
constant in affine cells. With the half length of the cell along b, s = h / (2 |b|) in time, and
1/Pe = (b·K b) p / (|b|⁴ s), is τ = s/p max(0, 1 - 1/Pe): the least diffusion that suits Pe > 1, and none below, so that
what is left out of R is gone in cells that are small enough. τ is negative where K is, as in -f0 and -f1.

Sources: P. L. Roe, J. Comput. Phys. 43, 1981 (the flux); N. J. Higham, Functions of Matrices, SIAM 2008, chapter 6 (the
root).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.device_text import trimmed
from petsc_hdg.physics.layout import Auxiliary, Field
from petsc_hdg.physics.lowering.lower import lower
from petsc_hdg.physics.lowering.signatures import F1, STABILIZATION_MATRIX
from petsc_hdg.physics.reader import UPWIND
from petsc_hdg.physics.terms import Term, form
from petsc_hdg.physics.text.source import Source
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import Program

ROUNDED = 0.05  # of the largest speed: below, speeds are rounded
_REAL = 1e-6  # of the largest speed: imaginary parts of eigenvalues that are rounding, also of double ones

_PRODUCT = """for (PetscInt c = 0; c < C; ++c) {{
    for (PetscInt k = 0; k < C; ++k) {{
      {0}[c * C + k] = 0.0;
      for (PetscInt j = 0; j < C; ++j) {0}[c * C + k] += {1}[c * C + j] * {2}[j * C + k];
    }}
  }}"""
# ROWS calls the derivative of f1 along column k of the identity, `du`, for each field, and sets `at` [component, dim].
_TEXT = """
const PetscInt C = {C};
PetscReal A[C * C] = {{0}}, along[(dim + 1) * C * C] = {{0}}, Y[C * C], Z[C * C], T[C * C], W[C * C], most = 0.0;
for (PetscInt k = 0; k < C; ++k) {{
  PetscReal du[C] = {{0}}, at[C * dim] = {{0}};
  du[k] = 1.0;
  {ROWS}
  for (PetscInt c = 0; c < C; ++c) {{
    for (PetscInt d = 0; d < dim; ++d) {{
      along[(d * C + c) * C + k] = at[c * dim + d];
      A[c * C + k] += at[c * dim + d] * n[d];
    }}
    along[(dim * C + c) * C + k] = A[c * C + k];
  }}
}}
for (PetscInt d = 0; d <= dim; ++d) {{
  PetscReal size[4];
  for (PetscInt i = 0; i < C * C; ++i) T[i] = along[d * C * C + i];
  for (PetscInt power = 0; power < 4; ++power) {{
    size[power] = 0.0;
    for (PetscInt c = 0; c < C; ++c) {{
      PetscReal row = 0.0;
      for (PetscInt k = 0; k < C; ++k) row += fabs(T[c * C + k]);
      size[power] = fmax(size[power], row);
    }}
    for (PetscInt i = 0; i < C * C; ++i) W[i] = size[power] > 0.0 ? T[i] / size[power] : 0.0;
    {T_IS_WW}
  }}
  if (size[3] > 0.0) most = fmax(most, size[0] * sqrt(size[1] * sqrt(size[2] * sqrt(size[3]))));
}}
const PetscReal scale = most > 0.0 ? 1.0 / most : 0.0, floor = {ROUNDED};
for (PetscInt c = 0; c < C; ++c) {{
  for (PetscInt k = 0; k < C; ++k) {{
    PetscReal square = c == k ? floor * floor : 0.0;
    for (PetscInt j = 0; j < C; ++j) square += scale * A[c * C + j] * (scale * A[j * C + k]);
    Y[c * C + k] = square / (1.0 + floor * floor);
    Z[c * C + k] = c == k ? 1.0 : 0.0;
  }}
}}
for (PetscInt step = 0; step < 13; ++step) {{
  for (PetscInt c = 0; c < C; ++c) {{
    for (PetscInt k = 0; k < C; ++k) {{
      T[c * C + k] = c == k ? 1.5 : 0.0;
      for (PetscInt j = 0; j < C; ++j) T[c * C + k] -= 0.5 * Z[c * C + j] * Y[j * C + k];
    }}
  }}
  for (PetscInt i = 0; i < C * C; ++i) W[i] = Y[i];
  {Y_IS_WT}
  for (PetscInt i = 0; i < C * C; ++i) W[i] = Z[i];
  {Z_IS_TW}
}}
for (PetscInt c = 0; c < C; ++c) {{
  for (PetscInt k = 0; k < C; ++k) {{
    S[c * C + k] = most > 0.0 ? most * sqrt(1.0 + floor * floor) * Y[c * C + k] : c == k ? 1.0 : 0.0;
  }}
}}
"""
METRIC = "cell metric"  # auxiliary field [dim, dim]: b·G b = (2 |b| / h)²; no user's field has a blank in its name
# F0, D_F0, SLOPE_F1, BY_U, ALONG_B are calls; o is the first component of the field, n how many it has.
_STREAMLINE = """
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


class Called:
    """Functions of a physics in `dim` dimensions that a text calls, by name, as `lower` asks for helpers."""

    def __init__(self, physics, dim: int):
        self.physics, self.dim = physics, dim
        self.functions: dict = {}

    def call(self, term: Term, tag: str = "", active: frozenset = frozenset(), **places: str) -> str:
        """A call of a term, or with a tag of its derivative along `active`, with the places of its arguments where they
        are not called as its parameters are; nothing where it is zero."""
        physics = self.physics
        made = form(term, self.dim, physics.fields, physics.auxiliary, len(physics.constants), active)
        program = made.derivative if tag else made.program
        if not program:
            return ""
        main = trimmed(program.main)
        self.functions |= {f.name: f for f in (_renamed(g, f"{tag}s_") for g in (*program.helpers, main))}
        names = dict.fromkeys(main.outputs, "d" * bool(tag) + term.kind)  # expressions write to others
        given = (names.get(p.name, p.name) for p in main.parameters)
        return f"{tag}s_{main.name}({', '.join(places.get(name, name) for name in given)});"

    def has(self, name: str) -> bool:
        return name in self.functions

    def names(self) -> list[str]:
        return []

    def get(self, name: str, *_) -> ir.Function:
        return self.functions[name]

    def all(self) -> dict[str, ir.Function]:
        return self.functions


def _renamed(function: ir.Function, prefix: str) -> ir.Function:
    """A function, and what it calls, with other names: in a derivative the names of its own derivative are taken."""

    def symbol(given: ir.Symbol) -> ir.Symbol:
        chosen = given.choice and tuple(map(symbol, given.choice))
        return replace(given, name=f"{given.name}s_", choice=chosen)

    def node(given):
        given = ir.rebuild(given, node)
        if isinstance(given, (ir.Name, ir.Element, ir.Ref)):
            return replace(given, name=f"{given.name}s_")
        if isinstance(given, (ir.Declare, ir.Alias)):
            return replace(given, symbol=symbol(given.symbol))
        return replace(given, function=prefix + given.function) if isinstance(given, ir.HelperCall) else given

    return replace(
        function,
        name=prefix + function.name,
        parameters=tuple(map(symbol, function.parameters)),
        body=tuple(map(node, function.body)),
        outputs=frozenset(f"{name}s_" for name in function.outputs),
    )


def upwinded(physics, dim: int):
    """The physics with the stabilization |A|, from the text of f1. Raises PhysicsError for one that is no hyperbolic
    system of first order, or whose f1 has no derivatives that are asked for."""
    _check_first_order(physics)
    called, every = Called(physics, dim), Field(physics.num_components, name="S")
    products = {f"{to}_IS_{left}{right}": _PRODUCT.format(to, left, right) for to, left, right in ("TWW", "YWT", "ZTW")}
    text = _TEXT.format(C=physics.num_components, ROWS=_rows(physics, called), ROUNDED=ROUNDED, **products)
    source = Source(physics.name, "stabilization upwind", text, written=False)
    term = Term(lower(source, STABILIZATION_MATRIX, called, {}, {}, "upwind"), "S", every, every)
    texts = tuple(text for text in physics._texts if text[0] != "stabilization")
    new = physics._changed(terms=replace(physics.terms, stabilization=term), _texts=(*texts, (UPWIND, dim)))
    _check_hyperbolic(new, dim)
    return new


def _rows(physics, called: Called) -> str:
    """Calls of the derivatives of f1 by u, field by field."""
    rows = []
    for term in physics.terms.residual:
        call = term.kind == "f1" and called.call(term, "u", frozenset({"u"}), df1="rate")
        if call:
            first, count = term.field.offset, term.field.components
            rows.append(
                f"{{ PetscReal rate[{count} * dim] = {{0}}; {call} "
                f"for (PetscInt i = 0; i < {count} * dim; ++i) at[{first} * dim + i] = rate[i]; }}"
            )
    return "\n  ".join(rows)


def _check_first_order(physics) -> None:
    """Raise PhysicsError where f0 or f1 reads gradients, or f1 the time derivative."""
    for term in physics.terms.residual:
        wrong = term.program.inputs & ({"u_x", "u_t"} if term.kind == "f1" else {"u_x"})
        if wrong:
            raise PhysicsError(
                f"physics '{physics.name}', stabilization: 'upwind' is for systems of first order u_t - ∇·f1(u) + f0(u)"
                f" = 0, and {term.kind} reads {min(wrong)}; write convection into f1, or give auto, a number or a text"
            )


def _check_hyperbolic(physics, dim: int) -> None:
    """Raise PhysicsError where speeds are surely complex, at samples of positive numbers."""
    interpreter, random = physics.interpreter(dim), np.random.default_rng(1)
    for _ in range(4):
        count, given = physics.num_components, physics.num_auxiliary
        u, a, x, n = (random.random(size) for size in (count, given, dim, dim))
        zero = np.zeros((count, dim))
        with np.errstate(all="ignore"):
            slopes = interpreter.g_blocks(u, zero[:, 0], zero, a, np.zeros((given, dim)), 0.0, 0.0, x)[2]
        if not np.isfinite(slopes).all():
            continue  # outside of the function's domain
        speeds = np.linalg.eigvals(slopes @ (n / np.linalg.norm(n)))
        if np.abs(speeds.imag).max() > _REAL * np.abs(speeds).max():
            raise PhysicsError(
                f"physics '{physics.name}', stabilization: 'upwind' takes the speeds of a hyperbolic system, and "
                f"∂f1/∂u·n has the eigenvalue {complex(speeds[np.abs(speeds.imag).argmax()]):.3g}; check the signs in "
                "f1, or give auto, a number or a text"
            )


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

    text = _STREAMLINE.format(
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
