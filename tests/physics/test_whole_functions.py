"""Whole functions in PETSc's signature: unchanged, with any argument names, from text and from files."""

# Rows of the tables are C text and stay on one line.
# ruff: noqa: E501

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_close, assert_text_agrees, jacobian, random_state, residual
from compiled_physics import CompiledPhysics

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics import Auxiliary, CFile, Dirichlet, Neumann, Physics, Robin

RATES = "du", "du_t", "du_x"
STATE = """PetscInt dim, PetscInt Nf, PetscInt NfAux,
           const PetscInt uOff[], const PetscInt uOff_x[], const PetscScalar u[], const PetscScalar u_t[], const PetscScalar u_x[],
           const PetscInt aOff[], const PetscInt aOff_x[], const PetscScalar a[], const PetscScalar a_t[], const PetscScalar a_x[],
           PetscReal t, """

VARIABLE_COEFFICIENT = f"""
#include <petscdmplex.h>
#include <petscsnes.h>

#define NUM_MATERIALS 2

static const PetscReal background = 0.5; /* of the material */

static PetscErrorCode quadratic_u_2d(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar *u, void *ctx)
{{
  PetscFunctionBeginUser;
  *u = x[0] * x[0] + x[1] * x[1] + time;
  PetscFunctionReturn(PETSC_SUCCESS);
}}

/* 4 + t; -div kappa grad u */
static void f0_u({STATE}const PetscReal x[], PetscInt numConstants, const PetscScalar constants[], PetscScalar f0[])
{{
  f0[0] = 4.0 + t + u_t[0] + background * NUM_MATERIALS;
}}

static void f1_u({STATE}const PetscReal x[], PetscInt numConstants, const PetscScalar constants[], PetscScalar f1[])
{{
  PetscInt d;

  (void)f1;
  for (d = 0; d < dim; ++d) f1[d] = PetscRealPart(a[aOff[0]]) * (1.0 + u[uOff[0]] * u[uOff[0]]) * u_x[uOff_x[0] + d];
}}

static void f0_bd_u({STATE}const PetscReal x[], const PetscReal n[], PetscInt numConstants, const PetscScalar constants[], PetscScalar f0[])
{{
  PetscInt d;
  for (d = 0, f0[0] = 0.0; d < dim; ++d) f0[0] += -n[d] * 2.0 * x[d] * u[0] * u[0];
}}

static void g0_uu({STATE}PetscReal u_tShift, const PetscReal x[], PetscInt numConstants, const PetscScalar constants[], PetscScalar g0[])
{{
  g0[0] = u_tShift * 1.0;
}}

static void g2_uu({STATE}PetscReal u_tShift, const PetscReal x[], PetscInt numConstants, const PetscScalar constants[], PetscScalar g2[])
{{
  PetscInt d;
  for (d = 0; d < dim; ++d) g2[d] = a[0] * 2.0 * u[0] * u_x[d];
}}

static void g3_uu({STATE}PetscReal u_tShift, const PetscReal x[], PetscInt numConstants, const PetscScalar constants[], PetscScalar g3[])
{{
  PetscInt d;
  for (d = 0; d < dim; ++d) g3[d * dim + d] = a[0] * (1.0 + u[0] * u[0]);
}}
"""


@pytest.fixture
def path(tmp_path):
    """A C file as of a PETSc tutorial."""
    path = tmp_path / "tutorial.c"
    path.write_text(VARIABLE_COEFFICIENT)
    return path


def test_a_file_with_everything(path, tmp_path):
    physics = Physics(
        {"u": 1},
        path,
        CFile(path, "f1_u"),
        auxiliary={"kappa": Auxiliary(1, "nodal")},
        boundary=[Dirichlet("left", CFile(path, "quadratic_u_2d")), Robin("right", CFile(path, "f0_bd_u"))],
        exact=CFile(str(path), "quadratic_u_2d"),
    )
    assert physics.uses_time_derivative and not physics.is_linear
    compiled, interpreter = CompiledPhysics(physics, 2, tmp_path), physics.interpreter(2)
    s = random_state(physics, 2)
    assert_text_agrees(compiled, interpreter, s)
    f0, f1 = interpreter.pw_residual(s["u"], s["u_t"], s["u_x"], s["a"], s["a_x"], s["t"], s["x"])
    assert_close(f0, 4 + 0.3 + s["u_t"] + 1)
    assert_close(f1, s["a"][0] * (1 + s["u"][0] ** 2) * s["u_x"])
    for functions in (compiled, interpreter):
        assert_close(functions.pw_dirichlet(0, None, 0.5, [3.0, 4.0]), [25.5])
        assert_close(functions.pw_exact(0.5, [3.0, 4.0])[1], [[6.0, 8.0]])


PROGRAM = r"""
#include <petsc/private/dmpleximpl.h>
#include <ctime>
static char help[] = "A program of PETSc.\n\
  with lines that go on {\n";
#define IDX(i, j) (3 * (i) + (j))
#define PASTE(i, j) i##j
#define SIZE 2
typedef struct {
  PetscScalar mu;
  PetscScalar lambda;
} Parameter;
enum Kind { mu_only, both };

#if defined(PETSC_USE_COMPLEX) || PetscDefined(HAVE_LIBCEED)
  #include "mine.h"
static PetscReal value(void) { return neither(); }
#elif SIZE*2 == 4 && !defined(IDX2) && -7/2 == -3 && -7 % 2 == -1
  #ifndef THREE
static PetscReal value(void) { return 3.0; }
  #else
static PetscReal value(void) { return 4.0; }
  #endif
#else
static PetscReal value(void) { return 5.0; }
#endif
#if 0
not C at all
#endif

PetscErrorCode other(Parameter *p) { return IDX(p->mu, 1); }

static void f0_u(ARGUMENTS, PetscScalar f0[])
{
  const PetscReal mu = constants[0], \
    lambda = value();
  f0[0] = mu * u[0] + lambda;
}

static PetscErrorCode sum(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar *u, PetscCtx ctx)
{
  u[0] = x[0] + x[1];
  return PETSC_SUCCESS;
}

static void f0_macro(ARGUMENTS, PetscScalar f0[])
{
  f0[0] = IDX(1, (2, u[0]) + PASTE(1, 2));
}
"""


def test_a_program_as_it_stands(tmp_path):
    """Continued lines, conditions, types and macros around a function are no hindrance."""
    path = tmp_path / "program.c"
    arguments = STATE + "const PetscReal x[], PetscInt numConstants, const PetscScalar constants[]"
    path.write_text(PROGRAM.replace("ARGUMENTS", arguments))
    physics = Physics({"u": 1}, CFile(path, "f0_u"), constants={"mu": 2.0}, exact=CFile(path, "sum"))
    s = random_state(physics, 2)
    f0, _ = physics.interpreter(2).pw_residual(s["u"], s["u_t"], s["u_x"], s["a"], s["a_x"], s["t"], s["x"])
    assert_close(f0, 2 * s["u"] + 3)
    assert_close(physics.interpreter(2).pw_exact(0.0, [3.0, 4.0])[0], [7.0])
    with pytest.raises(PhysicsError, match=r"line 7: #define PASTE\(i, j\) .* takes arguments"):
        Physics({"u": 1}, CFile(path, "f0_macro"))


def test_unknown_types_are_named():
    text = VARIABLE_COEFFICIENT.replace("const PetscReal x[], PetscInt Nc", "const PetscReal x[],\nVec Nc")
    with pytest.raises(PhysicsError, match="line 10: unknown type 'Vec'; use PetscReal"):
        Physics({"u": 1}, text, "f1[0] = 0;")


@pytest.mark.parametrize("by_file", [True, False])
def test_hand_written_jacobian_equals_the_derived_one(path, tmp_path, by_file):
    blocks = {kind: CFile(path, f"{kind}_uu") for kind in ("g0", "g2", "g3")}
    if not by_file:
        blocks = {
            "g0": "g0[0] = u_tShift;",
            "g2": "for (PetscInt d = 0; d < dim; ++d) g2[d] = a[0] * 2 * u[0] * u_x[d];",
            "g3": "for (PetscInt d = 0; d < dim; ++d) g3[d * dim + d] = a[0] * (1 + u[0] * u[0]);",
        }
    arguments = ({"u": 1}, CFile(path, "f0_u"), CFile(path, "f1_u"))
    derived = Physics(*arguments, auxiliary={"kappa": 1})
    by_hand = Physics(*arguments, auxiliary={"kappa": 1}, jacobian=blocks)
    assert by_hand.has_jacobian and not derived.has_jacobian and not by_hand.is_linear
    s, shift = random_state(derived, 2), 1.9
    expected = jacobian(derived.interpreter(2), s | {"du_t": shift * s["du"]})
    for functions in (by_hand.interpreter(2), CompiledPhysics(by_hand, 2, tmp_path)):
        assert_close(jacobian(functions, s, shift), expected)
    state = s["u"], s["u_t"], s["u_x"], s["a"], s["a_x"], s["t"], shift, s["x"]
    for ours, theirs in zip(
        by_hand.interpreter(2).g_blocks(*state), derived.interpreter(2).g_blocks(*state), strict=True
    ):
        assert_close(ours, theirs)


def test_hand_written_blocks_of_two_fields(tmp_path):
    f1 = {"v": "for (PetscInt i = 0; i < dim * dim; ++i) f1[i] = u_x[i] * u[dim]; f1[1] += u_x[dim * dim];"}
    f0 = {"v": "f0[0] = u[0] * u[1] + u_x[3]; f0[1] = u[2] * u[2];", "p": "f0[0] = u_x[0] + u_x[3] * u[2];"}
    blocks = {
        ("v", "v"): {
            "g0": "g0[0] = u[1]; g0[1] = u[0];",
            "g1": "g1[(0 * 2 + 1) * dim + 1] = 1.0;",
            "g3": "for (PetscInt c = 0; c < 2; ++c) for (PetscInt d = 0; d < dim; ++d) g3[((c * 2 + c) * dim + d) * dim + d] = u[2];",
        },
        ("v", "p"): {
            "g0": "g0[1] = 2.0 * u[2];",
            "g2": "for (PetscInt i = 0; i < 2 * dim; ++i) g2[i] = u_x[i];",
            "g3": "g3[1 * dim + 0] = 1.0;",
        },
        ("p", "v"): {"g1": "g1[0] = 1.0; g1[3] = u[2];"},
        ("p", "p"): {"g0": "g0[0] = u_x[3];"},
    }
    fields = {"v": 2, "p": 1}
    derived, by_hand = Physics(fields, f0, f1), Physics(fields, f0, f1, jacobian=blocks)
    s = random_state(derived, 2)
    expected = jacobian(derived.interpreter(2), s)
    for functions in (
        by_hand.interpreter(2),
        CompiledPhysics(by_hand, 2, tmp_path),
        CompiledPhysics(derived, 2, tmp_path),
    ):
        assert_close(jacobian(functions, s), expected)
    directions = [random_state(derived, 2, seed) for seed in range(3)]
    expected = np.stack(
        [jacobian(derived.interpreter(2), s | {name: d[name] for name in RATES}) for d in directions], 1
    )
    rates = [np.stack([d[name] for d in directions], axis=-1) for name in RATES]
    for physics in (derived, by_hand):  # several directions at once
        found = physics.interpreter(2).pw_jacobian(s["u"], s["u_t"], s["u_x"], *rates, None, None, 0.3, 0.0, s["x"])
        assert_close(np.concatenate([flux.reshape(-1, 3) for flux in found]), expected)


def test_any_argument_names(tmp_path):
    names = "d, nf, na, off, off_x, v, v_t, v_x, ao, ao_x, k, k_t, k_x, time, X, nc, c, out".split(", ")
    types = (
        ["PetscInt"] * 3 + ["const int *"] * 2 + ["const double *"] * 3 + ["const int *"] * 2 + ["const double *"] * 3
    )
    types += ["double", "const double *", "int", "const double *", "double *"]
    arguments = ", ".join(f"{kind} {name}" for kind, name in zip(types, names, strict=True))
    text = f"void residual({arguments}) {{ for (int i = 0; i < d; i++) out[0] += v_x[i] * v_x[i] * c[0] * time + k[ao[0]] * X[i] + v_t[0] * v[0] + nc; }}"
    physics = Physics({"u": 1}, text, constants={"g": 2.0}, auxiliary={"k": 1})
    s = random_state(physics, 2)
    expected = np.sum(s["u_x"] ** 2) * 2 * 0.3 + s["a"][0] * s["x"].sum() + 2 * s["u_t"][0] * s["u"][0] + 2
    assert_close(residual(physics.interpreter(2), s)[0], expected)
    assert_text_agrees(CompiledPhysics(physics, 2, tmp_path), physics.interpreter(2), s)


def test_neumann_in_both_signatures(tmp_path):
    simple = "PetscErrorCode g(PetscInt dim, PetscReal t, const PetscReal x[], PetscInt Nc, PetscScalar q[], void *c) { q[0] = x[1] * Nc; return 0; }"
    full = f"void g({STATE}const PetscReal x[], const PetscReal n[], PetscInt nc, const PetscScalar c[], PetscScalar g[]) {{ g[0] = n[1] * a[0]; }}"
    physics = Physics(
        {"u": 1}, "f0[0] = u[0];", boundary=[Neumann("a", simple), Neumann("b", full)], auxiliary={"k": 1}
    )
    s = random_state(physics, 2)
    for functions in (physics.interpreter(2), CompiledPhysics(physics, 2, tmp_path)):
        both = [functions.pw_boundary(c, s["u"], None, None, s["a"], None, 0.0, s["x"], s["n"])[0][0] for c in (0, 1)]
        assert_close(both, [-s["x"][1], -s["n"][1] * s["a"][0]])


def test_the_state_of_a_whole_neumann_function_is_refused():
    full = f"void g({STATE}const PetscReal x[], const PetscReal n[], PetscInt nc, const PetscScalar c[], PetscScalar g[]) {{ g[0] = u[0]; }}"
    with pytest.raises(PhysicsError, match="'u' cannot be used here: a Neumann flux may not depend on the solution"):
        Physics({"u": 1}, "f0[0] = u[0];", boundary=Neumann("a", full))


def test_missing_function_of_a_file(path):
    with pytest.raises(
        PhysicsError, match=r"f0 \(.*tutorial.c\): there is no function 'f0_v'; the text has quadratic_u_2d, f0_u"
    ):
        Physics({"u": 1}, CFile(path, "f0_v"))


def test_the_line_in_a_file_is_named(path):
    path.write_text(VARIABLE_COEFFICIENT.replace("u[uOff[0]] * u[uOff[0]]", "w[0]"))
    line = 1 + next(i for i, text in enumerate(path.read_text().split("\n")) if "w[0]" in text)
    with pytest.raises(PhysicsError, match=rf"f1 \(.*tutorial.c\), line {line}: unknown name 'w'"):
        Physics({"u": 1}, None, path)


def test_the_boundary_value_signature_must_be_given_whole():
    with pytest.raises(PhysicsError, match="'g' has 1 arguments, PETSc's signature of this function has 6"):
        Physics({"u": 1}, "f0[0] = u[0];", boundary=Dirichlet("a", "void g(PetscScalar u[]) { u[0] = 1.0; }"))


CONTEXT = """
typedef struct { PetscReal xmin[3], xmax[3]; PetscInt n; PetscReal *roots; PetscInt count; } AppCtx;

static PetscErrorCode both(const PetscReal x[], PetscInt n, PetscScalar v[], PetscScalar *p, PetscScalar s[])
{
  if (v != NULL) { v[0] = n * x[0]; v[1] = x[1]; }
  if (p) *p = n + x[1];
  if (!s) return 0;
  else s[0] = 1.0;
  return 0;
}

static PetscErrorCode velocity(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar *u, void *ctx)
{
  AppCtx *user = (AppCtx *)ctx;
  PetscCall(both(x, user->n, u, NULL, NULL));
  return 0;
}

static PetscErrorCode pressure(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar *u, void *ctx)
{
  AppCtx *user = (AppCtx *)ctx;
  PetscCall(both(x, user->n, NULL, u, NULL));
  u[0] *= user->xmax[1] - user->xmin[1];
  for (PetscInt k = 0; k < user->count; ++k) u[0] += user->roots[k];
  return 0;
}

static PetscErrorCode always(const PetscReal x[], PetscScalar v[])
{
  v[0] = x[0];
  return 0;
}

static PetscErrorCode nowhere(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar *u, void *ctx)
{
  u[0] = 0.0;
  PetscCall(always(x, NULL));
  return 0;
}
"""


def test_arrays_behind_the_context_and_arguments_that_are_null(tmp_path):
    """Elements of members are named constants, `ctx->n` where n itself means the normal; each call with NULL is read as
    a function of its own."""
    path = tmp_path / "context.c"
    path.write_text(CONTEXT)
    exact = {"v": CFile(path, "velocity"), "p": CFile(path, "pressure")}
    members = {"ctx->n": 3, "xmax[1]": 5.0, "xmin[1]": 1.0, "count": 2, "roots[0]": 0.25, "roots[1]": 0.5}
    fields, f0 = {"v": 2, "p": 1}, {"p": "f0[0] = u[2];"}
    physics = Physics(fields, f0, exact=exact, constants=members)
    for functions in (physics.interpreter(2), CompiledPhysics(physics, 2, tmp_path)):
        assert_close(functions.pw_exact(0.0, np.array([2.0, 7.0]))[0], [6.0, 7.0, 4 * 10 + 0.75])
    refused = {
        "line 24: the member 'xmax.1.' of the context .* constants={'xmax.1.': …}": {"xmax[1]"},
        "line 16: the member 'n' of the context .* constants={'ctx->n': …}": {"ctx->n"},
        "line 25: the member 'roots.0.' of the context": {"roots[0]", "roots[1]"},
    }
    for words, missing in refused.items():
        with pytest.raises(PhysicsError, match=words):
            Physics(fields, f0, exact=exact, constants={k: v for k, v in members.items() if k not in missing})
    with pytest.raises(PhysicsError, match="line 31: 'v' cannot be used here: NULL is passed for it"):
        Physics({"u": 1}, "f0[0] = u[0];", exact=CFile(path, "nowhere"))
    with pytest.raises(PhysicsError, match="rename it, or give a member of the context as 'ctx->n'"):
        Physics({"u": 1}, "f0[0] = u[0];", constants={"n": 1.0})
