"""What PETSc's tutorials write in pointwise functions: calls of one from another, enumerations, formulas as macros."""

# Lines of the C text stay as they are.
# ruff: noqa: E501

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_close, assert_text_agrees, random_state, residual
from compiled_physics import CompiledPhysics
from test_whole_functions import STATE

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics import CFile, Dirichlet, Physics, Robin

ARGUMENTS = f"{STATE} const PetscReal x[], PetscInt numConstants, const PetscScalar constants[], PetscScalar f0[]"
BOUNDARY = ARGUMENTS.replace("PetscInt numC", "const PetscReal n[], PetscInt numC")
GIVEN = "dim, Nf, NfAux, uOff, uOff_x, u, u_t, u_x, aOff, aOff_x, a, a_t, a_x, t, x, numConstants, constants"

TUTORIAL = f"""
typedef enum {{ RATE, /* of decay */
  POWER = 1,
  SHIFT }} Constants;
#define SQUARE(v) ((v) * (v))
#define IDX(i, j) (2 * (i) + (j))
#define WEIGHTED(v, w) (SQUARE(v) * (w))
static PetscReal softness = 0.1;
static PetscReal weights[2][2] = {{{{0, 1}}, {{-1, 5}}}};
static void Options(void) {{ softness = 0.2; }}
static PetscErrorCode linear_u(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar *u, PetscCtx ctx)
{{
  PetscFunctionBegin;
  *u = x[0] + 2.0 * x[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}}
static PetscErrorCode shifted_u(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar u[], void *ctx)
{{
  PetscCall(linear_u(dim, time, x, Nc, u, ctx));
  u[0] += 1.0;
  return PETSC_SUCCESS;
}}
static void f0_plain({ARGUMENTS})
{{
  f0[0] = constants[RATE] * u[0] + constants[SHIFT] + x[IDX(0, SQUARE(1))] + WEIGHTED(u[0], fmax(x[0], 2.0)) + (u_t ? u_t[uOff[0]] : 0.0);
}}
static void f0_twice({ARGUMENTS})
{{
  f0_plain({GIVEN}, f0);
  f0[0] *= 2.0;
  if (f0[0] != f0[0]) abort();
}}
static void f0_bd({BOUNDARY})
{{
  PetscScalar value;
  PetscCallAbort(PETSC_COMM_SELF, shifted_u(dim, t, x, dim, &value, NULL));
  f0[0] = u[0] - value;
}}
static void f0_soft({ARGUMENTS})
{{
  f0[0] = softness * u[0];
}}
static void f0_weighted({ARGUMENTS})
{{
  f0[0] = weights[1][1] * u[0];
}}
static void f0_wrong({ARGUMENTS})
{{
  PetscScalar value;
  linear_u(dim, t, x, dim, &value, nothing);
  f0[0] = value;
}}
static void f0_rate({ARGUMENTS})
{{
  f0[0] = a_t[0];
}}
"""
CONSTANTS = {"rate": 3.0, "power": 1.0, "shift": 0.5}


@pytest.fixture
def path(tmp_path):
    """A C file with the functions above."""
    path = tmp_path / "tutorial.c"
    path.write_text(TUTORIAL)
    return path


def test_one_function_calls_another(path, tmp_path):
    """With all its arguments, a_t among them; constants are numbered by an enumeration."""
    physics = Physics({"u": 1}, CFile(path, "f0_twice"), constants=CONSTANTS)
    s = random_state(physics, 2)
    u, x = s["u"][0], s["x"]
    expected = 3 * u + 0.5 + x[1] + u * u * max(x[0], 2.0) + s["u_t"][0]
    assert_close(residual(physics.interpreter(2), s)[0], [2 * expected])
    assert_text_agrees(CompiledPhysics(physics, 2, tmp_path), physics.interpreter(2), s)


def test_boundary_values_within_a_flux(path, tmp_path):
    physics = Physics({"u": 1}, "f0[0] = u[0];", boundary=Robin("right", CFile(path, "f0_bd")))
    s = random_state(physics, 2)
    for functions in (physics.interpreter(2), CompiledPhysics(physics, 2, tmp_path)):
        value = functions.pw_boundary(0, s["u"], None, None, None, None, 0.0, s["x"], s["n"])[0]
        assert_close(value, [s["u"][0] - (s["x"][0] + 2 * s["x"][1] + 1)])


def test_variables_of_the_file_are_constants_of_the_physics(path):
    with pytest.raises(PhysicsError, match="'softness' stands outside .* const, or have its value in constants="):
        Physics({"u": 1}, CFile(path, "f0_soft"))
    physics = Physics({"u": 1}, CFile(path, "f0_soft"), constants={"softness": 4.0})
    s = random_state(physics, 2)
    assert_close(residual(physics.interpreter(2), s)[0], 4 * s["u"])


def test_variables_that_nothing_changes_are_constants(path):
    physics = Physics({"u": 1}, CFile(path, "f0_weighted"))
    s = random_state(physics, 2)
    assert_close(residual(physics.interpreter(2), s)[0], 5 * s["u"])
    path.write_text(f"{TUTORIAL}static void other(void) {{ weights[1][1] += 1.0; }}")
    with pytest.raises(PhysicsError, match="'weights' stands outside every function"):
        Physics({"u": 1}, CFile(path, "f0_weighted"))


@pytest.mark.parametrize(
    ("function", "message"),
    [("f0_wrong", "unknown name 'nothing'"), ("f0_rate", "'a_t' cannot be used here: auxiliary fields have")],
)
def test_what_stays_refused(path, function, message):
    """With its line, which enumerations over several lines do not move."""
    word = "nothing" if function == "f0_wrong" else "a_t[0]"
    line = 1 + next(i for i, text in enumerate(TUTORIAL.split("\n")) if word in text)
    with pytest.raises(PhysicsError, match=f"line {line}: {message}"):
        Physics({"u": 1}, CFile(path, function))


def test_a_function_among_foreign_code(tmp_path):
    path = tmp_path / "ex.c"
    path.write_text(
        """static char help[] = "An example; with (brackets { in text.";
typedef struct { PetscInt n; DM dm; } AppCtx;
typedef enum {ONE, TWO} Kind;
const char *names[3] = {"a", "b", "c"};
static const PetscReal weights[2] = {1.0, 3.0};
PetscErrorCode Setup(DM, AppCtx *);
static inline PetscReal square(PetscReal s) { return s * s; }
static PetscErrorCode Process(MPI_Comm comm, AppCtx *user) { user->n = 0; PetscCall(DMCreate(comm, &user->dm)); }
static PetscErrorCode bc(PetscInt dim, PetscReal t, const PetscReal x[], PetscInt Nc, PetscScalar u[], void *ctx)
{
  u[0] = square(x[0]) * weights[1];
  return PETSC_SUCCESS;
}
int main(int argc, char **argv) { AppCtx user; PetscCall(SNESSolve(snes, NULL, u)); return 0; }
"""
    )
    physics = Physics({"u": 1}, "f0[0] = u[0];", boundary=Dirichlet("a", CFile(path, "bc")))
    assert_close(physics.interpreter(2).pw_dirichlet(0, None, 0.0, [0.5, 0.0]), [0.75])


BEHIND_A_CONTEXT = """
typedef struct {
  PetscReal mu; /* shear modulus */
} Parameter;

struct Other {
  PetscInt unused;
};

typedef struct _AppCtx {
  char     name[16];
  PetscInt count;
  PetscBag bag;
} AppCtx;

static PetscErrorCode wall(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar *u, void *ctx)
{
  AppCtx        *user = (AppCtx *)ctx;
  Parameter     *parameter;
  const PetscInt count = user->count;

  PetscFunctionBeginUser;
  PetscCall(PetscBagGetData(user->bag, (void **)&parameter));
  const PetscReal mu = parameter->mu;
  for (PetscInt d = 0; d < dim; ++d) u[d] = mu * x[d] * (count / 2) + ((AppCtx *)ctx)->count;
  PetscFunctionReturn(PETSC_SUCCESS);
}
"""
BEHIND_A_CALL = """
static PetscErrorCode again(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar *u, void *ctx)
{
  PetscFunctionBeginUser;
  PetscCheck(dim > 0, PETSC_COMM_SELF, PETSC_ERR_SUP, "Dimension %" PetscInt_FMT, dim);
  PetscCall(wall(dim, time, x, Nc, u, ctx));
  u[1] += 1.0;
  PetscFunctionReturn(PETSC_SUCCESS);
}
static PetscErrorCode at_last(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar *u, void *ctx)
{
  PetscCall(again(dim, time, x, Nc, u, ctx));
  return PETSC_SUCCESS;
}
"""


def test_members_of_the_context_are_named_constants(tmp_path):
    (tmp_path / "user.c").write_text(BEHIND_A_CONTEXT)
    for given in (BEHIND_A_CONTEXT, CFile(tmp_path / "user.c", "wall")):
        physics = Physics(
            {"u": 2}, "f0[0] = u[0];", boundary=[Dirichlet("boundary", given)], constants={"count": 5, "mu": 0.5}
        )
        found = physics.interpreter(2).pw_dirichlet(0, None, 0.0, [1.0, 2.0])
        np.testing.assert_allclose(found, [0.5 * 2 + 5, 1.0 * 2 + 5])
        assert "constants[1]" in physics.device_source(2)


def test_members_of_the_context_behind_calls(tmp_path):
    """Of functions that others call, and of functions that these call."""
    (tmp_path / "user.c").write_text(BEHIND_A_CONTEXT + BEHIND_A_CALL)
    boundary = [Dirichlet("boundary", CFile(tmp_path / "user.c", "at_last"))]
    physics = Physics({"u": 2}, "f0[0] = u[0];", boundary=boundary, constants={"count": 5, "mu": 0.5})
    for functions in (physics.interpreter(2), CompiledPhysics(physics, 2, tmp_path)):
        assert_close(functions.pw_dirichlet(0, None, 0.0, [1.0, 2.0]), [0.5 * 2 + 5, 1.0 * 2 + 6])


def test_members_without_a_value_are_named_with_their_line():
    with pytest.raises(PhysicsError, match=r"line 20: the member 'count' of the context .* constants=\{'count': …\}"):
        Physics(
            {"u": 2}, "f0[0] = u[0];", boundary=[Dirichlet("boundary", BEHIND_A_CONTEXT)], constants={"mu": 0.5}
        ).check(2)


def test_scratch_memory_is_an_array():
    """As in PETSc's src/dm/impls/plex/tests/ex39.c: a size that the dimension tells, zero at first, passed on."""
    text = f"""
static PetscErrorCode first(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar *u, void *ctx)
{{
  u[0] = x[0] + 0.5L * time;
  return PETSC_SUCCESS;
}}

static void f0_u({STATE}const PetscReal x[], PetscInt numConstants, const PetscScalar constants[], PetscScalar f0[])
{{
  PetscScalar *scratch;

  PetscCallAbort(PETSC_COMM_SELF, PetscCalloc1(dim, &scratch));
  PetscCallAbort(PETSC_COMM_SELF, first(dim, t, x, dim, scratch, NULL));
  for (PetscInt i = 0; i < dim; ++i) f0[i] = u[i] - scratch[i];
  PetscCallAbort(PETSC_COMM_SELF, PetscFree(scratch));
}}
"""
    physics = Physics({"u": 2}, text)
    found = physics.interpreter(2).pw_residual([3.0, 4.0], None, None, None, None, 2.0, [0.25, 0.0])[0]
    np.testing.assert_allclose(found, [3.0 - 1.25, 4.0])
    assert "[2]" in physics.device_source(2)


def test_memory_without_a_size_is_refused():
    text = "PetscScalar *w;\nPetscCalloc1(PetscFloorReal(x[0]), &w);\nf0[0] = w[0];"
    with pytest.raises(PhysicsError, match="line 2: the size of an array must be an integer"):
        Physics({"u": 1}, text).check(2)


def test_functions_called_in_turn(path):
    """As PetscWeakForm calls them: the second finds what the first left there."""
    path.write_text(TUTORIAL + f"static void f0_more({ARGUMENTS})\n{{\n  f0[0] += t;\n}}\n")
    choices = "f0_plain", ("f0_plain", "f0_more"), ["f0_more", "f0_plain"]
    every = [Physics({"u": 1}, CFile(path, names), constants=CONSTANTS).interpreter(2) for names in choices]
    s = random_state(Physics({"u": 1}, CFile(path, "f0_plain"), constants=CONSTANTS), 2)
    first, both, covered = (residual(functions, s)[0] for functions in every)
    assert_close(both, first + s["t"])
    assert_close(covered, first)
    with pytest.raises(PhysicsError, match="there is no function 'f0_none'"):
        Physics({"u": 1}, CFile(path, ("f0_plain", "f0_none")))


def test_auxiliary_fields_that_a_called_function_does_without(path, tmp_path):
    """As in PETSc's src/ts/tutorials/ex76.c: an array without elements is passed on, and not read."""
    text = f"""static void f0_with({ARGUMENTS})
{{
  f0[0] += u[0];
  if (NfAux > 0) f0[0] += a[aOff[0]];
}}
static void f0_calls({ARGUMENTS})
{{
  f0_with({GIVEN}, f0);
}}
"""
    path.write_text(text)
    physics = Physics({"u": 1}, CFile(path, "f0_calls"))
    s = random_state(physics, 2)
    assert_close(residual(physics.interpreter(2), s)[0], s["u"])
    assert_text_agrees(CompiledPhysics(physics, 2, tmp_path), physics.interpreter(2), s)
