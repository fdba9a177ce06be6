"""Upwinding of a first-order system as a stabilization: S = |A|, A = Σ n_d ∂f1_d/∂u, rounded near 0.

S = √(A² + (a/20)²) has the speeds √(s² + (a/20)²) where A has s, so that no component of the trace is left open where a
wave stands. a bounds the speeds along n and along the axes: the eighth root of a norm of the eighth power. Y becomes
S / a, and Z its inverse, by Y ← Y (3 - Z Y)/2, Z ← (3 - Z Y)/2 Z. That needs no eigenvectors. It reaches rounding
in 13 steps from speeds of a/20.

Sources: P. L. Roe, J. Comput. Phys. 43, 1981 (the flux); N. J. Higham, Functions of Matrices, SIAM 2008, chapter 6 (the
root).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.called import Called
from petsc_hdg.physics.layout import Field
from petsc_hdg.physics.lowering.lower import lower
from petsc_hdg.physics.lowering.signatures import STABILIZATION_MATRIX
from petsc_hdg.physics.reader import UPWIND
from petsc_hdg.physics.terms import Term
from petsc_hdg.physics.text.source import Source

ROUNDED = 0.05  # of the largest speed: below, speeds are rounded
_REAL = 1e-6  # of the largest speed: imaginary parts of eigenvalues that are rounding, also of double ones

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
    for (PetscInt c = 0; c < C; ++c) {{
      for (PetscInt k = 0; k < C; ++k) {{
        T[c * C + k] = 0.0;
        for (PetscInt j = 0; j < C; ++j) T[c * C + k] += W[c * C + j] * W[j * C + k];
      }}
    }}
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
  for (PetscInt c = 0; c < C; ++c) {{
    for (PetscInt k = 0; k < C; ++k) {{
      Y[c * C + k] = 0.0;
      for (PetscInt j = 0; j < C; ++j) Y[c * C + k] += W[c * C + j] * T[j * C + k];
    }}
  }}
  for (PetscInt i = 0; i < C * C; ++i) W[i] = Z[i];
  for (PetscInt c = 0; c < C; ++c) {{
    for (PetscInt k = 0; k < C; ++k) {{
      Z[c * C + k] = 0.0;
      for (PetscInt j = 0; j < C; ++j) Z[c * C + k] += T[c * C + j] * W[j * C + k];
    }}
  }}
}}
for (PetscInt c = 0; c < C; ++c) {{
  for (PetscInt k = 0; k < C; ++k) {{
    S[c * C + k] = most > 0.0 ? most * sqrt(1.0 + floor * floor) * Y[c * C + k] : c == k ? 1.0 : 0.0;
  }}
}}
"""


def upwinded(physics, dim: int):
    """The physics with the stabilization |A|, from the text of f1. Raises PhysicsError for one that is no hyperbolic
    system of first order, or whose f1 has no derivatives that are asked for."""
    _check_first_order(physics)
    called, every = Called(physics, dim), Field(physics.num_components, name="S")
    text = _TEXT.format(C=physics.num_components, ROWS=_rows(physics, called), ROUNDED=ROUNDED)
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
