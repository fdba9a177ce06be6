"""C that a physics may be written in: device text, interpreter and differences agree for every construct."""

# Rows of the tables are C text and stay on one line.
# ruff: noqa: E501

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_close, assert_second_order, assert_text_agrees, random_state, residual
from compiled_physics import CompiledPhysics

from petsc_hdg.physics import Physics

HELPERS = """
#define THREE 3
static const PetscReal weights[2] = {0.25, 0.75};
const double offset = 1.5;
/* a value */
static inline PetscReal softplus(const PetscReal s) { return PetscLogReal(1.0 + PetscExpReal(s)); }
PetscScalar twice(PetscScalar s) { PetscScalar r = softplus(s); r *= 2; return r; }
static PetscReal branchy(PetscReal s, PetscInt k)
{
  if (k == 0) return s * s;
  else if (s > 0.5) { return sin(s) * weights[1]; }
  return offset * s;
}
void outer2(const PetscReal v[], PetscReal w[]) {
  PetscInt i, j;
  for (i = 0; i < 2; ++i) for (j = 0; j < 2; ++j) w[i * 2 + j] = v[i] * v[j];
}
void normalise(PetscReal *v, PetscInt n) {
  PetscReal s = 0;
  for (PetscInt i = 0; i < n; i++) s += v[i] * v[i];
  s = sqrt(s);
  for (PetscInt i = 0; i < n; i++) v[i] /= s;
}
void det2(PetscReal *d, const PetscReal A[2][2]) { *d = A[0][0] * A[1][1] - A[0][1] * A[1][0]; }
PetscErrorCode scaled(PetscReal s, PetscReal *r) { PetscFunctionBeginUser; *r = s * s; PetscFunctionReturn(PETSC_SUCCESS); }
PetscReal doubled(PetscReal s, const PetscInt n) { for (PetscInt i = 0; i < n; ++i) s *= 2; return s * s; }
PetscInt pick(PetscInt i) { return (i + 1) % 2; }
"""

# name -> body of f0 of a field with two components, in two dimensions, with constants alpha = 1.3 and beta = 0.4.
BODIES = {
    "plain": "f0[0] = u[0] * u[1]; f0[1] = u_x[0] - u_t[1] * u[0];",
    "everything readable": "f0[0] = u[0] * dim + Nf + NfAux + uOff[0] + uOff_x[1] + aOff[1] + numConstants + a[0] * a_x[1] + t + x[1] * u_x[3];",
    "constants": "f0[0] = alpha * u[0] + constants[1] * u[1]; f0[1] = beta;",
    "compound": "f0[0] = u[0]; f0[0] *= u[1]; f0[0] += u_x[0]; f0[0] /= 1.0 + u[0] * u[0]; f0[0] -= u[1]; f0[1] = f0[0] * f0[0];",
    "compound with int": "f0[0] = u[0]; f0[0] *= 2; f0[0] /= 4; PetscInt i = 7; i %= 4; i += 2; i -= 1; i *= 3; f0[0] += i;",
    "chain": "PetscReal p, q; p = q = u[0] * u[0]; f0[0] = p * q;",
    "increments": "PetscInt i = 0; i++; ++i; i--; PetscReal r = u[0]; r++; f0[0] = r * r * i;",
    "for": "for (PetscInt c = 0; c < 2; ++c) for (PetscInt d = 0; d < dim; d++) f0[c] += u_x[c * dim + d] * u_x[c * dim + d];",
    "for down": "PetscInt i; for (i = 1; i >= 0; i--) f0[i] = u[1 - i] * u[i];",
    "for comma": "PetscInt i, j; for (i = 0, j = 1; i < 2; ++i, --j) f0[i] = u[j] * u[j];",
    "for real step": "PetscReal r; for (r = u[0]; r < 4.0; r *= 2.0) f0[0] += r * r;",
    "while": "PetscReal s = u[0]; PetscInt k = 0; while (k < 3 && s < 100.0) { s = s * s + u[1]; k++; } f0[0] = s;",
    "do": "PetscReal s = u[0]; PetscInt k = 0; do { s = sin(s) + u[1]; k = k + 1; } while (k < 4); f0[0] = s;",
    "newton": "PetscReal y = 1.0; for (PetscInt k = 0; k < 20; ++k) y = y - (y * y * y - u[0]) / (3.0 * y * y); f0[0] = y;",
    "break": "for (PetscInt k = 0; k < 10; ++k) { f0[0] += u[0] * k; if (k > 3) break; if (k == 1) continue; f0[1] += u[1] * k; }",
    "forever": "PetscInt k = 0; for (;;) { if (k >= 3) break; f0[0] += u[0] * u[0]; k += 1; }",
    "if": "if (u[0] > 0.5) { f0[0] = u[0] * u[0]; } else if (u[0] > 0.25) f0[0] = u[1]; else { f0[0] = exp(u[0]); } if (!(u[1] < 0)) f0[1] = u[1];",
    "if on dim": "if (dim == 2) f0[0] = u[0] * u_x[3]; else f0[0] = u_x[8];",
    "early return": "f0[0] = u[0]; if (u[1] > 0.3) return; f0[1] = u[1] * u[0];",
    "switch": "switch (dim) { case 1: f0[0] = u[0]; break; case 2: case 3: f0[0] = u[0] * u[1]; break; default: f0[0] = 0.0; break; }",
    "switch block": "PetscInt k = pick(2); switch (k) { default: { f0[0] = 1.0; break; } case 1: { PetscReal r = u[0]; f0[0] = r * r; break; } }",
    "ternary": "f0[0] = u[0] > 0.5 ? u[0] * u[0] : u[1] < 0.5 ? 0.0 : 1.0; f0[1] = (PetscReal)(dim == 2 ? 3 : 4) * u[1];",
    "real condition": "PetscReal c = u[0] > 0.5; f0[0] = c ? u[0] * u[0] : u[1]; f0[1] = !x[0] ? 1.0 : u_x[0] ? u[1] * u[1] : 0.0; if (c) f0[1] += u[0];",
    "logic": "f0[0] = (u[0] > 0.2 && u[1] < 0.8 || !(dim == 3)) * u[0] + (3 & 1) + (1 << 3) + (7 ^ 2) + (8 >> 1) + ~0 + (4 | 1);",
    "casts": "f0[0] = (PetscReal)dim / (PetscInt)2 * u[0] + ((double)1) / 3 + (PetscInt)(2.7) + (int)(10 * x[0]);",
    "local array": "PetscReal g[4] = {0.0}; for (PetscInt i = 0; i < 4; ++i) g[i] = u_x[i] * u[0]; f0[0] = g[1] * g[2]; f0[1] = g[3];",
    "sized by dim": "PetscScalar g[dim * dim]; const PetscInt nc = uOff[1] - uOff[0]; PetscReal h[nc]; h[1] = u[1]; g[3] = u[0]; f0[0] = g[3] * h[1];",
    "array of values": "const PetscReal w[] = {0.5, u[0], u[0] * u[1]}; for (PetscInt i = 0; i < 3; ++i) f0[0] += w[i] * w[i];",
    "2D array": "PetscReal G[2][2]; PetscInt i, j; for (i = 0; i < 2; ++i) for (j = 0; j < 2; ++j) G[i][j] = u_x[i * 2 + j]; det2(&f0[0], G); f0[1] = G[1][0] * G[0][1];",
    "2D values": "const PetscReal M[2][3] = {{1, 2}, {u[0], 5, 6}}; f0[0] = M[0][2] + M[1][0] * M[1][2] + M[0][1] * u[1];",
    "int table": "const PetscInt perm[2] = {1, 0}; f0[0] = u[perm[0]] * u[perm[0]]; f0[1] = u[perm[1]];",
    "shadowing": "PetscReal r = u[0]; { PetscReal r = u[1]; r *= r; f0[1] = r; } for (PetscInt i = 0; i < 1; ++i) { PetscReal r = 3.0 * u[1]; f0[0] += r * r; } f0[0] += r;",
    "names of OpenCL": "PetscReal kernel = u[0], half = kernel * u[1], global = half * half, d_u = global; f0[0] = d_u; PetscReal du = u[0] * u[0]; f0[1] = du;",
    "shadowed input": "PetscReal kappa_d = u[0] * u[0]; { PetscReal x = kappa_d * 2.0; f0[0] = x * kappa_d; }",
    "pointer": "const PetscScalar *v = &u[uOff[0]], *w = u_x + 2; PetscScalar *f = f0; f[0] = v[0] * w[1]; *f += v[1] * *w; f[1] = w[0];",
    "helper value": "f0[0] = softplus(u[0] * u[1]) * twice(u[0]); f0[1] = branchy(u[0], 0) + branchy(u[1], 1) + branchy(0.7, 1);",
    "helper array": "PetscReal w[4]; outer2(u, w); f0[0] = w[1] * w[3]; outer2(&u_x[2], w); f0[1] = w[0] + w[2];",
    "helper in place": "PetscReal v[2]; v[0] = u[0]; v[1] = u[1] * u[1]; normalise(v, 2); f0[0] = v[0]; f0[1] = v[1];",
    "helper by address": "PetscReal r, s; PetscCall(scaled(u[0], &r)); scaled(r, &s); f0[0] = s;",
    "helper int": "f0[pick(0)] = u[pick(1)] * u[0];",
    "helper that changes its copy": "f0[0] = doubled(u[0] * u[1], 3) * u[1];",
    "helpers of DMPlex": "PetscReal J, K[4], L[9], M[9]; for (PetscInt i = 0; i < 9; ++i) L[i] = (i % 4 == 0) + u[i % 2] * u[1]; DMPlex_Det2D_Scalar_Internal(&J, u_x); DMPlex_Invert2D_Internal(K, u_x, J); DMPlex_Det3D_Internal(&J, L); DMPlex_Invert3D_Internal(M, L, J); f0[0] = u_x[0] * K[1] + u_x[1] * K[3] + M[3] * L[0] + M[4] * L[3] + M[5] * L[6] + M[6] * L[2] + M[7] * L[5] + M[8] * L[8]; f0[1] = M[2] + DMPlex_NormD_Internal(dim, u);",
    "chosen pointer": "const PetscScalar *v = u[0] > u[1] ? &u[0] : u_x + 1, *w = dim > 2 ? u : x[0] > 2.0 ? a : u_x; f0[0] = v[0] * w[1] + *v * *w; f0[1] = v[1];",
    "sorted": "PetscReal v[4] = {u[0] * u[1], u_x[0], -u[1], x[0]}; PetscCall(PetscSortReal(4, v)); f0[0] = v[0] + 2 * v[1] * v[1]; f0[1] = 3 * v[2] + 4 * v[3]; PetscSortReal(1, v);",
    "macros": "#define NC 2\n#define SCALE (2.0 * alpha) /* twice */\nfor (PetscInt i = 0; i < NC; ++i) f0[i] = SCALE * u[i] * THREE;",
    "comments": "// f0[0] = wrong;\nf0[0] = u[0] /* * 7 */ * u[1]; /* a\nb */ f0[1] = u[1]; // end",
    "numbers": "f0[0] = 1. * u[0] + .5 + 2. + 1e-2 + 0x10 + 3L + 2.5e+1 + 1E3 + 0x1p-3;",
    "division": "f0[0] = 7 / 7 + (dim + 5) / 2 + 1.0 / 2 * u[0] / (u[1] + 2);",
    "minus": "f0[0] = -u[0] * -u[1] - -1.0 + +u[0] - (-(u[0] - u[1]));",
    "unused": "PetscReal unused, also = u[0]; PetscInt i; (void)unused; f0[0] = u[0]; ; f0[1] = u[1] * u[1];",
    "piecewise": "PetscInt i = (PetscInt)floor(4.0 * u[0]); PetscReal w = 4.0 * u[0] - i; f0[0] = (1.0 - w) * i * i + w * (i + 1) * (i + 1);",
    "max of both kinds": "f0[0] = PetscMax(dim, 3) * PetscMin(u[0], 0.5) + PetscMax(u[1], 0) + max(2, 1) + min(u[0], u[1]);",
    "passive": "PetscReal s = 0.0; for (PetscInt d = 0; d < dim; ++d) s += x[d] * x[d]; s = sqrt(s) * a[0]; f0[0] = s * u[0]; f0[1] = s;",
    "overwritten": "f0[0] = u[0] * u[0]; f0[0] = 3.0; f0[1] = u[1]; f0[1] *= f0[0];",
    "isfinite": "f0[0] = isnan(u[0]) ? 0.0 : u[0] * u[0]; f0[1] = isfinite(u[1]) * u[1] + signbit(-u[0]);",
}


def physics_of(name: str) -> Physics:
    constants = {"alpha": 1.3, "beta": 0.4}
    return Physics({"u": 2}, BODIES[name], helpers=HELPERS, constants=constants, auxiliary={"k": 1}, name=name)


@pytest.mark.parametrize("name", BODIES)
def test_construct(name, tmp_path):
    physics = physics_of(name)
    compiled, interpreter = CompiledPhysics(physics, 2, tmp_path), physics.interpreter(2)
    for seed in range(4):
        state = random_state(physics, 2, seed)
        assert_text_agrees(compiled, interpreter, state)
        assert_second_order(interpreter, state)
    assert np.abs(residual(interpreter, state)).max() > 0


# name -> what f0[0] is, as Python of u (array), g (u_x), x, t: the C above means what it says.
VALUES = {
    "compound with int": lambda u, g, x: 2 * u[0] / 4 + 12,
    "for comma": lambda u, g, x: u[1] ** 2,
    "newton": lambda u, g, x: np.cbrt(u[0]),
    "break": lambda u, g, x: 10 * u[0],
    "forever": lambda u, g, x: 3 * u[0] ** 2,
    "switch": lambda u, g, x: u[0] * u[1],
    "switch block": lambda u, g, x: u[0] ** 2,
    "logic": lambda u, g, x: u[0] + 1 + 8 + 5 + 4 - 1 + 5,
    "casts": lambda u, g, x: u[0] + 1 / 3 + 2 + int(10 * x[0]),
    "2D array": lambda u, g, x: g[0, 0] * g[1, 1] - g[0, 1] * g[1, 0],
    "2D values": lambda u, g, x: u[0] * 6 + 2 * u[1],
    "shadowing": lambda u, g, x: 9 * u[1] ** 2 + u[0],
    "pointer": lambda u, g, x: u[0] * g[1, 1] + u[1] * g[1, 0],
    "helper in place": lambda u, g, x: u[0] / np.hypot(u[0], u[1] ** 2),
    "helper by address": lambda u, g, x: u[0] ** 4,
    "helper that changes its copy": lambda u, g, x: 64 * (u[0] * u[1]) ** 2 * u[1],
    "helpers of DMPlex": lambda u, g, x: 1.0,
    "chosen pointer": lambda u, g, x: (
        (u[0] if u[0] > u[1] else g.ravel()[1]) * g.ravel()[1] + (u[0] if u[0] > u[1] else g.ravel()[1]) * g.ravel()[0]
    ),
    "sorted": lambda u, g, x: (lambda v: v[0] + 2 * v[1] ** 2)(sorted([u[0] * u[1], g[0, 0], -u[1], x[0]])),
    "macros": lambda u, g, x: 2 * 1.3 * u[0] * 3,
    "comments": lambda u, g, x: u[0] * u[1],
    "numbers": lambda u, g, x: u[0] + 0.5 + 2 + 0.01 + 16 + 3 + 25 + 1000 + 0.125,
    "division": lambda u, g, x: 1 + 3 + 0.5 * u[0] / (u[1] + 2),
    "minus": lambda u, g, x: u[0] * u[1] + 1 + u[0] + u[0] - u[1],
}


@pytest.mark.parametrize("name", VALUES)
def test_value(name):
    physics = physics_of(name)
    s = random_state(physics, 2)
    assert_close(residual(physics.interpreter(2), s)[0], VALUES[name](s["u"], s["u_x"], s["x"]))


def test_passive_values_get_no_derivative():
    text = physics_of("passive").device_source(2)
    derivative = text[text.index("d_ph_f0_u(") : text.index("pw_residual")]
    assert "s_d" not in derivative and "df0[0] = s_ * du[0];" in derivative


def test_what_the_derivative_does_not_need_is_left_out():
    physics = Physics({"u": 1}, "PetscReal s = exp(u[0]); f0[0] = u[0] + x[0] * sin(x[1]); f0[0] += s * 0.0; s = 1.0;")
    text = physics.device_source(2)
    derivative = text[text.index("d_ph_f0_u(") : text.index("pw_residual")]
    assert "sin" not in derivative


def test_loops_end_in_the_first_run():
    physics = Physics({"u": 1}, "PetscReal s = u[0]; while (s > 0.0) s = s * 1.0; f0[0] = s;")
    assert "pw_residual" in physics.device_source(2)
